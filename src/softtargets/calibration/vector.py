"""Vector scaling: for each class a number that its logit is multiplied by and one that is added."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.affine import RIDGE, Affine, AffineFit
from softtargets.calibration.chunks import Chunks, Reader, as_chunks


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class VectorScaling(AffineFit):
    """Numbers for each class (K,), in double precision; called with logits, it gives `scale * logits + bias`."""

    scale: Tensor

    def __call__(self, logits: ArrayLike) -> Tensor:
        """The logits of each class times its scale, plus its bias."""
        return self._scaled(logits, self.scale)


def vector_scaling(
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    *,
    ridge: float = RIDGE,
    ignore_index: int | None = None,
    weights: ArrayLike | None = None,
) -> VectorScaling:
    """Fit softmax(scale * logits + bias), a scale and a bias for each class, by negative log-likelihood.

    Guo et al. 2017, section 4.2 (matrix scaling with a diagonal matrix). The loss is convex. Since the bias of a
    class without examples would run away, and scales where examples are separable, what is minimised is

        sum over examples of the negative log-likelihood + ridge / 2 (sum of (scale - 1)^2 + sum of bias^2)

    whose ridge matters less the more examples there are. It is no more than the likelihood itself where scale = 1
    and bias = 0, so the likelihood of these examples never gets worse. Biases add up to 0, since adding a constant
    to all of them changes nothing. A scale may be negative. Unlike with a temperature, what comes out is not the
    same when a constant is added to all logits of an example.

    By L-BFGS (scipy), starting from the temperature where that is better than to change nothing, in coordinates in
    which the curvature there is about 1 in every direction (from a sample of the examples; beyond 1000 classes for each
    number alone, which takes more passes). `logits` and `labels` as in `temperature_scaling`.

    >>> import torch
    >>> random = torch.Generator().manual_seed(0)
    >>> right = 2 * torch.randn(5000, 3, generator=random)
    >>> labels = torch.multinomial(right.softmax(1), 1, generator=random).squeeze(1)
    >>> fit = vector_scaling(right * torch.tensor([2.0, 1.0, 1.0]), labels)
    >>> print([round(x, 1) for x in fit.scale.tolist()], f"nll {fit.nll_before:.3f} -> {fit.nll_after:.3f}")
    [0.5, 1.0, 1.0] nll 0.693 -> 0.590
    """
    scale, fit = Affine(
        as_chunks(logits, labels, ignore_index=ignore_index, weights=weights), ridge, tied=False
    ).fit()
    return VectorScaling(scale=scale, **fit)
