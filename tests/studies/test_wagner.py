"""What studies of the replication share: recipes, grids, measures; and pages of each from all runs, some and none."""

from __future__ import annotations

import json
from collections import Counter

import pytest
import torch

from softtargets.calibration import fold_of
from softtargets.recipes import CIFAR10, CUB200, EMNIST, SGD, Affine, Crop, Flip, Step, Timm, TinyImageNet
from softtargets.runs import RunStore, export_logs
from softtargets.studies import STUDIES, Results, Settings, find_study, redraw_study, run_study
from softtargets.studies.wagner.grid import comparable, fitted, network_trials
from softtargets.studies.wagner.measures import TEMPERATURES, calibrations, gaps
from softtargets.studies.wagner.networks import ALPHAS, NETWORKS
from tests.studies.making import told, written

TABLE_2 = find_study(STUDIES, "wagner-table-2")
TRAINING = ("wagner-table-2", "wagner-table-3", "wagner-figure-2", "wagner-figure-3", "wagner-figure-9",
            "wagner-deviations")  # fmt: skip


def ids(name, size="full", seeds=None):
    study = find_study(STUDIES, name)
    return {
        trial.recipe.id
        for trial in study.trials(study.settings(seeds, {"size": size} if study.sizes else {}))
    }


def test_the_grid_is_five_networks_five_strengths_and_fewer_seeds_of_deep_ones():
    trials = TABLE_2.trials(TABLE_2.settings(changes={"size": "full"}))
    assert Counter(trial.labels["network"] for trial in trials) == {
        "mnist-fcn": 25,
        "fmnist-fcn": 25,
        "cifar10-alexnet": 25,
        "cifar10-resnet56": 15,
        "cifar100-resnet56": 15,
    }
    assert len({trial.recipe.id for trial in trials}) == 105
    for trial in trials:
        loss = trial.recipe.regulariser
        assert (
            (loss.name == "cross_entropy")
            if trial.labels["alpha"] == 0
            else loss.alpha == trial.labels["alpha"]
        )
    few = TABLE_2.trials(TABLE_2.settings(2, {"size": "full"}))
    assert {trial.recipe.seed for trial in few} == {0, 1}
    many = TABLE_2.trials(TABLE_2.settings(7, {"size": "full"}))
    assert len(many) == 5 * 5 * 7


def test_studies_of_the_same_networks_share_their_runs():
    table = ids("wagner-table-2")
    assert ids("cifar10-resnet56") <= table
    assert len(ids("mnist-distillation", seeds=5) & table) == 4 * 5  # all strengths but 0.05
    assert len(ids("muller-figure-2") & table) == 3 * 3
    assert ids("wagner-table-3") == table
    for name in ("wagner-figure-2", "wagner-figure-3", "wagner-figure-9"):
        assert ids(name) < table
    assert ids("wagner-figure-2", "small") < ids("wagner-table-2", "small")
    # Müller's AlexNet and the replication's stand side by side, and are those of the two tables.
    both = ids("wagner-deviations")
    assert len(both & table) == 2 * 5 + 2 * 3 + 2 * 3  # digits, AlexNet and ResNet-56 at two strengths
    assert len(both & ids("muller-table-2", seeds=3)) == 2 * 3


def test_recipes_for_data_that_not_everybody_has():
    emnist, cub, tiny = (
        NETWORKS[key].full for key in ("emnist-fcn", "cub200-resnet34", "tiny-imagenet-resnet50")
    )
    assert emnist == NETWORKS["mnist-fcn"].full.replace({"data": EMNIST(part="balanced")})
    assert cub.data == CUB200(size=256, standardise="channel")
    assert (cub.model, cub.epochs, cub.batch) == (Timm(net="resnet34.tv_in1k", pretrained=True), 250, 256)
    assert cub.augmentation == (Affine(degrees=45, translate=0.35, scale=(0.65, 1.35)), Flip(probability=0.5))
    assert cub.optimiser == SGD(lr=0.3, weight_decay=1e-5)
    assert cub.schedule == Step(milestones=tuple(range(10, 250, 10)), factor=0.9)
    assert tiny.data == TinyImageNet(standardise="channel")
    assert (tiny.model, tiny.epochs) == (Timm(net="resnet50.tv2_in1k", pretrained=True), 100)
    assert tiny.optimiser == SGD(lr=0.004, momentum=0.9, weight_decay=1e-5)
    assert tiny.schedule == Step(milestones=tuple(range(7, 100, 7)), factor=0.5)
    for size, key in (("emnist", "emnist-fcn"), ("cub200", "cub200-resnet34")):
        assert {trial.labels["network"] for trial in network_trials(Settings(1, {}, size))} == {key}


def test_alexnet_of_the_table_is_the_replications():
    recipe = NETWORKS["cifar10-alexnet"].full
    assert recipe.data == CIFAR10(standardise="channel")
    assert recipe.augmentation == (Crop(padding=0, size=24), Flip())
    assert (recipe.optimiser.decay_form, recipe.epochs) == ("norm", 1246)


def test_rates_drop_at_the_same_shares_of_a_shorter_training():
    recipe = NETWORKS["cifar10-resnet56"].full
    assert fitted(recipe, Settings(1)) == recipe
    assert fitted(recipe, Settings(1, {"epochs": 60})).schedule.milestones == (30, 45)
    own = {"epochs": 60, "schedule.milestones": (7,)}
    assert fitted(recipe, Settings(1, own)).schedule.milestones == (7,)
    digits = NETWORKS["mnist-fcn"].full
    assert fitted(digits, Settings(1, {"epochs": 10})).schedule == digits.schedule


