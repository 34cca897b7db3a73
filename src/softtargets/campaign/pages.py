"""The pages of a campaign: every study with what is there of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from softtargets.campaign.file import Campaign, PlannedPage
from softtargets.exceptions import CampaignError, SofttargetsError, StudyError, nearest
from softtargets.report import plural
from softtargets.runs import Run, RunStore, measured_by
from softtargets.storage import make_directory
from softtargets.studies import Place, measure_runs, run_study

RESULTS = "results.json"


def choose_pages(campaign: Campaign, name: str | None) -> list[PlannedPage]:
    """All pages, or those of one study."""
    if name is None:
        return campaign.pages
    found = [page for page in campaign.pages if name in (page.study.name, page.name)]
    if not found:
        known = [page.name for page in campaign.pages]
        raise CampaignError(
            f"the campaign has no study '{name}'{nearest(name, known)}; it has: {', '.join(known)}"
        )
    return found


def write_pages(
    pages: list[PlannedPage], store: RunStore, out: Path, say: Callable[[str], None], **how: Any
) -> tuple[list[Path], list[str]]:
    """Write the pages of which there is something, each into its directory; returns them, and what went wrong.

    A page is written at the campaign's size and seeds; cells that are not there are "not run yet" on it. One that fails
    is named, and the others are written. One that has numbers which the runs of the store cannot give is left as it is.
    """
    place = Place(how.get("data_dir"), how.get("device", "auto"))
    written, failed = [], []
    for page in pages:
        runs = _runs(page, store)
        if not runs and page.study.trials(page.settings):
            say(f"{page.name}: no run is finished yet.")
            continue
        try:
            unmeasured = _unmeasured(page, runs, place)
            if runs and len(unmeasured) == len(runs):
                say(f"{page.name}: no run has been measured yet.")
                continue
            _check_nothing_is_lost(page, runs, unmeasured, out)
            make_directory(out / page.name)
            path = run_study(
                page.study, page.settings, store, out / page.name, command=page.command, train=None, **how
            )
        except Exception as error:  # whatever is wrong with one study, the others are written
            failed.append(f"{page.name}: {error if isinstance(error, SofttargetsError) else repr(error)}")
            say(f"{failed[-1]} (the page failed)")
            continue
        written.append(path)
        say(f"{page.name}: {plural(len(runs), 'run')}, {path}")
    return written, failed


def _runs(page: PlannedPage, store: RunStore) -> list[Run]:
    """The concluded runs of a page, each once."""
    recipes = {trial.recipe.id: trial.recipe for trial in page.study.trials(page.settings)}
    return [run for recipe in recipes.values() if (run := store.find(recipe)) is not None]


def _unmeasured(page: PlannedPage, runs: list[Run], place: Place) -> set[str]:
    """Light runs of which this study knows nothing: they were made for another, and lost their weights since."""
    unknown = {run.id: run for run in runs if run.is_light and measured_by(run, page.study.name) is None}
    trials = [trial for trial in page.study.trials(page.settings) if trial.recipe.id in unknown]
    trained = [(trial, unknown[trial.recipe.id]) for trial in trials]
    # Some measurements need no more than the log, so it is tried.
    return set(measure_runs(page.study, trained, place, some_missing=True).unmeasured) if trained else set()


def _check_nothing_is_lost(page: PlannedPage, runs: list[Run], unmeasured: set[str], out: Path) -> None:
    """A page never loses runs that it has, nor numbers of them: those must be in the store first."""
    directory = out / page.name
    try:
        rows = json.loads((directory / RESULTS).read_text(encoding="utf-8"))["tables"]["runs"]
        there = {row["run"]: row for row in rows if row["status"] == "finished"}
    except (OSError, ValueError, KeyError, TypeError):
        return
    trials = {trial.recipe.id: trial for trial in page.study.trials(page.settings)}
    if lost := (there.keys() & trials.keys()) - {run.id for run in runs}:
        raise StudyError(
            f"{directory} has {plural(len(lost), 'run')} that the store lacks and that the page would lose; merge "
            f"them first with `softtargets runs merge {directory}`"
        )
    told = {"run", "status", "seed", "seconds"}
    numbers = {
        run
        for run in unmeasured & there.keys()
        if any(
            value is not None for key, value in there[run].items() if key not in {*told, *trials[run].labels}
        )
    }
    if numbers:
        raise StudyError(
            f"{directory} has numbers of {plural(len(numbers), 'run')} that have since been trained again for "
            "another study, and the page would lose these numbers; `softtargets campaign run` trains the runs once "
            "more to measure them"
        )
