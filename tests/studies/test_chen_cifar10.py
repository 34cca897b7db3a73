"""The plane on CIFAR-10: its recipes, and all the rest with a few units on a few digits."""

from __future__ import annotations

import json

import pytest

from softtargets.recipes import CIFAR10, SGD, Digits, ResNet18, Step
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study, run_study
from softtargets.training import train

STUDY = find_study(STUDIES, "chen-cifar10")


@pytest.mark.parametrize(("size", "cells"), [("tiny", 2 * 5), ("full", 5 * 8)])
def test_both_sizes_have_the_clean_rates_of_figure_7(size, cells):
    trials = STUDY.trials(STUDY.settings(seeds=1, changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == cells
    assert {0.5, 0.95} <= {trial.labels["a"] for trial in trials}


def test_the_full_size_is_the_papers_training():
    for trial in STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full"})):
        recipe = trial.recipe
        assert recipe.data == CIFAR10(standardise="channel")
        assert recipe.model == ResNet18(width=19)
        assert recipe.optimiser == SGD(lr=0.01, momentum=0.9, weight_decay=0.0)
        assert recipe.schedule == Step(milestones=(50, 75), factor=0.5, unit="epoch")
        assert (recipe.epochs, recipe.batch, recipe.augmentation) == (100, 128, ())


def test_the_rate_is_halved_at_the_same_shares_of_a_shorter_training():
    for changes, milestones in (
        ({"epochs": 40}, (20, 30)),
        ({"epochs": 40, "schedule.milestones": (5,)}, (5,)),
    ):
        for trial in STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full", **changes})):
            assert trial.recipe.schedule.milestones == milestones


def test_the_whole_study_on_a_few_digits(tmp_path):
    changes = {"data": Digits(limit=60), "model.hidden": (16,), "epochs": 2, "batch": 30}
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1, changes=changes)
    page = run_study(STUDY, settings, store, tmp_path / "report", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    # Figures 8 to 11 are of MNIST only, so nothing is claimed about accuracy here.
    assert len(results["claims"]) == 3
    worst = max(
        abs(row["deviation_alpha"]["mean"]) for row in results["tables"]["landscape"] if row["p"] <= 0.9
    )
    assert results["claims"][0]["measured"]["mean"] == pytest.approx(worst)
    html = page.read_text()
    assert "CIFAR-10, tiny size: 60 training images" in html
    assert "The paper shows this for MNIST only." in html