def test_printed_numbers_are_asked_of_the_printed_training_alone():
    network = NETWORKS["mnist-fcn"]
    assert comparable(Results(()), network)
    assert comparable(told(TABLE_2, lambda trial: {}), network)
    assert not comparable(told(TABLE_2, lambda trial: {}, "small"), network)
    shorter = network_trials(Settings(1, {"epochs": 3}, "full"), ["mnist-fcn"])
    assert not network.is_printed(shorter[0].recipe)
    assert all(
        network.is_printed(trial.recipe) for trial in network_trials(Settings(2, {}, "full"), ["mnist-fcn"])
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One whose network is sure of itself, and often wrong."""
    trial = network_trials(Settings(1, {}, "full"), ["cifar10-alexnet"], [0.0])[0]
    return trial, written(RunStore(tmp_path_factory.mktemp("runs")), trial)


def _ece(logits, labels, temperature=1.0):
    bins: dict[int, list[float]] = {}
    for row, label in zip((logits.double() / temperature).softmax(-1), labels, strict=True):
        sure, guess = float(row.max()), int(row.argmax())
        bins.setdefault(min(int(sure * 15), 14), []).append(float(guess == int(label)) - sure)
    return sum(abs(sum(one)) for one in bins.values()) / len(labels)


def test_temperatures_are_chosen_on_the_examples_and_on_others(run):
    trial, made = run
    found, test = calibrations(trial, made), made.predictions("test")
    assert found["ece"] == pytest.approx(_ece(test.logits, test.labels), abs=1e-5)
    chosen = found["temperature"]
    assert chosen in TEMPERATURES
    assert found["ece_scaled"] == pytest.approx(_ece(test.logits, test.labels, chosen), abs=1e-5)
    some = TEMPERATURES[::12]
    assert found["ece_scaled"] <= min(_ece(test.logits, test.labels, t) for t in some) + 1e-6
    # Each half is scaled by the temperature of the other one.
    place = fold_of(0, len(test.labels), 2)
    logits = torch.empty_like(test.logits)
    heats = []
    for half in (0, 1):
        other = place != half
        errors = {t: _ece_at_once(test.logits[other], test.labels[other], t) for t in TEMPERATURES}
        heats.append(min(errors, key=lambda t: (round(errors[t], 9), abs(torch.tensor(t).log().item()))))
        logits[place == half] = test.logits[place == half] / heats[-1]
    assert found["temperature_held_out"] == pytest.approx(sum(heats) / 2, abs=0.021)
    if found["temperature_held_out"] == pytest.approx(sum(heats) / 2):
        assert found["ece_scaled_held_out"] == pytest.approx(_ece(logits, test.labels), abs=1e-5)


def _ece_at_once(logits, labels, temperature):
    sure, guess = (logits.double() / temperature).softmax(-1).max(-1)
    apart = (guess == labels).double() - sure
    which = (sure * 15).long().clamp(max=14)
    return float(torch.zeros(15, dtype=torch.float64).index_add_(0, which, apart).abs().sum() / len(labels))


def test_gaps_are_those_of_bins_with_enough_examples(run):
    _, made = run
    test = made.predictions("test")
    sure, guess = test.logits.double().softmax(-1).max(-1)
    right = (guess == test.labels).double()
    found = gaps(test)
    assert found["gap"] == pytest.approx(float((right - sure).mean()), abs=1e-6)
    which = (sure * 15).long().clamp(max=14)
    sizes = [int((which == b).sum()) for b in range(15)]
    apart = [float((right - sure)[which == b].mean()) for b in range(15) if sizes[b] >= min(50, max(sizes))]
    assert found["highest_gap"] == pytest.approx(max(apart), abs=1e-6)
    assert found["lowest_gap"] == pytest.approx(min(apart), abs=1e-6)


@pytest.mark.parametrize("name", TRAINING)
def test_claims_and_pages_are_there_before_runs_are(name):
    study = find_study(STUDIES, name)
    assert {claim.verdict for claim in study.claims(Results(()))} <= {"not run yet"}
    found = study.findings(Results(()))
    assert found.answer.startswith("Not known yet") or name == "wagner-deviations"
    assert found.sections


@pytest.mark.parametrize(
    ("name", "size"), list(zip(TRAINING, ("small", "full", "small", "full", "full", "small"), strict=True))
)
def test_a_page_of_some_runs_and_the_same_page_without_them(name, size, tmp_path):
    study = find_study(STUDIES, name)
    settings, store = study.settings(1, {"size": size}), RunStore(tmp_path / "runs")
    wanted = [trial for trial in study.trials(settings) if trial.recipe.data.name in ("mnist", "cifar10")]
    for trial in wanted[:-1]:
        written(store, trial, 200)
    page = run_study(study, settings, store, tmp_path / "page", command="c", train=None, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert len(results["warnings"]) == 1
    assert "have not been trained" in results["warnings"][0]
    assert {claim["verdict"] for claim in results["claims"]} <= {"not run yet"}
    assert "nan" not in json.dumps(results["claims"])
    export_logs([store.get(entry.id) for entry in store.entries()], page.parent / "logs.jsonl.gz")
    again = redraw_study(study, page.parent, tmp_path / "again", command="redraw")
    for path in sorted((page.parent / "tables").iterdir()):
        assert (again.parent / "tables" / path.name).read_bytes() == path.read_bytes()
    assert {path.name for path in (page.parent / "figures").iterdir()} == {
        path.name for path in (again.parent / "figures").iterdir()
    }


def test_all_strengths_of_the_tables_have_printed_numbers():
    for network in NETWORKS.values():
        for quantity in ("accuracy", "ece"):
            assert all(network.printed(quantity, alpha).value for alpha in ALPHAS)
