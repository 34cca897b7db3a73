"""LABO: label regularisation learnt by bi-level optimisation."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from softtargets.losses.arguments import choice, whole_number
from softtargets.losses.base import RuleLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import blend, divergence_from_uniform
from softtargets.losses.reference import labo_target
from softtargets.losses.rule import WHOLE, Rule


class LABOTerms(NamedTuple):
    """What LABO's objective (equation 14) is made of, for every row; nothing here carries a gradient."""

    cross_entropy: Tensor
    alpha: Tensor
    divergence: Tensor

    def objective(self, tau: float | Tensor) -> Tensor:
        """Equation 14: cross-entropy + beta KL(P* || U), with beta = alpha * tau."""
        return self.cross_entropy + self.alpha * tau * self.divergence


class LABO(RuleLoss):
    r"""Cross-entropy with the target :math:`(1-\alpha)\,\mathrm{onehot}(y) + \alpha P^*`, P* from the model itself.

    Lu et al., "LABO: towards learning optimal label regularization via bi-level optimization", 2023. P* minimises
    cross-entropy + beta KL(P || U) for the present model, and Theorem 1 gives it in closed form:

    .. math:: P^* = \mathrm{softmax}(z / \tau), \quad \tau = \beta / \alpha

    No gradient flows through P* or alpha, so the KL term does not change the training. The loss is therefore the
    cross-entropy alone; `terms` reports the KL term, and ``include_kl=True`` adds its value. tau = 1.25 is one of
    the two values the paper tried for translation, rho = 0.5 its choice for all experiments; for CIFAR it gives no tau.

    Without ``alpha`` each example gets its own (equation 16), and ``reading`` says how that is read:

    * ``"literal"``, the paper's: :math:`\alpha = 1 - \rho H(p) / \log K`. A confident example moves nearly all its
    mass, and every example at least 1 - rho. Models trained this way were markedly underconfident in our trials; *
    ``"reversed"``: :math:`\alpha = \rho H(p) / \log K`. A confident example moves little.

    The first ``warmup_steps`` calls in training mode smooth uniformly with ``warmup_alpha`` (0.1, the smoothing of
    the paper's translation experiments, which warm up for 5,000 or 10,000 steps; Algorithm 1, which counts from
    one and asks for i < T_w, has one step fewer). With a fixed ``alpha`` that is used in the warm-up too, unless
    ``warmup_alpha`` is given. Algorithm 1 says no more than that P is uniform then; ``warmup="adaptive"`` keeps the
    alpha of each example in the warm-up. As tau grows, LABO becomes uniform label smoothing (Remark 3).

    ``hypergradient=True`` detaches nothing: the loss is the whole objective R (equation 14), and its gradient that of
    R. Nothing comes through P*, which minimises R. But alpha follows the model, and beta = alpha tau with it, which
    equation 17 leaves out:

    .. math::
        \nabla R = p - (1-\alpha)\,\mathrm{onehot}(y) - \alpha P^* + \frac{\partial R}{\partial \alpha}\nabla\alpha,
        \quad
        \frac{\partial R}{\partial \alpha} = \log p_y + \tau \log K - \tau \log \sum_j p_j^{1/\tau},
        \quad
        \nabla_k\alpha = \pm\frac{\rho}{\log K}\, p_k (\log p_k + H(p))

    with + for the literal reading and - for the reversed one. In the warm-up P is uniform, and
    :math:`\partial R / \partial \alpha = \log p_y - \frac{1}{K} \sum_j \log p_j`. With a fixed alpha only the value
    changes. Class weights are refused, since for them softmax(z / tau) is not the minimum. There is no kernel for it:
    on a GPU it is plain PyTorch.

    >>> import torch
    >>> loss = LABO(tau=1.25, alpha=0.1)
    >>> loss(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor(0.2971)
    >>> LABO(tau=1e9, alpha=0.1)(torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0]))  # label smoothing
    tensor(0.3729)
    >>> logits, label = torch.tensor([[2.0, 0.0, 0.0]], requires_grad=True), torch.tensor([0])
    >>> for reading in ({}, {"hypergradient": True}):  # alpha, following the model, pulls the other way
    ...     print(torch.autograd.grad(LABO(**reading)(logits, label), logits)[0])
    tensor([[-0.0125,  0.0063,  0.0063]])
    tensor([[ 0.1324, -0.0662, -0.0662]])
    """

    usual: ClassVar = {"include_kl": False, "hypergradient": False}

    tau: float | Tensor
    rho: float | Tensor
    alpha: float | Tensor | None
    warmup_alpha: float | Tensor
    step: Tensor

    def __init__(
        self,
        tau: float | Tensor = 1.25,
        rho: float | Tensor = 0.5,
        alpha: float | Tensor | None = None,
        warmup_steps: int = 0,
        reading: Literal["literal", "reversed"] = "literal",
        warmup_alpha: float | Tensor | None = None,
        include_kl: bool = False,
        warmup: Literal["constant", "adaptive"] = "constant",
        hypergradient: bool = False,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
        inplace: bool = False,
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction, inplace=inplace)
        self._hyperparameter("tau", tau, 0, open_low=True)
        self._hyperparameter("rho", rho, 0, 1)
        if alpha is None:
            self.alpha = None
        else:
            self._hyperparameter("alpha", alpha, 0, 1)
        self.warmup = choice("warmup", warmup, ("constant", "adaptive"))
        if self.warmup == "adaptive" and warmup_alpha is not None:
            raise ValueError(
                f"warmup_alpha ({warmup_alpha}) is only for warmup='constant': with warmup='adaptive', alpha is the "
                "same in the warm-up as afterwards; leave one of them out"
            )
        if hypergradient and weight is not None:
            raise ValueError(
                "hypergradient=True cannot be used with class weights (weight): softmax(z / tau) does not minimise "
                "the inner problem of a weighted cross-entropy; leave one of them out"
            )
        if warmup_alpha is None:
            warmup_alpha = 0.1 if alpha is None else alpha
            if isinstance(warmup_alpha, Tensor):
                warmup_alpha = warmup_alpha.detach().clone()
        self._hyperparameter("warmup_alpha", warmup_alpha, 0, 1)
        self.warmup_steps = whole_number("warmup_steps", warmup_steps)
        self.reading = choice("reading", reading, ("literal", "reversed"))
        self.include_kl = bool(include_kl)
        self.hypergradient = bool(hypergradient)
        self.begin()

    def fresh(self, device: torch.device) -> dict[str, Tensor]:
        """No step so far."""
        return {"step": torch.zeros((), dtype=torch.int64, device=device)}

    def called(self) -> None:
        """A call in training mode is a step of the warm-up; the runs of a pack take it together."""
        if self.warmup_steps and self.learns and not self._in_pack:
            self.step.add_(1)

    def terms(self, logits: Tensor, target: Tensor) -> LABOTerms:
        """Cross-entropy, alpha and KL(P* || U) of every example, to be logged; counts as no step.

        >>> import torch
        >>> LABO().terms(torch.zeros(1, 4), torch.tensor([1])).alpha
        tensor([0.5000])
        """
        if self._per_run():
            raise ValueError(
                "terms works for a single run, but the hyper-parameters of this loss are those of a pack"
            )
        with torch.no_grad():
            batch = Batch(logits, target, None, self.ignore_index)
            alpha, q = labo_target(batch, *self._schedule(batch.dtype))
            cross_entropy = blend(alpha, batch.hard(), batch.soft(q))
            parts = (cross_entropy, torch.zeros_like(cross_entropy) + alpha, divergence_from_uniform(q.log()))
            return LABOTerms(*(batch.settled(part).reshape(batch.shape) for part in parts))

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(offset and slope of alpha over relative entropy, 1 / tau, 1 to add the KL term or 2 to follow alpha too)."""
        objective = WHOLE if self.hypergradient else float(self.include_kl)
        fused = not (self.hypergradient or (self.include_kl and self.weight is not None))
        return Rule("labo", (*self._schedule(batch.dtype), objective), fused=fused)

    def _schedule(self, dtype: torch.dtype) -> tuple[float | Tensor, float | Tensor, float | Tensor]:
        """(offset, slope, sharpness): alpha is offset + slope * H(p) / log K, and P* is softmax(z * sharpness)."""
        offset: float | Tensor
        slope: float | Tensor
        if self.alpha is not None:
            offset, slope = self.alpha, 0.0
        elif self.reading == "literal":
            offset, slope = 1.0, -self.rho
        else:
            offset, slope = 0.0, self.rho
        sharpness = 1 / self.tau
        if not self.warmup_steps:
            return offset, slope, sharpness
        # Decided on the device: the host never waits, and a captured graph leaves the warm-up by itself.
        warm = (self.step < self.warmup_steps).to(dtype)
        if self.warmup == "adaptive":
            return offset, slope, (1 - warm) * sharpness
        return (
            warm * self.warmup_alpha + (1 - warm) * offset,
            (1 - warm) * slope,
            (1 - warm) * sharpness,
        )

    def _options(self) -> list[tuple[str, Any]]:
        names = ["tau", *(("rho", "reading") if self.alpha is None else ("alpha",))]
        if self.warmup_steps:
            names += ["warmup_steps", "warmup" if self.warmup == "adaptive" else "warmup_alpha"]
        return [(name, self._as_shown(name)) for name in names]
