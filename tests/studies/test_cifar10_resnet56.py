"""ResNet-56 on CIFAR-10: the recipes, the claims, and all the rest with eight layers on a few digits."""

from __future__ import annotations

import csv
import json
import math
import shutil

import pytest
import torch

from softtargets.claims import judge
from softtargets.exceptions import StudyError
from softtargets.recipes import CIFAR10, SGD, Crop, Digits, Flip, PreActResNet, Step
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from softtargets.training import train

STUDY = find_study(STUDIES, "cifar10-resnet56")


def test_the_grid_is_two_nets_for_each_of_three_seeds():
    trials = STUDY.trials(STUDY.settings())
    assert sorted((trial.labels["alpha"], trial.recipe.seed) for trial in trials) == [
        (alpha, seed) for alpha in (0.0, 0.1) for seed in range(3)
    ]
    assert len({trial.recipe.id for trial in trials}) == 6
    for trial in trials:
        loss = trial.recipe.regulariser
        assert (loss.name == "cross_entropy") if trial.labels["alpha"] == 0 else (loss.alpha == 0.1)


def test_recipes_are_those_of_the_papers():
    for trial in STUDY.trials(STUDY.settings()):
        recipe = trial.recipe
        assert recipe.data == CIFAR10(validation=0, limit=None, standardise="image")
        assert recipe.model == PreActResNet(depth=56, stages=(32, 64, 128), variant="tensor2tensor", stem=3)
        assert recipe.augmentation == (Crop(padding=4, size=None), Flip(probability=0.5))
        assert recipe.optimiser == SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4)
        assert recipe.schedule == Step(milestones=(102, 153), factor=0.1, unit="epoch")
        assert (recipe.epochs, recipe.batch, recipe.clip, recipe.multiplier) == (205, 128, 1.0, 3.0)
        assert recipe.precision == "bf16"


