"""Table 2 of Müller et al.: claims, and pages from all, some and no runs."""

from __future__ import annotations

import csv
import json

import pytest

from softtargets.claims import judge
from softtargets.exceptions import StudyError
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study, run_study
from tests.studies.making import told, written

STUDY = find_study(STUDIES, "muller-table-2")
PRINTED = {
    ("cifar10", 0.0): 86.8,
    ("cifar10", 0.1): 86.7,
    ("cifar100", 0.0): 72.1,
    ("cifar100", 0.1): 72.7,
}


def made_up(size="full", **changed):
    """Accuracies as printed plus a jitter, but for changed cells, ``cifar10_0_1=80``."""

    def measures(trial):
        key = (trial.labels["network"], trial.labels["alpha"])
        name = f"{key[0]}_{key[1]}".replace(".", "_")
        value = (changed.get(name, PRINTED[key]) + 0.02 * trial.recipe.seed) / 100
        return {"accuracy": value, "held_out_accuracy": value, "nll": 1.0}

    return told(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"cifar10_0_0": 84.0}, {0, 4}),
        ({"cifar10_0_0": 84.0, "cifar10_0_1": 84.0}, {0, 1}),
        ({"cifar100_0_1": 70.0}, {3, 5}),
        ({"cifar100_0_0": 74.5}, {2, 5}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.findings(made_up(**changed)).claims)
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_printed_numbers_have_margins_of_their_test_set():
    claims = STUDY.claims(made_up())
    assert [claim.printed for claim in claims] == [86.8, 86.7, 72.1, 72.7, None, pytest.approx(0.6)]
    assert [claim.margin for claim in claims[:4]] == [0.68, 0.68, 0.9, 0.89]


def test_other_sizes_have_directions_only():
    assert [claim.printed for claim in STUDY.claims(made_up("small"))] == [None, None]


def test_the_answer_follows_the_verdicts():
    said = STUDY.findings(made_up()).answer
    assert said == (
        "It leaves the accuracy of AlexNet on CIFAR-10 as it is, and it makes ResNet-56 on CIFAR-100 more accurate."
    )
    assert STUDY.findings(told(STUDY, lambda trial: {})).answer.startswith("Not known yet")
    assert STUDY.findings(made_up(cifar100_0_0=74.5)).answer.endswith(
        "it does not make ResNet-56 on CIFAR-100 more accurate."
    )


def page_of(tmp_path, wanted):
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(2, {"size": "full"})
    for trial in STUDY.trials(settings):
        if wanted(trial):
            written(store, trial)
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=None, device="cpu")
    return page, store, settings, json.loads((page.parent / "results.json").read_text())


def test_a_page_of_all_runs_measures_both_splits(tmp_path):
    page, store, settings, results = page_of(tmp_path, lambda trial: True)
    assert results["warnings"] == []
    rows = list(csv.DictReader((page.parent / "tables" / "accuracies.csv").open()))
    assert len(rows) == 4
    runs = [
        store.find(trial.recipe)
        for trial in STUDY.trials(settings)
        if trial.labels["network"] == "cifar10" and trial.labels["alpha"] == 0
    ]
    for column, split in (("accuracy", "test"), ("held_out_accuracy", "validation")):
        shares = []
        for run in runs:
            said = run.predictions(split)
            right = sum(
                int(row.argmax()) == int(label) for row, label in zip(said.logits, said.labels, strict=True)
            )
            shares.append(right / len(said.labels))
        assert float(rows[0][f"{column}_mean"]) == pytest.approx(sum(shares) / 2)


@pytest.mark.parametrize(
    "wanted",
    [
        lambda trial: trial.labels["network"] == "cifar100",
        lambda trial: trial.labels["alpha"] == 0.1,
        lambda trial: (
            trial.labels["alpha"] == 0 and trial.recipe.seed == 1 and trial.labels["network"] == "cifar10"
        ),
    ],
)
def test_a_page_of_some_runs(tmp_path, wanted):
    page, _, _, results = page_of(tmp_path, wanted)
    assert len(results["warnings"]) == 1
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    assert "nan" not in page.read_text().lower().replace("nanc", "")


def test_a_page_of_nothing_is_refused(tmp_path):
    with pytest.raises(StudyError, match="none of the 20 runs"):
        run_study(STUDY, STUDY.settings(), RunStore(tmp_path / "r"), tmp_path / "p", command="c", train=None)
