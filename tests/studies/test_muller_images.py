"""The trainings that Müller et al.'s studies share."""

from __future__ import annotations

import os

import pytest

from softtargets.data import CIFAR100_FINE, CIFAR100_SUPERCLASS, status
from softtargets.data import load as load_data
from softtargets.studies import STUDIES, Outcome, Results, find_study
from softtargets.studies.muller_images import (
    NETWORKS,
    SIZES,
    as_printed,
    compared,
    deviations,
    networks_in,
    title_of,
)
from softtargets.studies.protocols import ALEXNET_CIFAR10, RESNET56_CIFAR100
from tests.studies.making import Told, told

NAMES = ("muller-table-2", "muller-figure-1", "muller-figure-2", "muller-text", "response-errors")


def ids(name, size="full", seeds=3):
    study = find_study(STUDIES, name)
    return {trial.recipe.id for trial in study.trials(study.settings(seeds, {"size": size}))}


def test_studies_share_their_runs():
    table, figure_1, figure_2, text, errors = (ids(name) for name in NAMES)
    assert figure_1 == table
    assert errors < table
    assert len(figure_2 & table) == 2 * 3
    assert len(figure_2 - table) == 3  # smoothing of 0.05
    teachers = find_study(STUDIES, "mnist-distillation")
    assert len(text) == 15
    assert len(text & {trial.recipe.id for trial in teachers.trials(teachers.settings())}) == 9
    assert len(text & table) == 6


@pytest.mark.parametrize("name", NAMES)
def test_full_recipes_are_the_papers_but_for_targets_seed_and_dropout(name):
    study = find_study(STUDIES, name)
    bases = {"cifar10": ALEXNET_CIFAR10, "cifar100": RESNET56_CIFAR100}
    for trial in study.trials(study.settings(changes={"size": "full"})):
        base = bases.get(trial.labels["network"])
        if base is not None:
            varied = {"regulariser": trial.recipe.regulariser, "seed": trial.recipe.seed}
            assert trial.recipe == base.replace(varied)


@pytest.mark.parametrize("name", NAMES)
def test_small_recipes_are_for_minutes_on_a_cpu(name):
    study = find_study(STUDIES, name)
    assert study.sizes[0] == "small"
    for trial in study.trials(study.settings()):
        assert trial.recipe.data.limit <= 4000
        assert trial.recipe.epochs <= 20
        assert trial.recipe.precision == "fp32"


def test_the_rate_drops_at_the_same_shares_of_a_shorter_training():
    study = find_study(STUDIES, "muller-table-2")
    found = {
        trial.labels["network"]: trial.recipe.schedule.milestones
        for trial in study.trials(study.settings(1, {"size": "full", "epochs": 120}))
    }
    assert found == {"cifar10": (39, 79), "cifar100": (59, 89)}


@pytest.mark.parametrize("name", NAMES)
def test_claims_are_known_before_there_are_runs(name):
    study = find_study(STUDIES, name)
    found = study.claims(Results(()))
    assert {claim.verdict for claim in found} == {"not run yet"}
    assert all(claim.published for claim in found)


def test_imagenet_is_a_size_of_its_own():
    study = find_study(STUDIES, "muller-table-2")
    trials = study.trials(study.settings(1, {"size": "imagenet"}))
    assert [trial.labels["network"] for trial in trials] == ["imagenet"] * 2
    assert {trial.recipe.model.name for trial in trials} == {"inception_v4"}
    assert all(trial.recipe.data.validation == 50_000 for trial in trials)


def test_printed_numbers_are_asked_of_the_printed_training_alone():
    study = find_study(STUDIES, "muller-table-2")
    nothing = dict.fromkeys(NETWORKS, ())
    for size, printed in (("small", []), ("full", ["cifar10", "cifar100"])):
        results = told(study, lambda trial: {}, size)
        assert as_printed(results) == printed
        assert networks_in(results) == ["cifar10", "cifar100"]
    assert as_printed(Results(())) == ["cifar10", "cifar100"]
    assert compared(Results(()), list(nothing)) == ["cifar10", "cifar100"]
    inception = told(study, lambda trial: {}, "imagenet")
    assert "imagenet" not in as_printed(inception)
    assert compared(inception, list(NETWORKS)) == ["imagenet"]


@pytest.mark.parametrize("size", ["small", "full"])
@pytest.mark.parametrize("name", ["muller-table-2", "muller-figure-1"])
def test_a_network_that_is_not_trained_yet_is_claimed_about_all_the_same(name, size):
    """Holm's method counts its claims: they must not come to a page after others are judged."""
    study = find_study(STUDIES, name)
    both = told(study, lambda trial: {}, size)
    for there in ("cifar10", "cifar100"):
        early = study.claims(both.where(network=there))
        assert [claim.published for claim in early] == [claim.published for claim in study.claims(both)]


def test_a_small_network_is_not_called_by_the_papers_name():
    study = find_study(STUDIES, "muller-table-2")
    small, full = (told(study, lambda trial: {}, size) for size in ("small", "full"))
    assert title_of(small, "cifar10") == "A small network on CIFAR-10"
    assert title_of(full, "cifar10") == "AlexNet on CIFAR-10"
    assert not any("AlexNet" in claim.statement for claim in study.claims(small))


def test_every_size_says_what_differs():
    study = find_study(STUDIES, "muller-table-2")
    texts = {size: deviations(told(study, lambda trial: {}, size)) for size in SIZES}
    assert len(set(texts.values())) == 3
    assert "389,998" in " ".join(texts["full"])
    trials = study.trials(study.settings(1, {"size": "full", "epochs": 60}))
    shorter = Results(tuple(Outcome(trial, Told([{"epoch": 1}]), {}) for trial in trials))
    assert "ResNet-56 on CIFAR-100 was trained for 60 epochs instead of 205." in deviations(shorter)


def test_superclasses_are_twenty_of_five():
    assert sorted(CIFAR100_SUPERCLASS) == sorted(list(range(20)) * 5)
    by_name = dict(zip(CIFAR100_FINE, CIFAR100_SUPERCLASS, strict=True))
    assert by_name["beaver"] == by_name["otter"] == by_name["dolphin"] == 0


@pytest.mark.realdata
def test_superclasses_are_those_of_the_files():
    if "SOFTTARGETS_DATA" not in os.environ or status("cifar100") != "ready":
        pytest.skip("CIFAR-100 is not here; softtargets data fetch cifar100 gets it")
    fine, coarse = (load_data("cifar100", "test", coarse=coarse) for coarse in (False, True))
    assert [CIFAR100_SUPERCLASS[label] for label in fine.labels] == coarse.labels.tolist()
