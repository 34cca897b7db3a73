"""What a model says of every target token, given the correct prefix, in eight bytes each.

Sentences x length x vocabulary numbers never exist: logits are looked at a piece at a time, and of each token are kept
its label, the predicted token, and the codes of both probabilities (`softtargets.arrays.codes`). Padding is left out
before anything is counted, so that no measure can depend on it or on how sentences were put into batches.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays import Codes, decoded, encoded
from softtargets.calibration import (
    ConfidenceCalibration,
    ConfidenceSums,
    Reliability,
    confidence_calibration_of,
    perplexity,
    reliability_of,
)
from softtargets.exceptions import SofttargetsError
from softtargets.storage import read_bounded, storage_errors
from softtargets.translation.rows import Head, rows_of
from softtargets.translation.symbols import IGNORED

Tokens = NDArray[np.uint16] | NDArray[np.uint32]
Floats = NDArray[np.float64]
_FIELDS = ("labels", "predicted", "codes", "lengths")
_MOST = 1 << 32  # bytes of a file of somebody else


@dataclass(frozen=True, eq=False)
class TokenPredictions:
    """Predictions of the next token with a correct prefix, sentence after sentence; made by `TokenCollector`.

    `labels` and `predicted` (tokens,), `codes` (2, tokens) of the probabilities of the predicted token and of the
    label, `lengths` (sentences,) the number of tokens of each sentence, padding not among them.

    >>> collector = TokenCollector()
    >>> collector.add(torch.tensor([[[2.0, -2.0], [0.0, 1.0], [9.0, 9.0]]]), torch.tensor([[0, 0, -100]]))
    >>> found = collector.finish()
    >>> len(found), found.lengths.tolist(), found.accuracy, round(found.nll, 3), round(found.perplexity, 3)
    (2, [2], 0.5, 0.666, 1.946)
    """

    labels: Tokens
    predicted: Tokens
    codes: Codes
    lengths: NDArray[np.int64]

    def __post_init__(self) -> None:
        count = len(self.labels)
        if (
            self.predicted.shape != (count,)
            or self.codes.shape != (2, count)
            or int(self.lengths.sum()) != count
        ):
            raise ValueError(
                f"there must be as many labels, predictions and codes as the lengths add up to, "
                f"{int(self.lengths.sum())}, not {count}, {self.predicted.shape} and {self.codes.shape}"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def right(self) -> NDArray[np.bool_]:
        """Of each token whether it is the predicted one."""
        return np.asarray(self.predicted == self.labels)

    @property
    def confidence(self) -> Floats:
        """The probability of each predicted token."""
        return np.asarray(1 / (1 + np.exp(-decoded(self.codes[0]))))

    @property
    def costs(self) -> Floats:
        """The negative log-likelihood of each token, in nats."""
        return np.asarray(np.logaddexp(0, -decoded(self.codes[1])))

    @property
    def nll(self) -> float:
        """The mean negative log-likelihood of a token, in nats: every token counts the same, as in a loss."""
        return float(self.costs.mean())

    @property
    def perplexity(self) -> float:
        """exp of the mean negative log-likelihood; of subwords, so that only models of one vocabulary compare."""
        return perplexity(self.nll)

    @property
    def accuracy(self) -> float:
        """The share of tokens that are predicted, given the correct prefix."""
        return float(self.right.mean())

    def ece(self, bins: int = 15) -> float:
        r"""The expected calibration error of next-token predictions with a correct prefix, without padding.

        .. math:: \sum_b \frac{n_b}{n} | \text{confidence}_b - \text{accuracy}_b |

        in bins of equal width (Guo et al. 2017, equation 3); as in Müller et al. 2019, section 3, figure 3.
        """
        return self.reliability(bins).expected_calibration_error

    def reliability(self, bins: int = 15) -> Reliability:
        """Confidence against accuracy, for a reliability diagram."""
        return reliability_of(self._sums(bins))

    def calibration(self, bins: int = 15, *, level: float | None = 0.95) -> ConfidenceCalibration:
        """All calibration errors of the predicted tokens, with intervals that take tokens for independent."""
        return confidence_calibration_of(self._sums(bins), level=level)

    def _sums(self, bins: int) -> ConfidenceSums:
        if len(self) == 0:
            raise ValueError("there are no tokens to measure; every label was padding, or nothing was added")
        return ConfidenceSums.empty(bins).add(self.confidence, self.right)

    def by_sentence(self) -> dict[str, Floats]:
        """Sums over the tokens of each sentence, for bootstraps: "nll", "right", "confidence" and "tokens".

        The sum of "nll" is minus the log-probability that the model gives to the reference translation.
        """
        which = np.repeat(np.arange(len(self.lengths)), self.lengths)

        def sums(values: NDArray[Any]) -> Floats:
            return np.bincount(which, values, minlength=len(self.lengths)).astype(np.float64)

        return {
            "nll": sums(self.costs),
            "right": sums(self.right),
            "confidence": sums(self.confidence),
            "tokens": self.lengths.astype(np.float64),
        }

    def part(self, sentences: NDArray[Any]) -> TokenPredictions:
        """Some of the sentences, in the order asked for: also undoes the order of batches."""
        starts = np.cumsum(self.lengths) - self.lengths
        chosen = np.asarray(sentences, dtype=np.int64)
        lengths = self.lengths[chosen]
        firsts = np.repeat(starts[chosen] - (np.cumsum(lengths) - lengths), lengths)
        places = firsts + np.arange(int(lengths.sum()))
        return TokenPredictions(self.labels[places], self.predicted[places], self.codes[:, places], lengths)

    def to_bytes(self) -> bytes:
        """As an ``.npz``: 8 bytes a token before they are compressed; the same predictions give the same bytes."""
        content = io.BytesIO()
        np.savez_compressed(content, **{name: getattr(self, name) for name in _FIELDS})
        return content.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes, called: str = "it") -> TokenPredictions:
        """What `to_bytes` wrote; anything else is refused, and nothing in it is executed."""
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as file:
                arrays = {name: file[name] for name in _FIELDS}
            kinds = {name: array.dtype.kind for name, array in arrays.items()}
            if any(kind not in "ui" for kind in kinds.values()) or arrays["codes"].dtype != np.uint16:
                raise ValueError(f"its arrays have other types: {kinds}")
            return cls(**arrays)
        except Exception as error:  # whatever a library says of damaged bytes
            raise SofttargetsError(
                f"{called} has no token predictions: {error}; make the file again"
            ) from None

    @classmethod
    def load(cls, path: Path) -> TokenPredictions:
        """From a file that `to_bytes` was written to."""
        with storage_errors(path, "read"):
            content = read_bounded(path, _MOST)
        return cls.from_bytes(content, str(path))


class TokenCollector:
    """Collects `TokenPredictions` batch by batch; on a GPU nothing is waited for before `finish`.

    With a `head`, `add` takes penultimate states (N, T, D) and makes logits of a few rows at a time.
    """

    def __init__(self, ignore_index: int = IGNORED) -> None:
        self.ignore_index = ignore_index
        self._kept: list[Tensor] = []
        self._lengths: list[Tensor] = []

    @torch.no_grad()
    def add(self, logits: Tensor, labels: Tensor, head: Head | None = None) -> None:
        """Add sentences: logits (N, T, V), or states (N, T, D) with a `head`, and labels (N, T).

        Logits (T, V) with labels (T,) are one sentence.
        """
        for z, y in rows_of(logits, labels, head):
            self._kept.append(_numbers(z, y.masked_fill(y == self.ignore_index, -1)))
        counted = (labels != self.ignore_index).reshape(-1, labels.shape[-1])
        self._lengths.append(counted.sum(1))

    def finish(self) -> TokenPredictions:
        """All that has been added, in that order."""
        if not self._kept:
            raise ValueError("there are no tokens: add logits and labels first")
        rows = torch.cat(self._kept, 1).cpu().numpy()
        rows = rows[:, rows[0] >= 0]
        lengths = torch.cat([one.cpu() for one in self._lengths]).numpy().astype(np.int64)
        whole = rows[:2].astype(np.int64)
        small = int(whole.max(initial=0)) < 1 << 16
        labels, predicted = (one.astype(np.uint16 if small else np.uint32) for one in whole)
        return TokenPredictions(labels, predicted, encoded(rows[2:]), lengths)


def _numbers(logits: Tensor, labels: Tensor) -> Tensor:
    """Label, predicted token, log-odds of both (4, n) in double precision; a label of -1 is one that does not count.

    Log-odds of a token are its logit less the logarithm of the sum of the exponentials of all others: where a
    probability is rounded to 1, they still say how far from 1 it is.
    """
    z = logits if logits.dtype in (torch.float32, torch.float64) else logits.float()
    top = z.max(1, keepdim=True)
    label = labels.clamp(min=0).unsqueeze(1)
    own = (z.gather(1, label).double() - top.values.double()).squeeze(1)
    power = (z - top.values).exp_()
    at_label = power.gather(1, label).squeeze(1).double()
    others = power.scatter_(1, top.indices, 0.0).sum(1, dtype=torch.float64)
    best = -others.log()
    # The likeliest token is among the others, so that the sum is at least 1 and loses no digits.
    second = own - (1 + others - at_label).log()
    hit = top.indices == label
    odds = torch.where(hit.squeeze(1), best, second)
    return torch.stack([labels.double(), top.indices.squeeze(1).double(), best, odds])
