"""Teachers with hard and smoothed targets, a smaller student of each, and the student alone with either."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import Distillation, Recipe
from softtargets.runs import Measured, Run
from softtargets.studies.grids import trial
from softtargets.studies.labo_translation.measures import sentences_of
from softtargets.studies.labo_translation.protocol import HARD, LS, base, loss
from softtargets.studies.study import Place, Settings, Trial
from softtargets.studies.translation.measures import TranslatedRuns, chances, shares_of
from softtargets.studies.translation.protocols import AXES as OTHERS
from softtargets.translation import TokenPredictions

AXES = (*OTHERS, "model")
# Seeds that decide: small differences between students are what it is about.
SEEDS = 5
TEACHERS = (HARD, LS)
# What makes the student's model of the teacher's: an eighth of the weights in its layers.
STUDENT: Mapping[str, Mapping[str, Any]] = {
    "full": {"model.width": 256, "model.inner": 512, "model.encoder_layers": 3, "model.decoder_layers": 3},
    "small": {"model.width": 32, "model.inner": 64, "model.encoder_layers": 1, "model.decoder_layers": 1},
}


def trials(settings: Settings) -> list[Trial]:
    """For each seed two teachers, which are runs of LABO's table 1, two students alone, and a student of each teacher.

    `role` is teacher, alone or student; `method` is how it was trained, of a student how its teacher was.
    """
    size = settings.size
    large = base(settings)
    grid = []
    for seed in range(settings.seeds):
        for method in TEACHERS:
            taught = large.replace({"regulariser": loss(method, size), "seed": seed})
            alone = taught.replace(STUDENT[size])
            soft = {"regulariser": Distillation(teacher=taught)}
            for role, recipe in (("teacher", taught), ("alone", alone), ("student", alone.replace(soft))):
                grid.append(trial(recipe, {}, size=size, role=role, method=method))
    return grid


def teacher_of(learnt: Recipe, size: str, method: str) -> Recipe:
    """The large model with the same seed that was trained with a method."""
    large = base(Settings(1, {}, size))
    return learnt.replace({"model": large.model, "regulariser": loss(method, size)})


class Agreement:
    """BLEU, likelihood and calibration, and in how many next tokens a student agrees with each teacher."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)
        self._said: dict[str, TokenPredictions] = {}

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """On the test set; agreement is the share of tokens of which both predict the same, after a correct prefix."""
        found, tokens = self._runs.translations(run, most=sentences_of(trial)), self._runs.tokens(run)
        measures = {"bleu": found.bleu(), "nll": tokens.nll, "ece": tokens.ece(), "accuracy": tokens.accuracy}
        pseudo = chances(found, tokens)
        if trial.labels["role"] != "teacher":
            for method in TEACHERS:
                teacher = teacher_of(trial.recipe, str(trial.labels["size"]), method)
                said = self._of_teacher(run, teacher)
                if said is None:
                    continue
                both = replace(tokens, labels=said.predicted)  # what the teacher predicts is the label
                measures[f"agreement_{method}"] = both.accuracy
                pseudo[f"agreement_{method}"] = shares_of(
                    lambda chosen, both=both: both.part(chosen).accuracy,  # type: ignore[misc]
                    len(tokens.lengths),
                )
        return Measured(measures, {"pseudo_values": pseudo})

    def _of_teacher(self, run: Run, teacher: Recipe) -> TokenPredictions | None:
        """What a teacher, which lies beside its students, predicts; nothing where its weights are not there."""
        if teacher.id not in self._said:
            try:
                self._said[teacher.id] = self._runs.tokens(Run(run.directory.parent / teacher.id))
            except SofttargetsError:
                return None
        return self._said[teacher.id]
