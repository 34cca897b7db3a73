"""Runs example by example, for the chance of the test set in what is compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.claims import examples_variance
from softtargets.runs import Predictions, Run
from softtargets.studies.measures import right

Row: TypeAlias = NDArray[np.float64]

# What is no mean over examples is computed without each of so many groups of them.
GROUPS = 50


def pseudo_values(of: Callable[[Predictions], float], test: Predictions) -> Row:
    r"""Tukey's pseudo-values of a measure: what each of G groups of examples contributes, as if it were a mean.

    .. math:: G\,\theta - (G - 1)\,\theta_{(-g)}

    with :math:`\theta_{(-g)}` computed without the examples of group g, every G-th of the test set.
    """
    groups = min(GROUPS, len(test.labels))
    place = np.arange(len(test.labels)) % groups
    without = [of(_part(test, place != group)) for group in range(groups)]
    return groups * of(test) - (groups - 1) * np.array(without)


def _part(test: Predictions, chosen: NDArray[np.bool_]) -> Predictions:
    return Predictions(test.logits[chosen], test.labels[chosen], test.features[:0])


def _right(test: Predictions) -> Row:
    return np.asarray(right(test).double().numpy())


def _costs(test: Predictions) -> Row:
    return np.asarray(F.cross_entropy(test.logits.double(), test.labels.long(), reduction="none").numpy())


def _ece(test: Predictions) -> Row:
    return pseudo_values(lambda part: expected_calibration_error(part.logits.softmax(-1), part.labels), test)


# Measures that are made of test examples, up to their sign: what each contributes.
PER_EXAMPLE: Mapping[str, Callable[[Predictions], Row]] = {
    "accuracy": _right,
    "error": _right,
    "loss": _costs,
    "nll": _costs,
    "ece": _ece,
}


def chance_of_examples(measure: str, seeds: Sequence[Sequence[tuple[Any, Any]]]) -> float | None:
    """The variance that test examples add to the mean difference of a measure, of pairs of runs for each seed.

    None where it is not known: another measure, fewer than two seeds, or a run without its test predictions.
    """
    rows = [_difference(measure, pairs) for pairs in seeds] if measure in PER_EXAMPLE else []
    there = [row for row in rows if row is not None]
    if len(there) < max(len(rows), 2) or len({len(row) for row in there}) > 1 or len(there[0]) < 2:
        return None
    return examples_variance(np.stack(there))


def _difference(measure: str, pairs: Sequence[tuple[Any, Any]]) -> Row | None:
    both = [(_row(measure, this), _row(measure, that)) for this, that in pairs]
    found = [this - that for this, that in both if this is not None and that is not None]
    return None if len(found) < len(both) or not found else np.asarray(np.mean(found, axis=0))


def _row(measure: str, run: Any) -> Row | None:
    if not isinstance(run, Run) or not run.has_predictions("test"):
        return None
    return _read(measure, run.directory, run.directory.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _read(measure: str, directory: Path, _written: int) -> Row:
    """Read once: a run takes part in several comparisons of a page."""
    return PER_EXAMPLE[measure](Run(directory).predictions("test"))
