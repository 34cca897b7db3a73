"""Beyond LABO's paper: calibration and wrong labels."""

from __future__ import annotations

import csv
import json

import pytest

from softtargets.claims import judge
from softtargets.recipes import CNN, Clean, Symmetric
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study, run_study
from softtargets.training import train

from .labo import made_up, make_small

STUDY = find_study(STUDIES, "beyond-labo")
NAMES = ["hard", "ls", "literal", "fixed", "reversed"]


def test_the_grid_is_calibration_and_three_rates_of_noise():
    trials = STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full"}))
    for part, rates in (("calibration", (0.0,)), ("noise", (0.0, 0.2, 0.4))):
        mine = [trial for trial in trials if trial.labels["part"] == part]
        cells = [(t.labels["rate"], t.labels["reading"] or t.labels["method"]) for t in mine]
        assert cells == [(rate, name) for rate in rates for name in NAMES]
    noisy = [trial for trial in trials if trial.labels["part"] == "noise"]
    for trial in noisy:
        rate = trial.labels["rate"]
        assert trial.recipe.noise == (Symmetric(rate=rate) if rate else Clean())
        assert (trial.recipe.data.name, trial.recipe.model, trial.recipe.optimiser.lr) == (
            "cifar10",
            CNN(),
            0.01,
        )
        assert (trial.recipe.epochs, trial.recipe.data.validation) == (200, 5_000)
    assert len({trial.recipe.id for trial in trials}) == 20


def numbers(ece, scaled, nll, gain):
    def of(labels, seed):
        name = labels["reading"] or labels["method"]
        literal = name == "literal"
        return {
            "accuracy": (60 + (gain if literal else 0) + 0.05 * seed) / 100,
            "ece": (ece if literal else 0.1) + 1e-4 * seed,
            "ece_scaled": (scaled if literal else 0.03) + 1e-4 * seed,
            "nll_scaled": (nll if literal else 1.0) + 1e-4 * seed,
        }

    return of


@pytest.mark.parametrize(
    ("measured", "calibration", "noise"),
    [
        ((0.05, 0.01, 0.9, 3.0), ["reproduced"] * 4, "reproduced"),
        ((0.3, 0.05, 1.1, -3.0), ["contradicted"] * 4, "contradicted"),
        ((0.1, 0.03, 1.0, 0.0), ["no effect"] * 4, "no effect"),
    ],
)
def test_claims_stand_and_fall(measured, calibration, noise):
    found = made_up(STUDY, numbers(*measured))
    judged = [one.verdict for one in judge(STUDY.claims(found))]
    assert judged == [*calibration, *[noise] * 3]
    answer = STUDY.findings(found).answer
    better = {"reproduced": "better", "contradicted": "worse", "no effect": "as well"}[noise]
    assert better in answer


def test_the_whole_study_on_a_few_digits(tmp_path, monkeypatch):
    make_small(monkeypatch)
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1)
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    rows = list(csv.DictReader((page.parent / "tables" / "noise.csv").open()))
    assert len(rows) == 15
    for row, trial in zip(
        rows, [t for t in STUDY.trials(settings) if t.labels["part"] == "noise"], strict=True
    ):
        test = store.find(trial.recipe).predictions("test")
        assert float(row["accuracy_mean"]) == pytest.approx(
            float((test.logits.argmax(-1) == test.labels).double().mean())
        )
