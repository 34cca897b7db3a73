"""What is measured of the penultimate layer of a translation model."""

from __future__ import annotations

from typing import Any

from softtargets.runs import Measured, Run
from softtargets.studies.muller_figure_7.tokens import chosen_tokens, shown
from softtargets.studies.planes import SHOWN, kept_view, plane_numbers
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.measures import TranslatedRuns
from softtargets.translation import TokenCollector, TokenStates

SPLITS = {"train": "training", "validation": "held out"}
# Tokens of a split that are looked at, about: of a large training set every so many-th batch.
ENOUGH = 400_000


class TokenClusters:
    """Clusters of three tokens on the plane of their templates, and how many next tokens are right."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """Numbers of both triples on both splits, and a hundred occurrences of each token for the pictures."""
        task, _, model = self._runs.loaded(run)
        targets = task.splits["train"].targets
        triples = chosen_tokens(task.tokeniser.pieces, targets.flat, targets.begins)
        numbers: dict[str, float] = {}
        details: dict[str, Any] = {}
        for split in SPLITS:
            collected = {name: TokenStates(tokens) for name, tokens in triples.items()}
            said = TokenCollector()
            every = max(1, len(task.splits[split].targets.flat) // ENOUGH)
            for states, labels in self._runs.states(run, split, every):
                said.add(states, labels, model.head)
                for one in collected.values():
                    one.add(states, labels)
            numbers[f"{split}_accuracy"] = said.finish().accuracy
            for name, one in collected.items():
                names = {token: shown(task.tokeniser.pieces[token]) for token in triples[name]}
                view = one.view(model.templates, names=names, most=SHOWN)
                numbers |= {f"{split}_{key}_{name}": value for key, value in plane_numbers(view).items()}
                details[f"{name}_{split}"] = kept_view(view)
        return Measured(numbers, details)
