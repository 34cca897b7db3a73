"""What a study is: a grid of recipes, measurements on their runs, and what they come to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softtargets.claims import Claim, paper
from softtargets.exceptions import StudyError, nearest
from softtargets.recipes import Recipe
from softtargets.report import Section
from softtargets.runs import Measured, Run

if TYPE_CHECKING:
    from softtargets.studies.recorded import RecordedRun
    from softtargets.studies.results import Results
    from softtargets.training.scheduling import Resources

# The papers that studies are about, with their addresses.
CHEN, LU, MULLER, PATRINI, WAGNER, WEI = (
    str(paper(name))
    for name in ("chen-2020", "lu-2023", "muller-2019", "patrini-2017", "wagner-2023", "wei-2022")
)


@dataclass(frozen=True)
class Settings:
    """What a user may change about a study: how many seeds, fields of its base recipes, and which of its sizes."""

    seeds: int
    changes: Mapping[str, Any] = field(default_factory=dict)
    size: str = ""

    def base(self, recipe: Recipe) -> Recipe:
        """A base recipe with the user's changes; a study varies its axes from there."""
        return recipe.replace(self.changes) if self.changes else recipe


@dataclass(frozen=True)
class Trial:
    """One cell of the grid: a recipe, and the study's own names for what distinguishes it."""

    recipe: Recipe
    labels: Mapping[str, Any]


Measure = Callable[[Trial, Run], dict[str, float]]
Details = Callable[[Trial, Run], dict[str, Any]]
# What computes with the models gives numbers alone, or details as well.
Again = Callable[[Trial, Run], dict[str, float] | Measured]


@dataclass(frozen=True)
class Outcome:
    """A trial with its run, or what is recorded of it, what was measured on it, and what figures need besides."""

    trial: Trial
    run: Run | RecordedRun
    measures: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """The seed of its recipe."""
        return self.trial.recipe.seed


@dataclass(frozen=True)
class Place:
    """Where a study was trained, for an instrument that computes with the models again: its data and its device.

    `supplies` are the corpora and images that instruments of one place have loaded, by the store of their runs: a
    campaign measures for many studies, and to read a corpus and learn its pieces takes seconds each time.
    """

    data_dir: Path | None = None
    device: str = "auto"
    supplies: dict[Path, Resources] = field(default_factory=dict, init=False, repr=False, compare=False)


@dataclass(frozen=True)
class Findings:
    """What a study has to say about its results; `answer` is that to the question of its title, in a sentence."""

    sections: tuple[Section, ...]
    claims: tuple[Claim, ...]
    answer: str = ""


def _nothing_to_train(settings: Settings) -> list[Trial]:
    return []


def _nothing_to_measure(trial: Trial, run: Run) -> dict[str, float]:
    return {}


def _no_details(trial: Trial, run: Run) -> dict[str, Any]:
    return {}


def _no_claims(results: Results) -> tuple[Claim, ...]:
    return ()


@dataclass(frozen=True)
class Study:
    """A table or figure of a paper (or a few of them) as one object; each lives in a module of this room.

    trials:   the grid, given the user's settings; a study that only computes has none.
    keep:     the splits whose predictions the measurements need, the test set unless told; "test:scores" without
              penultimate activations.
    measure:  numbers from one run.
    details:  what figures need of one run besides numbers, as plain values for JSON, small (bins of a reliability
              diagram, a few hundred points): it is kept with the page, which can so be drawn again without the run.
              It depends on the run alone.
    findings: tables, figures and claims from all of them.
    axes:     fields the grid itself varies, which ``--set`` therefore may not change.
    again:    makes one more measurement for a whole call, where stored predictions are not enough: it may compute
              with the models and the data, and keep what several runs share. What it makes gives numbers, or, for
              figures that need the model too, ``Measured(measures, details)``.
    timed:    a measurement takes time on the device, so that nothing else may train there meanwhile.
    claims:   the claims alone, which are known before there are runs.
    sizes:    names of the sizes that the grid comes in, the default first; ``--set size=NAME`` chooses.
    """

    name: str
    title: str
    lead: str
    papers: Sequence[str]
    findings: Callable[[Results], Findings]
    trials: Callable[[Settings], list[Trial]] = _nothing_to_train
    keep: tuple[str, ...] = ("test",)
    measure: Measure = _nothing_to_measure
    details: Details = _no_details
    axes: tuple[str, ...] = ("seed",)
    seeds: int = 5
    again: Callable[[Place], Again] | None = None
    timed: bool = False
    sizes: tuple[str, ...] = ()
    claims: Callable[[Results], Sequence[Claim]] = _no_claims

    def settings(self, seeds: int | None = None, changes: Mapping[str, Any] | None = None) -> Settings:
        """The user's settings, refused where they make no sense for this study."""
        count = self.seeds if seeds is None else seeds
        if count < 1:
            raise StudyError(f"--seeds must be at least 1, not {count}")
        changes = dict(changes or {})
        # Without sizes it is a field like any other, and recipes say that they have none of that name.
        size = self._size(changes.pop("size", self.sizes[0])) if self.sizes else ""
        for key in changes:
            if key in self.axes:
                advice = "use --seeds" if key == "seed" else "it is what the study compares"
                raise StudyError(f"--set {key}: the study '{self.name}' varies {key} itself; {advice}")
            if self.trials is _nothing_to_train:
                raise StudyError(
                    f"--set {key}: the study '{self.name}' trains nothing, so it has no recipe to change"
                )
        return Settings(count, changes, size)

    def _size(self, name: Any) -> str:
        if name not in self.sizes:
            close = nearest(str(name), self.sizes)
            raise StudyError(
                f"--set size={name}: the study '{self.name}' has no such size{close}; it has: {', '.join(self.sizes)}"
            )
        return str(name)


# How people shorten names of studies, part by part.
_SHORT = {"fig": "figure", "tab": "table", "re": "wagner"}


def find_study(studies: Iterable[Study], name: str) -> Study:
    """A study by name, or an error with the nearest one; short names are understood too (`long_name`)."""
    known = {study.name: study for study in studies}
    found = known.get(name) or known.get(long_name(name))
    if found is None:
        raise StudyError(f"there is no study '{name}'{nearest(name, known)}; there are: {', '.join(known)}")
    return found


def long_name(name: str) -> str:
    """What a short name of a study stands for.

    >>> long_name("muller-fig3"), long_name("re-fig-4"), long_name("labo-tab1"), long_name("quickstart")
    ('muller-figure-3', 'wagner-figure-4', 'labo-table-1', 'quickstart')
    """
    parts = re.findall(r"[^\W\d]+|\d+|[^-]", name.lower())
    return "-".join(_SHORT.get(part, part) for part in parts)
