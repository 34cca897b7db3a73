"""The response's fine and coarse errors: counted by hand, claims, pages."""

from __future__ import annotations

import json

import pytest

from softtargets.claims import judge
from softtargets.data import CIFAR100_SUPERCLASS
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study, run_study
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
