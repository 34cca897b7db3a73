"""Beta smoothing."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from softtargets.losses.base import RuleLoss
from softtargets.losses.batch import Batch
from softtargets.losses.functional import label_cross_entropy, softened
from softtargets.losses.rule import Rule


class BetaSmoothing(RuleLoss):
    r"""Label smoothing of random strength, weakest for examples that an averaged model is confident of.

    .. math:: (1-\alpha) H(y, p) + \alpha H(t, p), \quad t_y = b,\ t_k = (1 - b) / (K - 1)

    Zhang and Sabuncu, "Self-distillation as instance-specific label smoothing", 2020, section 5. One
    :math:`b \sim \mathrm{Beta}(\beta, 1)` is drawn for each example of the batch, and the draws are sorted: the
    example whose label is the most probable to an exponential moving average of the model gets the largest b. The
    defaults, alpha = 0.6, beta = 3 and decay = 0.999, are those of the released code.

    The loss keeps the averaged model::

        loss = BetaSmoothing()
        loss.attach(model)                                   # before the training
        loss(model(images), labels, loss.ask(images)).backward()
        optimiser.step()
        loss.after_step(model)                               # after each step

    As in the released code parameters are averaged with decay min(1 - 1 / (t + 1), decay) in step t; buffers, such as
    those of batch normalisation, are not: the copy, which is in training mode when the loss is, keeps its own. The
    average starts from the model itself (in the released code from another random model). Without ``ema_logits``, the
    third argument, examples are sorted by what the model itself says. The copy is part of ``state_dict``: attach before
    ``load_state_dict``. It has no gradients and belongs into no optimiser.

    The draws come from torch's default generator of the device; ``torch.manual_seed`` fixes them. In evaluation
    mode, and under ``torch.no_grad()``, nothing is drawn and the loss is cross-entropy. Of several processes each sorts
    the examples of its own batch, unless `whole` says that they share one. For a target of probabilities the
    probability of the label is the expected one, and t the average over the labels.

    >>> import torch
    >>> logits, labels = torch.tensor([[2.0, 0.0, 0.0]]), torch.tensor([0])
    >>> BetaSmoothing().eval()(logits, labels)
    tensor(0.2395)
    >>> _ = torch.manual_seed(0)
    >>> BetaSmoothing()(logits, labels)
    tensor(0.4895)
    """

    draws = True
    shown = ("alpha", "beta", "decay")

    alpha: float | Tensor
    beta: float | Tensor
    decay: float | Tensor
    averaged: nn.Module | None
    steps: Tensor

    def __init__(
        self,
        alpha: float | Tensor = 0.6,
        beta: float | Tensor = 3.0,
        decay: float | Tensor = 0.999,
        ignore_index: int = -100,
        weight: Tensor | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(ignore_index=ignore_index, weight=weight, reduction=reduction)
        self._hyperparameter("alpha", alpha, 0, 1)
        self._hyperparameter("beta", beta, 0, open_low=True)
        self._hyperparameter("decay", decay, 0, 1)
        self.averaged = None
        self.begin()

    def fresh(self, device: torch.device) -> dict[str, Tensor]:
        """No step so far."""
        return {"steps": torch.zeros((), dtype=torch.int64, device=device)}

    def attach(self, model: nn.Module) -> None:
        """Start the average with a copy of this model."""
        if runs := self._per_run():
            raise ValueError(
                f"{', '.join(runs)} has one value per run, but the runs of a pack cannot share one averaged model: "
                "average the models outside the loss and pass ema_logits"
            )
        self.averaged = deepcopy(model).requires_grad_(False).train(self.training)
        self.begin()

    @torch.no_grad()
    def ask(self, *inputs: Any) -> Tensor:
        """The averaged model's logits for these inputs, without gradient."""
        if self.averaged is None:
            raise RuntimeError("there is no averaged model: call loss.attach(model) before the training")
        logits: Tensor = self.averaged(*inputs)
        return logits

    @torch.no_grad()
    def after_step(self, model: nn.Module) -> None:
        """Move the average towards the model, if there is an average."""
        if self.averaged is None:
            return
        self.steps.add_(1)
        # Decided on the device, so that the host never waits.
        moved = (1 / (self.steps + 1)).clamp_min(1 - self.decay)
        for average, parameter in zip(self.averaged.parameters(), model.parameters(), strict=True):
            average.lerp_(parameter.to(average.dtype), moved.to(average.dtype))

    def forward(self, input: Tensor, target: Tensor, ema_logits: Tensor | None = None) -> Tensor:
        """The loss of a batch; the averaged model's logits have the shape of the logits."""
        return super().forward(input, target, ema_logits)

    def rule(self, batch: Batch, given: Any) -> Rule | None:
        """(hard mass, soft mass), one for each row."""
        if not self.learns or (isinstance(self.alpha, float) and self.alpha == 0):
            return Rule("mixture", (1.0, 0.0))
        moved = self._moved(batch, given)
        return Rule("mixture", (1 - moved, moved))

    def _moved(self, batch: Batch, given: Any) -> Tensor:
        """The mass that each label passes on to all K classes, itself included: (N,)."""
        if batch.classes < 2:
            raise ValueError(
                "BetaSmoothing needs logits of at least two classes: with one class there are no others"
            )
        judged = batch.logits if given is None else batch.rows(given, "ema_logits")
        confidence = _label_probability(batch, softened(judged.detach(), 1.0))
        if batch.kept is not None:
            # Ignored rows, and what was drawn for them, come last and so meet each other.
            confidence = confidence.masked_fill(~batch.kept, 2)
        if self.whole is not None:
            confidence = self.whole.all_labels(confidence)
        draws = torch.rand_like(confidence) ** (1 / self.beta)
        draws = draws.masked_fill(confidence == 2, 2)
        order = confidence.argsort(stable=True)
        on_label = torch.empty_like(draws).scatter(0, order, draws.sort().values)
        if self.whole is not None:
            on_label = self.whole.own_labels(on_label)
        # (1 - b) for the K-1 others is K / (K-1) as much for all.
        return self.alpha * (1 - on_label) * (batch.classes / (batch.classes - 1))


def _label_probability(batch: Batch, log_p: Tensor) -> Tensor:
    if batch.labels is not None:
        return label_cross_entropy(log_p, batch.labels).neg().exp()
    return (batch.probabilities * log_p.exp()).sum(-1)
