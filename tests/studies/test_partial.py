"""Pages of part of the runs: a cell, a way or a seed that is missing never keeps a page from being made."""

from __future__ import annotations

import pytest

from softtargets.claims import judge
from softtargets.report import Figure
from softtargets.report.widgets import check_widget
from softtargets.studies import STUDIES, Outcome, Results
from tests.studies.making import Told

NAMES = ("chen-mnist", "chen-cifar10", "chen-section-4", "chen-section-4-cifar10", "chen-logit-smoothing",
         "chen-forward-correction", "chen-human-noise", "beyond-temperature", "beyond-selection")  # fmt: skip
MINE = [study for study in STUDIES if study.name in NAMES]
# All that these studies measure; what is only known with smoothing is so here.
ALWAYS = ("loss", "loss_alpha", "loss_beta", "loss_gamma", "loss_trained", "accuracy", "early_accuracy", "early_loss",
          "by_heart", "left", "ece", "ece_scaled", "ece_gained", "nll", "nll_scaled", "nll_gained", "temperature",
          "aurc", "excess_aurc", "excess_aurc_normalised", "recovered", "accuracy_at_80", "accuracy_at_90",
          "accuracy_at_80_normalised", "accuracy_at_90_normalised", "clean_rate")  # fmt: skip
SMOOTHED = ("explained", "deviation", "through", "deviation_alpha", "deviation_beta", "deviation_gamma",
            "deviation_trained", "position_alpha", "jensen", "next", "predicted", "averaging")  # fmt: skip


class Provided:
    """What a page says of a run."""

    provenance = {"examples": {"train": 60, "test": 4}, "parameters": 7, "classes": list("abcdefghij")}  # noqa: RUF012
    summary = {"epoch": 2}  # noqa: RUF012


def outcomes(study, size):
    found = []
    for place, trial in enumerate(study.trials(study.settings(changes={"size": size}))):
        smoothed = trial.recipe.regulariser.name != "cross_entropy"
        keys = ALWAYS + (SMOOTHED if smoothed else ())
        measures = dict.fromkeys(keys, 0.3 + 0.01 * (place % 7))
        found.append(Outcome(trial, Provided(), measures))
    return found


def named(outcome, **labels):
    return all(outcome.trial.labels.get(key) == value for key, value in labels.items())


CHOSEN = {
    "one run": lambda found: found[:1],
    "the last run": lambda found: found[-1:],
    "one seed": lambda found: [o for o in found if o.seed == 0],
    "no smoothing": lambda found: [o for o in found if o.trial.recipe.regulariser.name == "cross_entropy"],
    "smoothing only": lambda found: [o for o in found if o.trial.recipe.regulariser.name != "cross_entropy"],
    "all but the last cell": lambda found: [o for o in found if o.trial.labels != found[-1].trial.labels],
    "random noise only": lambda found: [o for o in found if not named(o, source="human")],
    "every third": lambda found: found[::3],
    "seed 1 without seed 0": lambda found: [o for o in found if o.seed == 1],
}


# Of these, figures are drawn too: each lacks all of something.
DRAWN = ("one run", "no smoothing", "smoothing only", "random noise only")


@pytest.mark.parametrize("study", MINE, ids=lambda study: study.name)
def test_a_page_of_part_of_the_runs(study):
    whole = outcomes(study, study.sizes[0])
    for name, chosen in CHOSEN.items():
        found = study.findings(Results(tuple(chosen(whole))))
        assert found.answer
        assert len(judge(found.claims)) == len(study.claims(Results(())))
        words = " ".join(text for section in found.sections for text in section.paragraphs)
        assert "nan" not in words.lower().replace("(", " ").split()
        if name in DRAWN:
            for exhibit in (exhibit for section in found.sections for exhibit in section.exhibits):
                if isinstance(exhibit, Figure):
                    exhibit.draw()
                    if exhibit.widget is not None:
                        check_widget(exhibit.widget)


@pytest.mark.parametrize("study", MINE, ids=lambda study: study.name)
def test_a_claim_is_not_decided_by_part_of_what_it_is_about(study):
    """All cells but one have all their seeds: claims about every cell wait for it."""
    whole = outcomes(study, study.sizes[-1])
    cells = dict.fromkeys(tuple(o.trial.labels.items()) for o in whole)
    left_out = next(iter(cells))
    part = Results(tuple(o for o in whole if tuple(o.trial.labels.items()) != left_out))
    waiting = {one.claim.statement for one in judge(study.claims(part)) if one.verdict == "not run yet"}
    assert waiting
    assert not [one for one in judge(study.claims(Results(tuple(whole)))) if one.verdict == "not run yet"]


def _whole(study):
    size = {"size": "full"} if "full" in study.sizes else {}
    trials = study.trials(study.settings(changes=size))
    return Results(tuple(Outcome(trial, Told([{"epoch": 1, "test_accuracy": 0.3}]), {}) for trial in trials))


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_claims_do_not_come_and_go_with_runs(study):
    """Holm's method counts them all: a claim that came with later runs could turn the verdict on an earlier one."""
    whole = _whole(study)
    named = [claim.published for claim in study.claims(whole)]
    for key in whole.outcomes[0].trial.labels if whole.outcomes else ():
        for value in {outcome.trial.labels.get(key) for outcome in whole.outcomes}:
            found = study.claims(whole.where(**{key: value}))
            assert [claim.published for claim in found] == named, f"of runs with {key} = {value} alone"