def test_the_rate_drops_at_the_same_shares_of_a_shorter_training():
    for changes, milestones in (
        ({"epochs": 60}, (30, 45)),
        ({"epochs": 60, "schedule.milestones": (10, 20)}, (10, 20)),
        ({"epochs": 60, "schedule": Step(milestones=(7,), factor=0.5, unit="epoch")}, (7,)),
    ):
        for trial in STUDY.trials(STUDY.settings(changes=changes)):
            assert trial.recipe.schedule.milestones == milestones


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The whole study with a net of eight layers on 48 digits, made once for this module."""
    directory = tmp_path_factory.mktemp("cifar10-resnet56")
    changes = {
        "data": Digits(limit=48, standardise="image"),
        "model.depth": 8,
        "model.stages": (8, 16, 32),
        "epochs": 2,
        "measure_epochs": 1,
        "batch": 24,
        "precision": "fp32",
    }
    store, settings = RunStore(directory / "runs"), STUDY.settings(seeds=2, changes=changes)
    page = run_study(STUDY, settings, store, directory / "report", command="c", train=train, device="cpu")
    return page, store, settings


def test_the_whole_study_on_a_few_digits(tiny):
    page, _, _ = tiny
    results = json.loads((page.parent / "results.json").read_text())
    assert len(results["claims"]) == 2  # of another model no printed number is asked
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    assert results["warnings"] == []
    html = page.read_text()
    assert "is trained on 48 images for 2 epochs" in html
    assert "93.59 %" in html
    assert "Training lasts 2 epochs instead of the replication&#39;s 205" in html
    assert "Stages have 8, 16 and 32 channels (variant tensor2tensor); those of" in html
    for kind in ("png", "svg"):
        assert (page.parent / "figures" / f"accuracy_over_epochs.{kind}").stat().st_size > 5_000


def test_numbers_on_the_page_are_those_of_the_runs(tiny):
    page, store, settings = tiny
    tables = page.parent / "tables"
    runs = [store.find(t.recipe) for t in STUDY.trials(settings) if t.labels["alpha"] == 0.1]
    curve = [
        row for row in csv.DictReader((tables / "accuracy_over_epochs.csv").open()) if row["alpha"] == "0.1"
    ]
    assert [int(row["epoch"]) for row in curve] == [1, 2]
    for place, row in enumerate(curve):
        both = [run.history()[place]["test_accuracy"] for run in runs]
        assert float(row["accuracy_mean"]) == pytest.approx(sum(both) / 2)
    row = next(row for row in csv.DictReader((tables / "accuracies.csv").open()) if row["alpha"] == "0.1")
    right, nll, ece = [], [], []
    for run in runs:
        test = run.predictions("test")
        said = test.logits.double().softmax(-1)
        right.append(float((said.argmax(-1) == test.labels).double().mean()))
        nll.append(-sum(float(said[i, label].log()) for i, label in enumerate(test.labels)) / len(said))
        ece.append(_ece(said, test.labels))
    assert float(row["accuracy_mean"]) == pytest.approx(sum(right) / 2)
    assert float(row["nll_mean"]) == pytest.approx(sum(nll) / 2, rel=1e-5)
    assert float(row["ece_mean"]) == pytest.approx(sum(ece) / 2, abs=1e-5)


def test_a_second_run_trains_nothing_and_gives_the_same_figures(tiny, tmp_path):
    page, store, settings = tiny
    before = {entry.id: entry.finished for entry in store.entries()}
    again = run_study(STUDY, settings, store, tmp_path, command="again", train=train, device="cpu")
    assert {entry.id: entry.finished for entry in store.entries()} == before
    for path in ("figures/accuracy_over_epochs.svg", "tables/accuracies.csv"):
        assert (again.parent / path).read_bytes() == (page.parent / path).read_bytes()


def _ece(said: torch.Tensor, labels: torch.Tensor) -> float:
    bins: dict[int, list[float]] = {}
    for row, label in zip(said, labels, strict=True):
        confidence, guess = (float(value) for value in row.max(0))
        bins.setdefault(min(int(confidence * 15), 14), []).append(float(guess == float(label)) - confidence)
    return sum(abs(sum(gaps)) for gaps in bins.values()) / len(labels)


def made_up(
    tmp_path, hard: float, smoothed: float, hard_ece: float = 0.049, smoothed_ece: float = 0.065, changes=None
) -> Results:
    """Three seeds with accuracies in % and calibration errors around the given ones."""
    outcomes = []
    for trial in STUDY.trials(STUDY.settings(changes=changes)):
        soft, about = (
            trial.labels["alpha"] > 0,
            {"examples": {"train": 50_000, "test": 10_000}, "parameters": 1},
        )
        accuracy = ((smoothed if soft else hard) + 0.02 * trial.recipe.seed) / 100
        history = [{"epoch": epoch, "test_accuracy": accuracy * epoch / 205} for epoch in range(1, 206)]
        with RunStore(tmp_path).claim(trial.recipe) as writer:
            run = writer.finish({}, {}, history, about)
        ece = (smoothed_ece if soft else hard_ece) + 1e-4 * trial.recipe.seed
        outcomes.append(Outcome(trial, run, {"accuracy": accuracy, "ece": ece, "nll": 0.3}))
    return Results(tuple(outcomes))


@pytest.mark.parametrize(
    ("numbers", "fallen"),
    [
        ((93.57, 93.31), set()),
        ((92.5, 93.31), {0}),
        ((94.5, 94.0), {0, 1}),  # more than is printed is not what is printed
        ((93.57, 92.7), {1}),
        ((94.5, 93.31), {0, 2}),
        ((93.57, 93.31, 0.065, 0.049), {3}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(tmp_path, numbers, fallen):
    judged = judge(STUDY.findings(made_up(tmp_path, *numbers)).claims)
    found = {place for place, one in enumerate(judged) if one.verdict == "contradicted"}
    assert found == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_printed_numbers_are_those_of_the_replication(tmp_path):
    claims = STUDY.findings(made_up(tmp_path, 93.57, 93.31)).claims
    assert [claim.printed for claim in claims] == [93.59, 93.33, None, pytest.approx(0.065 - 0.049)]
    assert [claim.margin for claim in claims[:2]] == pytest.approx(
        [200 * math.sqrt(a * (1 - a) / 10_000) for a in (0.9359, 0.9333)], abs=5e-3
    )
    assert "loses 0.26" in claims[2].remark
    assert judge(claims)[3].value == "reproduced"
    other = judge(STUDY.findings(made_up(tmp_path / "other", 93.57, 93.31, 0.02, 0.065)).claims)[3]
    assert (other.verdict, other.value) == ("reproduced", "contradicted")


def test_numbers_are_asked_of_the_printed_model_alone(tmp_path):
    narrow = {"model.variant": "he", "model.stages": (16, 32, 64)}
    found = made_up(tmp_path, 92.77, 92.76, changes=narrow)
    claims = STUDY.findings(found).claims
    assert [claim.printed for claim in claims] == [None, None]
    words = " ".join(text for section in STUDY.findings(found).sections for text in section.paragraphs)
    assert "are not compared with ours" in words


def test_the_table_stands_beside_the_replication(tmp_path):
    table = STUDY.findings(made_up(tmp_path, 93.6, 93.4)).sections[0].exhibits[0]
    assert [[column.show(row[column.key]) for column in table.columns[:3]] for row in table.rows] == [
        ["0.0", "93.59 %", "93.62 ± 0.02 %"],
        ["0.1", "93.33 %", "93.42 ± 0.02 %"],
    ]


def test_a_page_of_one_net_when_the_other_is_not_trained_yet(tiny, tmp_path):
    _, store, settings = tiny
    some = RunStore(tmp_path / "runs")
    for trial in STUDY.trials(settings):
        if trial.labels["alpha"] == 0.1:
            shutil.copytree(store.root / trial.recipe.id, some.root / trial.recipe.id)
    page = run_study(STUDY, settings, some, tmp_path / "report", command="c", train=None, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == ["2 of 4 runs have not been trained to their end and are left out."]
    assert [claim["reason"] for claim in results["claims"]] == ["0 of the 3 seeds that decide"] * 2
    assert results["answer"].startswith("Not known yet")
    assert "nan" not in json.dumps(results["claims"])
    rows = list(csv.DictReader((page.parent / "tables" / "accuracies.csv").open()))
    assert [row["accuracy_n"] for row in rows] == ["0", "2"]
    assert sorted(path.name for path in some.root.iterdir() if path.is_dir()) == sorted(
        trial.recipe.id for trial in STUDY.trials(settings) if trial.labels["alpha"] == 0.1
    )


def test_a_page_of_nothing_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"none of the 6 runs of 'cifar10-resnet56' is finished in "):
        run_study(
            STUDY, STUDY.settings(), RunStore(tmp_path / "runs"), tmp_path / "report", command="c", train=None
        )
