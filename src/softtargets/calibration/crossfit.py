"""What scaling does to examples it was not fitted to, when there are no others: every example is held out once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.chunks import Chunks, NoExamples, Reader, as_chunks, in_fold
from softtargets.calibration.sweep import BinSums, measures_at


class Scaling(Protocol):
    """Anything that was fitted and gives new logits for old ones."""

    def __call__(self, logits: Tensor, /) -> Tensor:
        """Scaled logits."""


S = TypeVar("S", bound=Scaling)


@dataclass(frozen=True)
class CrossFit(Generic[S]):
    """Metrics of all examples, as they are and scaled by a fit that has not seen them, and the fits, one per fold.

    The negative log-likelihood is a mean in nats; the expected calibration error is of all examples together.
    """

    nll_before: float
    nll_after: float
    ece_before: float
    ece_after: float
    examples: int
    fits: tuple[S, ...] = field(repr=False)

    @property
    def note(self) -> str:
        """How the numbers after scaling came about, in a sentence."""
        return (
            f"“After scaling” means that each fold is scaled by a fit to the other {len(self.fits) - 1} of "
            f"{len(self.fits)} folds, so that no example influences its own scaling."
        )


def cross_fit(
    fit: Callable[[Chunks], S],
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    bins: int = 15,
    ignore_index: int | None = None,
) -> CrossFit[S]:
    """Fit to all folds but one and measure on that one, for each of them.

    `fit` is `temperature_scaling`, `vector_scaling`, `bias_corrected_temperature` or any function from `Chunks` to
    something that scales logits. Examples that a scaling was fitted to have a better likelihood than new examples
    will have, by about the number of parameters divided by the number of examples, in nats (Akaike 1974): little
    for one temperature, much for two numbers for each of 1000 classes. Which fold a row is in depends only on its
    place and the seed (`fold_of`). The data is read for each fold as often as for one fit.

    >>> from softtargets.calibration.vector import vector_scaling
    >>> random = torch.Generator().manual_seed(0)
    >>> logits = 2 * torch.randn(200, 10, generator=random)
    >>> labels = torch.multinomial(logits.softmax(1), 1, generator=random).squeeze(1)
    >>> same, others = vector_scaling(logits, labels), cross_fit(vector_scaling, logits, labels)
    >>> print(f"{same.nll_before:.2f} -> {same.nll_after:.2f} of the same examples, {others.nll_after:.2f} of others")
    1.30 -> 1.26 of the same examples, 1.40 of others
    """
    if folds < 2:
        raise ValueError(f"folds must be at least 2, not {folds}")
    chunks = as_chunks(logits, labels, ignore_index=ignore_index)
    nll = torch.zeros(2, dtype=torch.float64, device="cpu")
    table = BinSums(2, bins)
    fits = []
    for fold in range(folds):
        try:
            fits.append(fit(in_fold(chunks, fold, folds, seed, held_out=False)))
        except NoExamples as none:
            raise ValueError(f"{none} to fit to, with {folds} folds; pass more examples") from None
        with suppress(NoExamples):  # of very few examples none may be in a part
            for z, y in in_fold(chunks, fold, folds, seed, held_out=True):
                both = [measures_at(logits, y, [1.0]) for logits in (z, fits[-1](z))]
                losses, confidence, correct = (torch.cat(one) for one in zip(*both, strict=True))
                nll += losses.sum(1).cpu()
                table.add(confidence, correct.view(2, -1))
    before, after = (nll / table.examples).tolist()
    ece_before, ece_after = table.errors().tolist()
    return CrossFit(before, after, ece_before, ece_after, table.examples, tuple(fits))
