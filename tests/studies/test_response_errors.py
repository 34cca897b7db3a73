"""The response's fine and coarse errors: counted by hand, claims, pages."""

from __future__ import annotations

import json

import pytest

from softtargets.claims import examples_variance, judge
from softtargets.data import CIFAR100_SUPERCLASS
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from tests.studies.making import told, written

STUDY = find_study(STUDIES, "response-errors")


def made_up(size="full", **changed):
    """Five seeds around the printed counts; ``fine=(1209, 1400)`` changes one."""
    counts = {"fine": (1209, 1217), "coarse": (1577, 1515)} | changed

    def measures(trial):
        place = int(trial.labels["alpha"] > 0)
        fine, coarse = (counts[kind][place] + trial.recipe.seed for kind in ("fine", "coarse"))
        found = {
            "fine": fine,
            "coarse": coarse,
            "errors": fine + coarse,
            "fine_share": fine / (fine + coarse),
        }
        return found | {f"held_out_{key}": value for key, value in found.items()}

    return told(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        # Six counts come first: all errors, fine, coarse, each hard and smoothed.
        ({"fine": (1209, 1500)}, {1, 3, 6, 8, 9}),
        ({"coarse": (1577, 1800)}, {1, 5, 6, 7, 9}),
        ({"coarse": (1100, 1050)}, {0, 1, 4, 5, 10}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.findings(made_up(**changed)).claims)
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_printed_counts_and_their_changes():
    claims = STUDY.claims(made_up())
    assert [claim.printed for claim in claims[:6]] == [2786, 2732, 1209, 1217, 1577, 1515]
    assert [claim.printed for claim in claims[6:]] == [-54, -62, 8, None, None]
    assert not any(claim.printed for claim in STUDY.claims(made_up("small")))
    assert STUDY.seeds == 5


def test_the_answer_follows_the_verdicts():
    assert STUDY.findings(made_up()).answer == (
        "It saves errors outside the right superclass. Those inside stay close to constant."
    )
    assert STUDY.findings(made_up(coarse=(1577, 1800))).answer.startswith("It saves no errors outside")


def test_errors_are_counted_by_hand(tmp_path):
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(1, {"size": "full"})
    for trial in STUDY.trials(settings):
        written(store, trial)
    made = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=None, device="cpu")
    results = json.loads((made.parent / "results.json").read_text())
    for row in results["tables"]["runs"]:
        for prefix, split in (("", "test"), ("held_out_", "validation")):
            said = store.find(
                next(t.recipe for t in STUDY.trials(settings) if t.recipe.id == row["run"])
            ).predictions(split)
            fine = coarse = 0
            for guess, label in zip(said.logits.argmax(-1).tolist(), said.labels.tolist(), strict=True):
                same = CIFAR100_SUPERCLASS[guess] == CIFAR100_SUPERCLASS[label]
                fine += same and guess != label
                coarse += not same
            assert row[f"{prefix}fine"] == pytest.approx(1e4 * fine / len(said.labels))
            assert row[f"{prefix}coarse"] == pytest.approx(1e4 * coarse / len(said.labels))
            assert row[f"{prefix}fine_share"] == pytest.approx(fine / (fine + coarse))


def test_a_page_of_one_kind(tmp_path):
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(2, {"size": "full"})
    for trial in STUDY.trials(settings):
        if trial.labels["alpha"] == 0:
            written(store, trial)
    made = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=None, device="cpu")
    results = json.loads((made.parent / "results.json").read_text())
    assert results["answer"].startswith("Not known yet")
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}


def test_changes_have_the_chance_of_the_test_images(tmp_path):
    """By hand: of each image whether it is a fine or a coarse error, with smoothing minus without."""
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(5, {"size": "full"})
    for trial in STUDY.trials(settings):
        written(store, trial)
    trained = [(trial, store.find(trial.recipe)) for trial in STUDY.trials(settings)]
    results = Results(
        tuple(Outcome(t, run, STUDY.measure(t, run), STUDY.details(t, run)) for t, run in trained)
    )
    changes = {"errors": 6, "coarse": 7, "fine": 8}
    claims = STUDY.claims(results)
    for kind, place in changes.items():
        table = [[0.0] * 50 for _ in range(5)]
        for trial, run in trained:
            sign = 1 if trial.labels["alpha"] else -1
            said = run.predictions("test")
            guesses = said.logits.argmax(-1).tolist()
            for image, (guess, label) in enumerate(zip(guesses, said.labels.tolist(), strict=True)):
                same = CIFAR100_SUPERCLASS[guess] == CIFAR100_SUPERCLASS[label]
                counts = {"errors": guess != label, "coarse": not same, "fine": same and guess != label}
                table[trial.recipe.seed][image % 50] += sign * 1e4 * counts[kind] / 6  # of 300, every 50th
        assert claims[place].sample.examples == pytest.approx(examples_variance(table))
        assert claims[place].sample.examples > 0
    assert claims[9].sample.examples > 0
    assert claims[10].sample.examples > 0
