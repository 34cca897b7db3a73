"""Sweeps of LABO's tau and rho."""

from __future__ import annotations

import json

import pytest

from softtargets.claims import judge
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Settings, find_study, run_study
from softtargets.studies.labo_sweeps.findings import rest
from softtargets.training import train

from .labo import made_up, make_small

STUDY = find_study(STUDIES, "labo-sweeps")


def test_the_grid_is_two_lines_that_cross():
    for size, expected in (
        ("full", [(1.15, 0.5), (1.25, 0.5), (1.25, 0.75), (1.25, 1.0), (2.0, 0.5)]),
        ("small", [(1.0, 0.5), (1.15, 0.5), (1.25, 0.25), (1.25, 0.5), (1.25, 0.75), (1.25, 1.0),
                   (1.5, 0.5), (2.0, 0.5), (4.0, 0.5)]),
    ):  # fmt: skip
        trials = STUDY.trials(Settings(1, {}, size))
        assert sorted((t.recipe.regulariser.tau, t.recipe.regulariser.rho) for t in trials) == expected
        for trial in trials:
            assert (trial.labels["tau"], trial.labels["rho"]) == (
                trial.recipe.regulariser.tau,
                trial.recipe.regulariser.rho,
            )


def numbers(apart=0.0, step=0.0):
    def of(labels, seed):
        accuracy = 0.75 + (step if labels["tau"] == 1.25 else 0.0) + 1e-4 * seed
        return {
            "accuracy": accuracy,
            "label_probability_train": rest(labels["tau"], labels["rho"], 100) + apart + 1e-3 * seed,
        }

    return of


@pytest.mark.parametrize(
    ("options", "verdicts"),
    [
        ({}, ("no effect", "reproduced")),
        ({"step": 0.003}, ("reproduced", "reproduced")),
        ({"step": 0.02}, ("contradicted", "reproduced")),
        ({"apart": 0.2}, ("no effect", "contradicted")),
    ],
)
def test_claims_stand_and_fall(options, verdicts):
    judged = judge(STUDY.claims(made_up(STUDY, numbers(**options))))
    assert tuple(one.verdict for one in judged) == verdicts


def test_the_whole_study_on_a_few_digits(tmp_path, monkeypatch):
    make_small(monkeypatch)
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1)
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    rows = results["tables"]["sweeps"]
    assert len(rows) == 9
    predictions = {(row["tau"], row["rho"]): row["predicted"] for row in rows}
    assert predictions[1.0, 0.5] > predictions[1.25, 0.5] > predictions[4.0, 0.5]  # a higher tau rests lower
