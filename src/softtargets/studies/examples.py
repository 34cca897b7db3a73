"""Runs example by example, for the chance of the test set in what is compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.claims import examples_variance
from softtargets.runs import Run
from softtargets.studies.measures import right

# What counts, example by example, whether a prediction is right; up to its sign and unit.
PER_EXAMPLE = ("accuracy", "error")


def chance_of_examples(seeds: Sequence[Sequence[tuple[Any, Any]]]) -> float | None:
    """The variance that test examples add to a mean difference in accuracy, of pairs of runs for each seed.

    None where it cannot be told: fewer than two seeds, or a run without its test predictions.
    """
    rows = [_difference(pairs) for pairs in seeds]
    there = [row for row in rows if row is not None]
    if len(there) < max(len(rows), 2) or len({len(row) for row in there}) > 1:
        return None
    return examples_variance(np.stack(there))


def _difference(pairs: Sequence[tuple[Any, Any]]) -> NDArray[np.float64] | None:
    both = [(_right_of(this), _right_of(that)) for this, that in pairs]
    found = [this - that for this, that in both if this is not None and that is not None]
    return None if len(found) < len(both) or not found else np.mean(found, axis=0)


def _right_of(run: Any) -> NDArray[np.float64] | None:
    if not isinstance(run, Run) or not run.has_predictions("test"):
        return None
    return _read(run.directory, run.directory.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _read(directory: Path, _written: int) -> NDArray[np.float64]:
    """Read once: a run takes part in several comparisons of a page."""
    return right(Run(directory).predictions("test")).double().numpy()
