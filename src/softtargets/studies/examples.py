"""Runs example by example, for the chance of the test set in what is compared.

Rows come from compact predictions, which light runs have too: a page is the same whether its runs are whole or light.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from softtargets.claims import examples_variance
from softtargets.runs import CompactPredictions, Run

Row: TypeAlias = NDArray[np.float64]
# A measure, and the outcome it was measured on.
Term: TypeAlias = tuple[str, Any]

# Measures on the validation split are called like those on the test set, with this at the end.
VALIDATION = "_validation"
# What is no mean over examples is computed without each of so many groups of them.
GROUPS = 50


def pseudo_values(
    of: Callable[[NDArray[np.int64]], float], examples: int, *, neighbours: bool = False
) -> Row:
    r"""Tukey's pseudo-values of a measure: what each of G groups of examples contributes, as if it were a mean.

    .. math:: G\,\theta - (G - 1)\,\theta_{(-g)}

    with :math:`\theta_{(-g)}` computed without the examples of group g, every G-th of the test set. `of` takes the
    places of those that are left. With `neighbours` a group is one after another instead: for test sets where
    neighbours belong together, so that groups do not.

    >>> pseudo_values(lambda chosen: float(chosen.mean()), 4)
    array([0., 1., 2., 3.])
    """
    places, member = np.arange(examples), groups_of(examples, neighbours=neighbours)
    without = [of(places[member != group]) for group in range(count_groups(examples))]
    return pseudo_values_of(of(places), without)


def count_groups(examples: int) -> int:
    """Into how many groups so many examples are put."""
    return min(GROUPS, examples)


def groups_of(examples: int, *, neighbours: bool = False) -> NDArray[np.int64]:
    """The group of each example, as `pseudo_values` forms them."""
    groups, places = count_groups(examples), np.arange(examples)
    return np.asarray(places * groups // examples if neighbours else places % groups)


def pseudo_values_of(whole: float, without: Sequence[float]) -> Row:
    """Pseudo-values of a measure of all examples, and of all but those of each group."""
    groups = len(without)
    return np.asarray(groups * whole - (groups - 1) * np.array(without))


def _right(test: CompactPredictions) -> Row:
    return test.right.astype(np.float64)


def _costs(test: CompactPredictions) -> Row:
    return test.costs


def _ece(test: CompactPredictions) -> Row:
    return pseudo_values(lambda chosen: test.part(chosen).ece, len(test))


# Measures that are made of test examples, up to their sign: what each contributes.
PER_EXAMPLE: Mapping[str, Callable[[CompactPredictions], Row]] = {
    "accuracy": _right,
    "error": _right,
    "loss": _costs,
    "nll": _costs,
    "ece": _ece,
}


def chance_of_examples(measure: str, seeds: Sequence[Sequence[tuple[Any, Any]]]) -> float | None:
    """The variance that test examples add to the mean difference of a measure, of pairs of outcomes for each seed.

    None where it is not known: another measure, fewer than two seeds, or a run without its predictions. A measure
    whose name ends in ``_validation`` is made of the examples of that split. Where outcomes have
    ``details["pseudo_values"]`` of the measure, these are taken: of translations, whose tokens are not independent.
    """
    return chance_of_contrast(
        [[((measure, this), (measure, that)) for this, that in pairs] for pairs in seeds]
    )


def chance_of_contrast(seeds: Sequence[Sequence[tuple[Term, Term | None]]]) -> float | None:
    """The same where the two of a pair have measures of their own, or where there is nothing to take away."""
    rows = [_difference(pairs) for pairs in seeds]
    there = [row for row in rows if row is not None]
    if len(there) < max(len(rows), 2) or len({len(row) for row in there}) > 1 or len(there[0]) < 2:
        return None
    return examples_variance(np.stack(there))


def _difference(pairs: Sequence[tuple[Term, Term | None]]) -> Row | None:
    """Nothing where a row is missing, or where parts of a test set are so small that their rows differ in length."""
    rows: list[Row] = []
    for this, that in pairs:
        both = [_row(*one) for one in (this, that) if one is not None]
        there = [row for row in both if row is not None]
        if len(there) < len(both) or len({len(row) for row in (*there, *rows)}) > 1:
            return None
        rows.append(there[0] if that is None else there[0] - there[1])
    return np.asarray(np.mean(rows, axis=0)) if rows else None


def _row(measure: str, outcome: Any) -> Row | None:
    told = outcome.details.get("pseudo_values", {}).get(measure)
    if told is not None:
        return np.asarray(told, dtype=np.float64)
    run = outcome.run
    if measure.removesuffix(VALIDATION) not in PER_EXAMPLE:
        return None
    split = "validation" if measure.endswith(VALIDATION) else "test"
    if not isinstance(run, Run) or not run.has_compact(split):
        return None
    return _read(measure.removesuffix(VALIDATION), split, run.directory, run.directory.stat().st_mtime_ns)


@lru_cache(maxsize=1024)
def _read(measure: str, split: str, directory: Path, _written: int) -> Row:
    """Computed once: a run takes part in several comparisons of a page."""
    return PER_EXAMPLE[measure](_compact(split, directory, _written))


@lru_cache(maxsize=1024)
def _compact(split: str, directory: Path, _written: int) -> CompactPredictions:
    """Read once: a run is compared in several measures."""
    return Run(directory).compact(split)
