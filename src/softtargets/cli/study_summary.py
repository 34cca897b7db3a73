"""What a study is, in some lines: data, models, cost, how much is done, and the claims it tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

from softtargets.cli.console import duration
from softtargets.cli.pace import common_unit
from softtargets.recipes import Recipe
from softtargets.report import plural
from softtargets.studies import Results, Settings, Study, Trial

_LABEL = 10


@dataclass(frozen=True)
class Summary:
    """A study and how far it is; `seconds` are those of all finished runs, by id, and `command` runs the study."""

    study: Study
    settings: Settings
    trials: Sequence[Trial]
    seconds: Mapping[str, float | None]
    runs_dir: Path
    data_dir: Path | None
    command: str

    def lines(self) -> Iterator[str]:
        """What there is to say, as wide as the terminal."""
        study, size = self.study, self.settings.size
        yield from (fill(study.title, _width()), "", fill(study.lead, _width()), "")
        for position, paper in enumerate(study.papers):
            yield _field("" if position else "papers", paper)
        yield from self._training()
        if study.sizes:
            yield _field("sizes", f"{', '.join(study.sizes)}; this is {size} (--set size=NAME)")
        claims = study.claims(Results(()))
        yield from ("", f"It tests {plural(len(claims), 'claim')}:")
        for claim in claims:
            yield fill(claim.statement, _width(), initial_indent="  - ", subsequent_indent="    ")
        yield from ("", f"Run it: {self.command}")

    def _training(self) -> Iterator[str]:
        from softtargets.data import status

        recipes = [trial.recipe for trial in self.trials]
        if not recipes:
            yield _field("runs", "none: the study only computes")
            return
        datasets = dict.fromkeys(recipe.data.name for recipe in recipes)
        yield _field("data", ", ".join(f"{name} ({status(name, self.data_dir)})" for name in datasets))
        yield _field("models", ", ".join(dict.fromkeys(recipe.model.name for recipe in recipes)))
        done = {recipe.id for recipe in recipes if recipe.id in self.seconds}
        each = plural(self.settings.seeds, "seed")
        yield _field("runs", f"{len(recipes):,} with {each}, {len(done):,} finished in {self.runs_dir}")
        yield _field("cost", _cost(recipes, done, self.seconds))


def _cost(recipes: Sequence[Recipe], done: set[str], seconds: Mapping[str, float | None]) -> str:
    """How much there is to train, in images or tokens and, where runs have been timed, in seconds."""
    left = [recipe for recipe in recipes if recipe.id not in done]
    said = []
    lengths = sorted({recipe.epochs for recipe in recipes if recipe.epochs})
    if lengths:
        said.append(f"{_range(lengths)} epochs each")
    work = [(recipe.units, recipe) for recipe in recipes]
    if all(count is not None for count, _ in work):
        total = sum(count or 0 for count, _ in work)
        said.append(f"{_millions(total)} {common_unit({recipe.data.unit for recipe in recipes})} in all")
        if done and left:
            rest = sum(count or 0 for count, recipe in work if recipe.id not in done)
            said.append(f"{_millions(rest)} left")
    timed = [spent for name in done if (spent := seconds[name]) is not None]
    if timed:
        average = sum(timed) / len(timed)
        said.append(f"finished runs took {average:.1f} s each")
        if left:
            said.append(f"at that rate the rest takes {duration(average * len(left))}, one run at a time")
    return "; ".join(said)


def _millions(count: int) -> str:
    """A large number in short.

    >>> _millions(912_000), _millions(2_640_000), _millions(1_440_000_000)
    ('912,000', '2.6 million', '1.4 billion')
    """
    for size, word in ((1e9, "billion"), (1e6, "million")):
        if count >= size:
            return f"{count / size:,.1f} {word}"
    return f"{count:,}"


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _width() -> int:
    return max(40, min(100, shutil.get_terminal_size().columns))


def _field(label: str, text: str) -> str:
    return fill(text, _width(), initial_indent=label.ljust(_LABEL), subsequent_indent=" " * _LABEL)
