"""Where a claim's numbers come from: a study, and what there is of it in a directory of results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softtargets.claims import Judgement, judge
from softtargets.exceptions import StudyError
from softtargets.recipes import Recipe
from softtargets.report import kept_judgement
from softtargets.studies import Results, Study

RESULTS = "results.json"
# The size of runs that are of none of a study's grids.
OTHER = "other settings"
# A dataset that no paper trains on: what it shows is a demonstration.
_OF_NO_PAPER = "digits"


@dataclass(frozen=True)
class Origin:
    """A study and the results there are of it.

    directory: that of its page, by its name; nothing where it is not run.
    base:      how one gets from the page of the atlas to where these directories are: nothing where it lies there.
    size:      of the study's sizes the one it was run at; "other settings" where its runs are of none.
    runs:      how many are finished, of `wanted`; None where what is wanted is not known.
    small:     smaller than the papers' protocol, so that it says nothing of their numbers.
    """

    study: str
    title: str
    directory: str = ""
    answer: str = ""
    size: str = ""
    runs: int = 0
    wanted: int | None = None
    small: bool = False
    device: str = ""
    code: str = ""
    engine: str = ""
    command: str = ""
    warnings: tuple[str, ...] = ()
    base: str = ""

    @property
    def name(self) -> str:
        """Of the results: a study may have several, under other settings."""
        return self.directory or self.study

    @property
    def page(self) -> str:
        """The address of its page, from that of the atlas; nothing where there is none."""
        return f"{self.base}{self.directory}/index.html" if self.directory else ""

    @property
    def made_of(self) -> str:
        """Its runs in words: ``270 runs``, ``3 of 6 runs``, ``computed``."""
        if self.wanted == 0:
            return "computed, no runs"
        if self.wanted is None or self.runs == self.wanted:
            return f"{self.runs:,} run{'' if self.runs == 1 else 's'}"
        return f"{self.runs:,} of {self.wanted:,} runs"


def origins(directory: Path, studies: Sequence[Study]) -> Iterator[tuple[Origin, tuple[Judgement, ...]]]:
    """All results of each study with its judged claims, in the order of the studies; those without come too."""
    found: dict[str, list[tuple[Path, dict[str, Any]]]] = {}
    for path in sorted(directory.glob(f"*/{RESULTS}")):
        results = _read(path)
        if "study" in results:
            found.setdefault(results["study"], []).append((path.parent, results))
    for study in studies:
        there = found.pop(study.name, [])
        # The study's own settings first.
        for place, results in sorted(there, key=lambda one: one[0].name != study.name):
            yield _recorded(study, place.name, results)
        if not there:
            yield _not_run(study)
    if found:
        name, [(place, _), *_] = next(iter(found.items()))
        raise StudyError(
            f"{place / RESULTS} belongs to the study '{name}', which does not exist; remove that directory, or add "
            "the study"
        )


def _read(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} cannot be read: {error}; write the page of its study again") from error
    return results if isinstance(results, dict) else {}


def _not_run(study: Study) -> tuple[Origin, tuple[Judgement, ...]]:
    size = _largest(study)
    recipes = _recipes(study, size)
    origin = Origin(study.name, study.title, size=size, wanted=len(recipes), small=_made_up(recipes))
    return origin, judge(study.claims(Results(())))


def _recorded(
    study: Study, directory: str, results: Mapping[str, Any]
) -> tuple[Origin, tuple[Judgement, ...]]:
    rows = results.get("tables", {}).get("runs", ())
    finished = {row["run"] for row in rows if row.get("status") == "finished"}
    size, recipes = _size(study, finished)
    told = results.get("provenance", {})
    origin = Origin(
        study.name,
        study.title,
        directory,
        answer=results.get("answer", ""),
        size=size,
        runs=len(finished),
        wanted=len(recipes) if recipes or not finished else None,
        small=_is_small(study, size, results.get("command", "")) or _made_up(recipes),
        device=_device(told.get("device", "")),
        code=told.get("softtargets", ""),
        engine=told.get("engine", ""),
        command=results.get("command", ""),
        warnings=tuple(results.get("warnings", ())),
    )
    digits = {claim.statement: claim.digits for claim in study.claims(Results(()))}
    claims = (kept_judgement(claim, digits.get(claim["statement"], 3)) for claim in results.get("claims", ()))
    return origin, tuple(claims)


def _largest(study: Study) -> str:
    """The size at which a study follows its paper."""
    return "full" if "full" in study.sizes else (study.sizes or ("",))[-1]


def _recipes(study: Study, size: str) -> dict[str, Recipe]:
    settings = study.settings(None, {"size": size} if size else {})
    return {trial.recipe.id: trial.recipe for trial in study.trials(settings)}


def _size(study: Study, finished: set[str]) -> tuple[str, dict[str, Recipe]]:
    """The size that has most of these runs, and all recipes of it; of runs that no size has there is neither."""
    grids = {size: _recipes(study, size) for size in study.sizes or ("",)}
    # Where sizes share runs, the one that these runs come nearest to filling.
    share = {size: (len(finished & grid.keys()), -len(grid)) for size, grid in grids.items()}
    size = max(share, key=lambda name: share[name])
    if finished and not share[size][0]:
        return OTHER, {}
    return size, grids[size]


def _is_small(study: Study, size: str, command: str) -> bool:
    """Whether it was run at another size than the paper's; of other settings the command knows."""
    if not study.sizes:
        return False
    largest = _largest(study)
    return f"size={largest}" not in command if size == OTHER else size != largest


def _made_up(recipes: Mapping[str, Recipe]) -> bool:
    return bool(recipes) and all(recipe.data.name == _OF_NO_PAPER for recipe in recipes.values())


def _device(told: str) -> str:
    """``cuda (NVIDIA H200)`` as people call it.

    >>> _device("cuda (NVIDIA H200)"), _device("cpu (x86_64)"), _device("")
    ('NVIDIA H200', 'CPU (x86_64)', '')
    """
    found = re.fullmatch(r"cuda \((.+)\)", told)
    return found[1] if found else told.replace("cpu", "CPU", 1)
