"""How fast trainings go: as finished runs did, else as a table of measured speeds says, else guessed."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from softtargets.campaign.token_work import token_work, work_of
from softtargets.exceptions import CampaignError, RecipeError
from softtargets.recipes import Recipe, Transformer, parse_yaml, read_text
from softtargets.runs import Run
from softtargets.training import asks_in_every_step, kind_of_run

SPEEDS = "speeds.yaml"  # beside the campaign
Source = Literal["measured", "table", "guessed"]

# Packs narrower than any that was measured: k times as many runs were 1.4 to 1.9 times as fast for k = 4, and 2.9 to
# 4.2 times for k = 16, on an H200 (benchmarks/training): k to the power of 0.4.
_NARROW = 0.4
# Where nothing is known. For a GPU they are those of a ResNet, the slowest that most campaigns have of images.
_GUESSES: Mapping[str, tuple[Mapping[int, float], float]] = {
    "cuda": ({1: 30_000.0, 4: 50_000.0}, 90.0),
    "cpu": ({1: 5_000.0}, 3.0),
}
# The same for translation, by its work (`token_work`): multiplications of a forward pass per second of training, as an
# H200 did with small models; for a CPU no more tokens a second than the second number says, however small the model.
_GUESSED_WORK: Mapping[str, tuple[float, float]] = {"cuda": (1.6e13, math.inf), "cpu": (1.5e10, 20_000.0)}
# The share of a training step that is its forward pass, which is all that a teacher does: one of three that are alike.
_FORWARD = 1 / 3
_RATES = ("images_per_second", "tokens_per_second")
_ALLOWED = ("model", "data", *_RATES, "setup_seconds")


@dataclass(frozen=True)
class Speed:
    """Images (or tokens) per second of a device, by how many runs train together, and seconds until the first step.

    >>> speed = Speed({1: 45_000.0, 4: 64_000.0}, setup=60.0, source="table")
    >>> round(speed.per_second(2)), speed.per_second(16)
    (53666, 64000.0)
    """

    points: Mapping[int, float]
    setup: float
    source: Source

    def per_second(self, together: int) -> float:
        """Of so many runs together: between two that were measured in proportion, on scales of ratios."""
        known = sorted(self.points)
        if together >= known[-1]:
            return self.points[known[-1]]
        if together <= known[0]:
            return float(self.points[known[0]] * (together / known[0]) ** _NARROW)
        above = next(width for width in known if width >= together)
        below = max(width for width in known if width <= together)
        if above == below:
            return self.points[above]
        share = math.log(together / below) / math.log(above / below)
        return float(self.points[below] ** (1 - share) * self.points[above] ** share)

    def asking(self, teacher: Speed) -> Speed:
        """The same with a teacher that computes along; set-up is the student's.

        >>> Speed({1: 300.0}, 9.0, "table").asking(Speed({1: 100.0}, 5.0, "table"))
        Speed(points={1: 150.0}, setup=9.0, source='table')
        """
        seconds = {
            width: 1 / self.per_second(width) + _FORWARD / teacher.per_second(width)
            for width in sorted({*self.points, *teacher.points})
        }
        source: Source = "guessed" if "guessed" in (self.source, teacher.source) else self.source
        return Speed({width: 1 / each for width, each in seconds.items()}, self.setup, source)

    def times(self, factor: float, source: Source) -> Speed:
        """So many times as fast, as is known in another way."""
        return Speed({width: factor * rate for width, rate in self.points.items()}, self.setup, source)


@dataclass(frozen=True)
class _Row:
    """A line of the table: models (and data) with all of these fields."""

    model: Mapping[str, Any]
    data: str | None
    speed: Speed

    def fits(self, recipe: Recipe) -> bool:
        there = {"name": recipe.model.name, **recipe.model.to_dict()}
        same = all(key in there and _plain(there[key]) == _plain(value) for key, value in self.model.items())
        return same and self.data in (None, recipe.data.name)

    @property
    def work(self) -> int | None:
        """Of a token, if it is of a model that translates."""
        if self.model["name"] != Transformer.name:
            return None
        return token_work(Transformer(**{key: value for key, value in self.model.items() if key != "name"}))


@dataclass
class Speeds:
    """Speeds on one device; `kind` is cuda or cpu."""

    device: str
    kind: str
    table: Sequence[_Row] = ()
    _exact: dict[Hashable, Speed] = field(default_factory=dict)
    _alike: dict[Hashable, Speed] = field(default_factory=dict)

    def learn(self, runs: Iterable[Run]) -> None:
        """Take over what finished runs on this device say."""
        exact: dict[Hashable, list[Run]] = defaultdict(list)
        alike: dict[Hashable, list[Run]] = defaultdict(list)
        for run in runs:
            if run.status == "finished" and run.provenance.get("device_name") == self.device and _pace(run):
                exact[_same(run.recipe)].append(run)
                alike[_alike(run.recipe)].append(run)
        self._exact |= {key: _measured(found, self._beside(found[0].recipe)) for key, found in exact.items()}
        self._alike |= {key: _measured(found, self._beside(found[0].recipe)) for key, found in alike.items()}

    def of(self, recipe: Recipe) -> Speed:
        """The speed of trainings like this one."""
        for found in (self._exact.get(_same(recipe)), self._alike.get(_alike(recipe))):
            if found is not None:
                return found
        return self._beside(recipe)

    def _beside(self, recipe: Recipe) -> Speed:
        """What is known without runs like this one."""
        alone = self._without_teacher(recipe)
        if recipe.teacher is None or not asks_in_every_step(recipe):
            return alone
        return alone.asking(self.of(recipe.teacher))

    def _without_teacher(self, recipe: Recipe) -> Speed:
        fitting = [row for row in self.table if row.fits(recipe)]
        work = work_of(recipe)
        if work is not None:
            return self._translating(work, fitting)
        if fitting:
            return max(fitting, key=lambda row: (len(row.model), row.data is not None)).speed
        points, setup = _GUESSES[self.kind]
        return Speed(points, setup, "guessed")

    def _translating(self, work: int, fitting: Sequence[_Row]) -> Speed:
        """As fast as the measured model that is nearest in its work, and slower or faster by that."""
        known = [(row, row.work) for row in fitting or self.table if row.work is not None]
        if known:
            row, own = min(known, key=lambda one: abs(math.log(one[1] / work)))
            return row.speed.times(own / work, "table" if fitting else "guessed")
        pace, most = _GUESSED_WORK[self.kind]
        return Speed({1: min(most, pace / work)}, _GUESSES[self.kind][1], "guessed")


def read_table(path: Path) -> dict[str, list[_Row]]:
    """The table of measured speeds by device; where there is none, it is empty."""
    if not path.exists():
        return {}
    tree = parse_yaml(read_text(path), str(path))
    if not isinstance(tree, Mapping):
        raise CampaignError(
            f"{path} is not a table of speeds: it needs a list for each device, under the device's name"
        )
    return {
        str(device): [_row(path, str(device), row) for row in rows or ()] for device, rows in tree.items()
    }


def _row(path: Path, device: str, row: Any) -> _Row:
    try:
        if unknown := set(row) - set(_ALLOWED):
            raise ValueError(f"'{min(unknown)}' is not one of {', '.join(_ALLOWED)}")
        model, (rates,) = row["model"], [row[name] for name in _RATES if name in row]
        points = {int(width): float(rate) for width, rate in rates.items()}
        if not points or any(width < 1 or rate <= 0 for width, rate in points.items()):
            raise ValueError("rates must be above 0, for at least 1 run")
        named = {"name": model} if isinstance(model, str) else dict(model)
        found = _Row(named, row.get("data"), Speed(points, float(row["setup_seconds"]), "table"))
        if (found.work is None) == ("tokens_per_second" in row):
            raise ValueError("translation models have tokens_per_second, others images_per_second")
        return found
    except (KeyError, TypeError, ValueError, AttributeError, RecipeError) as error:
        raise CampaignError(
            f"{path}, {device}: {row!r} does not give a speed ({error}); write it as "
            f"{{model: mlp, images_per_second: {{1: 680000, 128: 3700000}}, setup_seconds: 30}}"
        ) from None


def _pace(run: Run) -> float | None:
    """Images per second of the pack that a run was in, without what was set-up."""
    told = run.provenance
    seconds = told.get("seconds", 0.0) - told.get("setup_seconds", 0.0)
    return run.units / seconds if seconds > 0 and run.units else None


def _measured(runs: Sequence[Run], beside: Speed) -> Speed:
    """The median pace for each width of pack, and the median set-up where runs say it."""
    paces: dict[int, list[float]] = defaultdict(list)
    setups = []
    for run in runs:
        told = run.provenance
        width = max(1, int(told.get("runs_together", 1)))
        paces[width].append(_pace(run) or 0.0)
        if not told.get("resumed") and "setup_seconds" in told:
            setups.append(told["setup_seconds"] * width)
    points = {width: statistics.median(found) for width, found in paces.items()}
    return Speed(points, statistics.median(setups) if setups else beside.setup, "measured")


def _same(recipe: Recipe) -> Hashable:
    """Students of words are of the kind of those without a teacher, which does not compute along."""
    return kind_of_run(recipe), asks_in_every_step(recipe)


def _alike(recipe: Recipe) -> Hashable:
    """What decides most of the speed, where no run of the very same kind is there."""
    return (
        recipe.model,
        recipe.data.name,
        recipe.precision,
        recipe.batch,
        recipe.teacher and recipe.teacher.model,
        asks_in_every_step(recipe),
    )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
