"""The plane on CIFAR-10: its recipes, and what is said of it."""

from __future__ import annotations

import pytest

from softtargets.recipes import CIFAR10, SGD, ResNet18, Step
from softtargets.studies import STUDIES, Outcome, Results, find_study

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


class Provided:
    """A run of a net that is as unsure as can be."""

    provenance = {"examples": {"train": 60, "test": 4}, "parameters": 7, "classes": list("abcdefghij")}  # noqa: RUF012
    summary = {"epoch": 2}  # noqa: RUF012


def test_what_is_said_of_cifar10_and_nothing_is_claimed_about_accuracy():
    """Training and the page are those of chen-mnist, which tests of its own look at."""
    outcomes = []
    for trial in STUDY.trials(STUDY.settings(seeds=3)):
        a, p = trial.labels["a"], trial.labels["p"]
        measures = {
            "loss_alpha": 1.0,
            "loss_beta": 1.0,
            "loss_gamma": 1.0,
            "accuracy": 0.5,
            "early_accuracy": 0.5,
            "by_heart": 0.9,
        }
        if p < 1:
            measures |= {f"deviation_{kind}": p * (a - 0.75) for kind in ("alpha", "beta", "gamma")}
        outcomes.append(Outcome(trial, Provided(), measures))
    found = STUDY.findings(Results(tuple(outcomes)))
    assert len(found.claims) == 4
    # Up to p = 0.9, where a is 0.5.
    assert found.claims[0].sample.values == pytest.approx((-22.5, -22.5, -22.5))  # in percent
    assert found.claims[0].worst == "a = 0.5, p = 0.9"
    words = " ".join(text for section in found.sections for text in section.paragraphs)
    assert "CIFAR-10, tiny size: 60 training images" in words
    assert "The paper shows this for MNIST only." in words
