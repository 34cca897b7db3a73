"""Mutual information during training: from rows of metrics to curves that are ready to be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from softtargets.arrays import over_seeds

# Bounds that are as close are logarithms of the same number of examples, rounded in a file or two.
_SAME = 1e-9


@dataclass(frozen=True)
class Evolution:
    """What was found in one training: for each step, in rising order, the information and its standard error.

    `bound` is log(examples), the most there can be. All are in nats; the information is unclipped, and can be a little
    below 0 where there is none.
    """

    steps: tuple[int, ...]
    nats: tuple[float, ...]
    standard_error: tuple[float, ...]
    bound: float


@dataclass(frozen=True)
class EvolutionBand:
    """Several trainings: for each step, how many were looked at there, and the lowest, mean and highest of them."""

    steps: tuple[int, ...]
    counts: tuple[int, ...]
    lowest: tuple[float, ...]
    mean: tuple[float, ...]
    highest: tuple[float, ...]
    bound: float


def evolution(
    rows: Iterable[Mapping[str, Any]],
    split: str = "train",
    classes: tuple[int, int] = (0, 5),
    inner: Literal["all", "others"] = "all",
) -> Evolution:
    """Müller et al. 2019, figure 6, of one training, from the rows of its ``metrics.jsonl``.

    Rows without numbers of that split and those classes are passed over: between two looks a training is measured in
    other ways, and a look that found no number says None. `inner` is that of the probe.

    >>> rows = [
    ...     {"step": 1, "test_loss": 2.3},
    ...     {"step": 2, "information.train_0_5_nats": 0.7, "information.train_0_5_standard_error": 0.1,
    ...      "information.train_0_5_bound": 6.4},
    ... ]
    >>> evolution(rows)
    Evolution(steps=(2,), nats=(0.7,), standard_error=(0.1,), bound=6.4)
    """
    kept = list(rows)
    prefix = f"information.{split}_{classes[0]}_{classes[1]}" + ("" if inner == "all" else f"_{inner}")
    found = sorted(_looks(kept, prefix))
    if not found:
        raise ValueError(_nothing(kept, prefix))
    steps, nats, errors, bounds = zip(*found, strict=True)
    for step, following in pairwise(steps):
        if step == following:
            raise ValueError(
                f"step {step} appears twice; pass the rows of one training, or use `band` for several trainings"
            )
    return Evolution(steps, nats, errors, _common_bound(bounds))


def _looks(rows: Iterable[Mapping[str, Any]], prefix: str) -> Iterator[tuple[int, float, float, float]]:
    """Step, information, standard error and bound of every row that has them."""
    for row in rows:
        numbers: list[Any] = [row.get(f"{prefix}_{name}") for name in ("nats", "standard_error", "bound")]
        if None in numbers:
            continue
        step, (nats, error, bound) = int(row["step"]), map(float, numbers)
        if not all(map(math.isfinite, (nats, error, bound))):
            raise ValueError(
                f"numbers of {prefix} must be finite, but at step {step} they are {[nats, error, bound]}"
            )
        yield step, nats, error, bound


def band(evolutions: Iterable[Evolution]) -> EvolutionBand:
    """The lowest, mean and highest of several trainings, such as seeds, step by step.

    A step that only some of them have is there with those; `counts` says how many.

    >>> one = Evolution(steps=(1, 2), nats=(0.5, 1.0), standard_error=(0.1, 0.1), bound=6.4)
    >>> other = Evolution(steps=(2,), nats=(2.0,), standard_error=(0.1,), bound=6.4)
    >>> found = band([one, other])
    >>> found.steps, found.counts, found.lowest, found.mean, found.highest
    ((1, 2), (1, 2), (0.5, 1.0), (0.5, 1.5), (0.5, 2.0))
    """
    curves = list(evolutions)
    if not curves:
        raise ValueError("a band needs at least one evolution")
    found: dict[int, list[float]] = {}
    for curve in curves:
        for step, nats in zip(curve.steps, curve.nats, strict=True):
            found.setdefault(step, []).append(nats)
    bound = _common_bound(curve.bound for curve in curves)
    steps = tuple(sorted(found))
    return EvolutionBand(steps, *over_seeds([found[step] for step in steps]), bound)


def _common_bound(bounds: Iterable[float]) -> float:
    first, *others = bounds
    for other in others:
        if not math.isclose(first, other, abs_tol=_SAME):
            few, many = sorted(round(math.exp(bound)) for bound in (first, other))
            raise ValueError(
                f"information of {few} examples and of {many} cannot be compared; its bound is log(examples)"
            )
    return first


def _nothing(rows: list[Mapping[str, Any]], prefix: str) -> str:
    """Why there is no curve: the names that are there instead."""
    ending = "_nats"
    names = {
        name for row in rows for name in row if name.startswith("information.") and name.endswith(ending)
    }
    wanted = f"no row has a number for {prefix}{ending}"
    if others := sorted(names - {prefix + ending}):
        return f"{wanted}; there are {', '.join(others)}: choose split and classes"
    return f"{wanted}; train with the probe `information` in the recipe"
