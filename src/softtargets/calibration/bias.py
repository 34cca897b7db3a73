"""Bias-corrected temperature scaling: one temperature for all classes, and a bias for each."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.affine import RIDGE, Affine, AffineFit
from softtargets.calibration.chunks import Chunks, Reader, as_chunks
from softtargets.calibration.temperature import HIGHEST, LOWEST, NOTES


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BiasCorrectedTemperature(AffineFit):
    """A temperature and biases (K,); called with logits, it gives `logits / temperature + bias`."""

    temperature: float

    @property
    def note(self) -> str:
        """What to know about this fit, in a sentence; empty where there is nothing unusual."""
        return {LOWEST: NOTES["lowest"], HIGHEST: NOTES["highest"]}.get(self.temperature) or super().note

    def __call__(self, logits: ArrayLike) -> Tensor:
        """The logits divided by the temperature, plus the bias of their class."""
        return self._scaled(logits, 1 / self.temperature)


def bias_corrected_temperature(
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    *,
    ridge: float = RIDGE,
    ignore_index: int | None = None,
    weights: ArrayLike | None = None,
) -> BiasCorrectedTemperature:
    """Fit softmax(logits / T + bias), one T > 0 and a bias for each class, by negative log-likelihood.

    Alexandari, Kundaje & Shrikumar 2020 (BCTS). A temperature alone cannot make up for classes that are predicted
    more or less often than they occur; with biases the mean probability of a class is its share of the labels, but
    for the ridge. The loss is convex in 1/T and the biases. T lies in [0.01, 100] as in `temperature_scaling`, where
    the fit starts; the biases add up to 0 and have a small ridge, which is explained at `vector_scaling`. So the
    likelihood of these examples is never worse than with the best temperature alone.

    >>> import torch
    >>> random = torch.Generator().manual_seed(0)
    >>> right = 2 * torch.randn(5000, 3, generator=random)
    >>> labels = torch.multinomial(right.softmax(1), 1, generator=random).squeeze(1)
    >>> fit = bias_corrected_temperature(2 * (right - torch.tensor([0.9, 0.1, -1.0])), labels)
    >>> print(f"T = {fit.temperature:.1f}, biases {[round(x, 1) for x in fit.bias.tolist()]}")
    T = 2.0, biases [0.9, 0.1, -1.0]
    """
    scale, fit = Affine(
        as_chunks(logits, labels, ignore_index=ignore_index, weights=weights), ridge, tied=True
    ).fit()
    return BiasCorrectedTemperature(temperature=min(max(1 / float(scale[0]), LOWEST), HIGHEST), **fit)
