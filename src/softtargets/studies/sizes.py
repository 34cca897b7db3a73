"""The size of a study's runs, and which of them its claims are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from softtargets.studies.results import Results
from softtargets.studies.study import Settings, Trial

SMALL, FULL = "small", "full"


def size_of(results: Results) -> str:
    """The size of the runs; without any the full one, which claims are about."""
    return str(results.outcomes[0].trial.labels.get("size", FULL)) if results.outcomes else FULL


def by_protocol(results: Results, trials: Callable[[Settings], Sequence[Trial]]) -> Results:
    """The runs that claims are about: not of the small size, which decides nothing, and without a user's changes."""
    size = size_of(results)
    if size == SMALL or not results.outcomes:
        return Results((), results.chances)
    wanted = {trial.recipe.id for trial in trials(Settings(max(results.seeds) + 1, {}, size))}
    kept = tuple(outcome for outcome in results.outcomes if outcome.trial.recipe.id in wanted)
    failed = tuple(trial for trial in results.failed if trial.recipe.id in wanted)
    return Results(kept, results.chances, failed)
