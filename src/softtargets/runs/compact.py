"""What finished nets said of every test example, in five bytes each: so that readers can recompute what a page says.

A file is one ``.npz`` for many runs, to be read with numpy alone:

| key | what |
|---|---|
| ``labels`` | the labels, (examples,) |
| a run's id | uint16 (3, examples): the predicted class, the code of its probability, the code of the label's |
| a run's id and ``.labels`` | the labels of a run that was measured on others |

A code c stands for log-odds z = sinh((c - 32768) / 6000), and so for the probability 1 / (1 + exp(-z)). That keeps a
probability to 2.4e-5 and, where it is near 0 or 1, its distance from there to a few tenths of a per cent; log-odds
beyond 117 become 117. Accuracy is exact; with 10,000 examples the calibration error comes out within 1e-4, and so does
the negative log-likelihood.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import RunError
from softtargets.runs.run import Run
from softtargets.storage import storage_errors, write_atomically

MIDDLE, STEPS = 32768, 6000
BINS = 15
_LABELS = "labels"
_READERS = 8  # checking a file takes longer than reading it, and needs no lock

Codes = NDArray[np.uint16]
Floats = NDArray[np.float64]


def encoded(log_odds: Floats) -> Codes:
    """Log-odds as codes.

    >>> encoded(np.array([-np.inf, 0.0, 4.0, np.inf]))
    array([    0, 32768, 45336, 65535], dtype=uint16)
    """
    found = np.round(np.arcsinh(log_odds) * STEPS) + MIDDLE
    kept: Codes = np.clip(np.nan_to_num(found, nan=0.0), 0, 2 * MIDDLE - 1).astype(np.uint16)
    return kept


def decoded(codes: Codes) -> Floats:
    """Codes as log-odds.

    >>> decoded(np.array([32768, 45336], dtype=np.uint16)).round(3)
    array([0., 4.])
    """
    return np.sinh((codes.astype(np.float64) - MIDDLE) / STEPS)


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


def export_predictions(runs: Iterable[Run], path: Path, split: str = "test") -> int:
    """Write the predictions of finished runs on a split to one file; returns of how many runs.

    Runs that kept none are left out. The same runs always give the same bytes.
    """
    there = sorted((run for run in runs if run.has_predictions(split)), key=lambda run: run.id)
    if not there:
        raise RunError(f"no run kept predictions on '{split}'; `softtargets study run` keeps those it needs")
    arrays: dict[str, Any] = {}
    with ThreadPoolExecutor(_READERS) as readers:
        for run, (labels, found) in zip(there, readers.map(lambda run: _of(run, split), there), strict=True):
            shared = arrays.setdefault(_LABELS, labels)
            if shared is not labels and not np.array_equal(shared, labels):
                arrays[f"{run.id}.{_LABELS}"] = labels
            arrays[run.id] = found
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_atomically(path, content.getvalue())
    return len(there)


def _of(run: Run, split: str) -> tuple[NDArray[np.uint16], Codes]:
    kept = run.predictions(split)
    labels = kept.labels.long().numpy()
    return labels.astype(np.uint16), compact(kept.logits.double().numpy(), labels)


def recomputed(path: Path) -> dict[str, dict[str, float]]:
    """Accuracy, error, negative log-likelihood in nats and calibration error of each run in such a file, by id."""
    try:
        with storage_errors(path, "read"), np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, BadZipFile, KeyError, EOFError) as error:
        raise RunError(f"{path} is no file of predictions: {error}") from None
    runs = [name for name in arrays if name != _LABELS and not name.endswith(f".{_LABELS}")]
    if _LABELS not in arrays or not runs or not all(_fits(arrays, name) for name in runs):
        raise RunError(
            f"{path} is no file of predictions of runs: it has {', '.join(arrays) or 'nothing'}; "
            "`softtargets runs export --predictions FILE.npz` writes one"
        )
    return {name: measures(arrays[name], _labels(arrays, name)) for name in sorted(runs)}


def _labels(arrays: Mapping[str, Any], run: str) -> Any:
    return arrays.get(f"{run}.{_LABELS}", arrays[_LABELS])


def _fits(arrays: Mapping[str, Any], run: str) -> bool:
    codes, labels = arrays[run], _labels(arrays, run)
    return bool(
        codes.dtype == np.uint16 and codes.shape == (3, *labels.shape) and labels.ndim == 1 and len(labels)
    )


def measures(codes: Codes, labels: NDArray[Any]) -> dict[str, float]:
    """Of one run.

    The calibration error is the expected one (Guo et al. 2017, equation 3), with 15 bins of equal width.

    >>> measures(np.array([[0, 1], [65535, 65535], [65535, 0]], dtype=np.uint16), np.array([0, 0]))["ece"]
    0.5
    """
    right = codes[0] == labels
    log_odds = decoded(codes[1:])
    confidence = 1 / (1 + np.exp(-log_odds[0]))
    # Bins are closed at their lower end, the last one at both.
    bins = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, weights=right - confidence, minlength=BINS)
    accuracy = float(right.mean())
    return {
        "accuracy": accuracy,
        "error": 1 - accuracy,
        "nll": float(np.logaddexp(0, -log_odds[1]).mean()),
        "ece": float(np.abs(gaps).sum() / len(labels)),
    }
