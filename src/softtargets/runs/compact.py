"""What finished nets said of every test example, in five bytes each: so that readers can recompute what a page says.

A file is one ``.npz`` for many runs, to be read with numpy alone:

| key | what |
|---|---|
| ``labels`` | the labels, (examples,) |
| a run's id | uint16 (3, examples): the predicted class, the code of its probability, the code of the label's |
| a run's id and ``.labels`` | the labels of a run that was measured on others |

A code c stands for log-odds z = sinh((c - 32768) / 6000), and so for the probability 1 / (1 + exp(-z)); what that keeps
is said in `softtargets.arrays.codes`. Accuracy is exact; with 10,000 examples the calibration error comes out within
1e-4, and so does the negative log-likelihood.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import Codes, decoded, encoded
from softtargets.exceptions import RunError
from softtargets.storage import read_bounded, storage_errors, write_atomically

if TYPE_CHECKING:
    from softtargets.runs.run import Run

BINS = 15
_LABELS = "labels"
_READERS = 8  # checking a file takes longer than reading it, and needs no lock
_MOST = 1 << 32  # bytes that a file of somebody else may take in memory

Floats = NDArray[np.float64]


def compact(logits: Floats, labels: NDArray[np.int64]) -> Codes:
    """Predicted class, code of its probability, code of the label's: (3, examples).

    >>> compact(np.array([[2.0, -2.0], [0.0, 0.0]]), np.array([0, 1]))
    array([[    0,     0],
           [45336, 32768],
           [45336, 32768]], dtype=uint16)
    """
    predicted = logits.argmax(-1)
    codes = (encoded(_log_odds(logits, chosen)) for chosen in (predicted, labels))
    return np.stack([predicted.astype(np.uint16), *codes])


def _log_odds(logits: Floats, chosen: NDArray[np.int64]) -> Floats:
    """Of one class against all others: its logit minus the logarithm of the sum of their exponentials."""
    rows = np.arange(len(logits))
    others = logits.copy()
    others[rows, chosen] = -np.inf
    highest = others.max(-1)
    highest[highest == -np.inf] = 0  # no other class is possible, or there is none
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = highest + np.log(np.exp(others - highest[:, None]).sum(-1))
        return np.asarray(logits[rows, chosen] - rest)


@dataclass(frozen=True)
class CompactPredictions:
    """The predictions of one run for one split, as the codes keep them: labels (examples,), codes (3, examples).

    >>> two = CompactPredictions.of(np.array([[2.0, -2.0], [0.0, 1.0]]), np.array([0, 0]))
    >>> two.right, two.confidence.round(3), two.costs.round(3)
    (array([ True, False]), array([0.982, 0.731]), array([0.018, 1.313]))
    """

    labels: NDArray[np.uint16]
    codes: Codes

    @classmethod
    def of(cls, logits: Floats, labels: NDArray[Any]) -> CompactPredictions:
        """From logits (examples, classes) and labels."""
        return cls(labels.astype(np.uint16), compact(logits, labels))

    def __len__(self) -> int:
        return len(self.labels)

    def part(self, chosen: NDArray[Any]) -> CompactPredictions:
        """Some of the examples."""
        return CompactPredictions(self.labels[chosen], self.codes[:, chosen])

    @property
    def right(self) -> NDArray[np.bool_]:
        """Of each example whether the predicted class is its label."""
        return np.asarray(self.codes[0] == self.labels)

    @property
    def confidence(self) -> Floats:
        """The probability of each predicted class."""
        return np.asarray(1 / (1 + np.exp(-decoded(self.codes[1]))))

    @property
    def costs(self) -> Floats:
        """The negative log-likelihood of each label, in nats."""
        return np.asarray(np.logaddexp(0, -decoded(self.codes[2])))

    @property
    def ece(self) -> float:
        """The expected calibration error (Guo et al. 2017, equation 3), with 15 bins of equal width."""
        confidence = self.confidence
        # Bins are closed at their lower end, the last one at both.
        bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
        gaps = np.bincount(bins, weights=self.right - confidence, minlength=BINS)
        return float(np.abs(gaps).sum() / len(self))

    def says_the_same_as(self, other: CompactPredictions) -> bool:
        """Whether both are of the same logits: another processor may round a code to its neighbour."""
        if not np.array_equal(self.labels, other.labels):
            return False
        apart = np.abs(self.codes[1:].astype(np.int32) - other.codes[1:])
        return bool(np.array_equal(self.codes[0], other.codes[0]) and (apart <= 1).all())

    def to_bytes(self) -> bytes:
        """As a file of one run: an ``.npz`` with ``labels`` and ``codes``; the same predictions give the same bytes."""
        return _npz({_LABELS: self.labels, "codes": self.codes})

    @classmethod
    def from_bytes(cls, content: bytes) -> CompactPredictions:
        """What `to_bytes` wrote; anything else raises a ValueError."""
        arrays = _arrays(content)
        if set(arrays) != {_LABELS, "codes"} or not _fits(arrays, "codes"):
            raise ValueError(f"it has {', '.join(arrays) or 'nothing'}, not compact predictions")
        return cls(arrays[_LABELS], arrays["codes"])


def export_predictions(runs: Iterable[Run], path: Path, split: str = "test") -> int:
    """Write the predictions of finished runs on a split to one file; returns of how many runs.

    Runs that kept none are left out. The same runs always give the same bytes.
    """
    there = [run for run in runs if run.has_compact(split)]
    if not there:
        raise RunError(
            f"no run has predictions on '{split}'; `softtargets study run` keeps the predictions it needs"
        )
    write_atomically(path, together(compacted(there, split)))
    return len(there)


def compacted(runs: Iterable[Run], split: str) -> dict[str, CompactPredictions]:
    """The predictions of runs that kept them, by id and in the order of ids."""
    there = sorted(runs, key=lambda run: run.id)
    with ThreadPoolExecutor(_READERS) as readers:
        found = readers.map(lambda run: run.compact(split), there)
        return dict(zip((run.id for run in there), found, strict=True))


def together(predictions: Mapping[str, CompactPredictions]) -> bytes:
    """Predictions of many runs as the bytes of one file; labels that all share are in it once."""
    arrays: dict[str, Any] = {}
    for run, found in predictions.items():
        shared = arrays.setdefault(_LABELS, found.labels)
        if shared is not found.labels and not np.array_equal(shared, found.labels):
            arrays[f"{run}.{_LABELS}"] = found.labels
        arrays[run] = found.codes
    return _npz(arrays)


def apart(content: bytes) -> dict[str, CompactPredictions]:
    """What `together` made, by run; anything else raises a ValueError."""
    arrays = _arrays(content)
    runs = [name for name in arrays if name != _LABELS and not name.endswith(f".{_LABELS}")]
    if _LABELS not in arrays or not runs or not all(_fits(arrays, name) for name in runs):
        raise ValueError(f"it has {', '.join(list(arrays)[:4]) or 'nothing'}")
    return {name: CompactPredictions(_labels(arrays, name), arrays[name]) for name in sorted(runs)}


def recomputed(path: Path) -> dict[str, dict[str, float]]:
    """Accuracy, error, negative log-likelihood in nats and calibration error of each run in such a file, by id."""
    return {run: measures(found.codes, found.labels) for run, found in read_predictions(path).items()}


def read_predictions(path: Path) -> dict[str, CompactPredictions]:
    """The predictions in a file that `export_predictions` wrote, by run."""
    try:
        with storage_errors(path, "read"):
            content = read_bounded(path, _MOST)
        return apart(content)
    except ValueError as error:
        raise RunError(
            f"{path} is not a file of predictions of runs: {error}; `softtargets runs export --predictions FILE.npz` "
            "writes one"
        ) from None


def _npz(arrays: Mapping[str, Any]) -> bytes:
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` that somebody else may have made; anything else raises a ValueError."""
    try:
        with ZipFile(io.BytesIO(content)) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > _MOST:
            raise ValueError(f"it has more than {_MOST >> 30} GiB")
        with np.load(io.BytesIO(content)) as file:
            return {name: file[name] for name in file.files}
    except (
        Exception
    ) as error:  # zlib.error, SyntaxError of a header: whatever a library says of damaged bytes
        raise ValueError(str(error)) from None


def _labels(arrays: Mapping[str, Any], run: str) -> Any:
    return arrays.get(f"{run}.{_LABELS}", arrays[_LABELS])


def _fits(arrays: Mapping[str, Any], run: str) -> bool:
    codes, labels = arrays[run], _labels(arrays, run)
    return bool(
        codes.dtype == np.uint16
        and labels.dtype.kind in "ui"
        and codes.shape == (3, *labels.shape)
        and labels.ndim == 1
        and len(labels)
    )


def measures(codes: Codes, labels: NDArray[Any]) -> dict[str, float]:
    """Of one run.

    >>> measures(np.array([[0, 1], [65535, 65535], [65535, 0]], dtype=np.uint16), np.array([0, 0]))["ece"]
    0.5
    """
    found = CompactPredictions(labels, codes)
    accuracy = float(found.right.mean())
    return {
        "accuracy": accuracy,
        "error": 1 - accuracy,
        "nll": float(found.costs.mean()),
        "ece": found.ece,
    }
