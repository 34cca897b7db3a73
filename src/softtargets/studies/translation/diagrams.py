"""Reliability diagrams of translation models: predictions of the next token, given a correct prefix."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.studies.reliabilities import BINS, Diagram, bins_of, pooled
from softtargets.studies.results import Results
from softtargets.translation import TokenPredictions

# A curve of a diagram: the detail with its bins, the measure with its likelihood, its name and its colour.
Look = tuple[str, str, str, str]


def token_bins(tokens: TokenPredictions) -> dict[str, list[float]]:
    """What a reliability diagram needs of one run, as `reliabilities.kept_bins` has it of images."""
    return bins_of(tokens.reliability(BINS))


def curves(results: Results, looks: Sequence[Look]) -> list[Diagram]:
    """One for each look of which there are bins, predictions of all seeds together."""
    found = []
    for kept, nll, name, colour in looks:
        there = [one for one in results.outcomes if kept in one.details]
        bins = pooled(one.details[kept] for one in there)
        if bins is not None:
            found.append(Diagram(name, colour, bins, results.sample(nll).mean))
    return found
