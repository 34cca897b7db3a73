"""The outcomes of a study, asked by label, by seed, and for the rows of tables and figures."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softtargets.claims import Sample, split_seeds
from softtargets.exceptions import StudyError
from softtargets.studies.examples import chance_of_contrast
from softtargets.studies.study import Outcome, Trial

Row = dict[str, Any]
# A measure, and the labels of the runs whose it is.
Cell = tuple[str, Mapping[str, Any]]


def over(**axes: Iterable[Any]) -> list[Row]:
    """Every combination of labels, the last one varying fastest: the rows of a table.

    >>> over(a=(0.5, 0.9), p=(1.0,))
    [{'a': 0.5, 'p': 1.0}, {'a': 0.9, 'p': 1.0}]
    """
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


def matching(rows: Iterable[Row], **labels: Any) -> list[Row]:
    """The rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in labels.items())]


def mean(values: Iterable[float]) -> float:
    """Of at least one value."""
    found = list(values)
    return sum(found) / len(found)


@dataclass(frozen=True)
class Results:
    """The outcomes of a study, to be asked by label.

    `chances` remembers, by what was compared, what test examples add to its variance: it is kept with the page, so
    that the page can be made again without the predictions. `failed` are the trials whose runs ended without a result:
    nobody waits for them, as for those that are not trained yet.
    """

    outcomes: tuple[Outcome, ...]
    chances: dict[str, float] = field(default_factory=dict, compare=False)
    failed: tuple[Trial, ...] = ()

    @property
    def seeds(self) -> list[int]:
        """The seeds of which there are runs, rising."""
        return sorted({outcome.seed for outcome in self.outcomes})

    def values(self, label: str) -> list[Any]:
        """The values of a label, in the order of the grid."""
        return list(dict.fromkeys(outcome.trial.labels[label] for outcome in self.outcomes))

    def where(self, **labels: Any) -> Results:
        """The outcomes whose labels have these values."""
        kept = tuple(outcome for outcome in self.outcomes if _has(outcome.trial, labels))
        return Results(kept, self.chances, tuple(trial for trial in self.failed if _has(trial, labels)))

    def lacks(self, **labels: Any) -> bool:
        """Whether no run with these labels has come to its end, with a result or without."""
        found = self.where(**labels)
        return not (found.outcomes or found.failed)

    def sample(self, measure: str, **labels: Any) -> Sample:
        """One measure over seeds, in the order of the seeds; runs that it was not measured on are left out."""
        chosen = sorted(self.where(**labels).outcomes, key=lambda outcome: outcome.seed)
        return Sample.of(outcome.measures[measure] for outcome in chosen if measure in outcome.measures)

    def difference(self, measure: str, this: Mapping[str, Any], that: Mapping[str, Any]) -> Sample:
        """`this` minus `that`, seed by seed, over the seeds for which both finished."""
        return self.gain(measure, [(this, that)])

    def gain(
        self, measure: str, pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], scale: float = 1.0
    ) -> Sample:
        """The mean over pairs of cells of one minus the other, seed by seed, over the seeds that have all of them.

        With the chance of the test examples, where their predictions are stored and the measure is made of them.
        """
        both = [((measure, this), (measure, that)) for this, that in pairs]
        return self._compared(both, [measure, pairs], scale)

    def contrast(self, *pairs: tuple[Cell, Cell | None], scale: float = 1.0) -> Sample:
        """The same where each of a pair has a measure of its own: ``(("bleu", hot), ("bleu_scaled", cold))``.

        None in the place of the second: nothing is taken away.
        """
        return self._compared(pairs, [pairs], scale)

    def _compared(self, pairs: Sequence[tuple[Cell, Cell | None]], called: list[Any], scale: float) -> Sample:
        terms = [[self._by_seed(*cell) if cell else None for cell in pair] for pair in pairs]
        known = [found.keys() for pair in terms for found in pair if found is not None]
        seeds = sorted(set.intersection(*map(set, known))) if known else []
        values = (
            scale * mean(_value(pair, found, seed) for pair, found in zip(pairs, terms, strict=True))
            for seed in seeds
        )
        both = [
            [
                ((this[0], ours[seed]), (that[0], theirs[seed]) if that and theirs is not None else None)
                for (this, that), (ours, theirs) in zip(pairs, terms, strict=True)
                if ours is not None
            ]
            for seed in seeds
        ]
        chance = self._chance(json.dumps([*called, seeds]), both)
        return Sample.of(values, None if chance is None else scale**2 * chance)

    def _chance(
        self, compared: str, both: Sequence[Sequence[tuple[tuple[str, Outcome], tuple[str, Outcome] | None]]]
    ) -> float | None:
        found = chance_of_contrast(both)
        if found is None:
            return self.chances.get(compared)
        self.chances[compared] = found
        return found

    def _by_seed(self, measure: str, labels: Mapping[str, Any]) -> dict[int, Outcome]:
        return {o.seed: o for o in self.where(**labels).outcomes if measure in o.measures}

    def split(self) -> tuple[Results, Results]:
        """The outcomes of the seed that chooses cells, and those of the seeds that judge them."""
        choosing, judging = split_seeds(self.seeds)
        return self._of(choosing), self._of(judging)

    def _of(self, seeds: list[int]) -> Results:
        kept = tuple(outcome for outcome in self.outcomes if outcome.seed in seeds)
        return Results(kept, self.chances, tuple(one for one in self.failed if one.recipe.seed in seeds))

    def first(self, **labels: Any) -> Outcome:
        """The outcome with the lowest seed."""
        chosen = self.where(**labels).outcomes
        if not chosen:
            raise StudyError(
                f"there is no finished run with {labels}; `softtargets runs list` shows the failed runs"
            )
        return min(chosen, key=lambda outcome: outcome.seed)

    def rows(self, cells: Iterable[Mapping[str, Any]], *measures: str) -> tuple[Row, ...]:
        """For each combination of labels (see `over`) these and each measure over seeds."""
        return tuple({**cell, **{key: self.sample(key, **cell) for key in measures}} for cell in cells)

    def cells(self, *labels: str) -> dict[tuple[Any, ...], Mapping[str, float]]:
        """What was measured, by the values of labels; of several seeds the last one's."""
        return {tuple(o.trial.labels[key] for key in labels): o.measures for o in self.outcomes}

    def each_seed(self, of: Callable[[Results], float]) -> Sample:
        """One number from all runs of a seed, for every seed; seeds without some run that it needs are left out."""
        found = []
        for seed in self.seeds:
            try:
                found.append(of(self._of([seed])))
            except (KeyError, ValueError, ZeroDivisionError):
                continue
        return Sample.of(found)

    def shown(self, measure: str, form: str, labels: Mapping[str, Any]) -> str:
        """The mean over seeds, for a sentence: ``0.049``; a dash where nothing was measured."""
        found = self.sample(measure, **labels).mean
        return "–" if math.isnan(found) else format(found, form).replace("%", " %").replace("-", "−")

    def then(self, measure: str, form: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
        """Two means beside each other as papers print them: ``0.049, then 0.065``."""
        return f"{self.shown(measure, form, first)}, then {self.shown(measure, form, second)}"


def _has(trial: Trial, labels: Mapping[str, Any]) -> bool:
    return all(trial.labels.get(key) == value for key, value in labels.items())


def _value(pair: tuple[Cell, Cell | None], found: Sequence[Mapping[int, Outcome] | None], seed: int) -> float:
    this, that = (
        0.0 if cell is None or of is None else of[seed].measures[cell[0]]
        for cell, of in zip(pair, found, strict=True)
    )
    return this - that
