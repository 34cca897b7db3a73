"""LABO's readings: the grid, what theory predicts, claims, and the whole study on a few digits."""

from __future__ import annotations

import json

import pytest

from softtargets.claims import judge
from softtargets.recipes import LABO
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Results, find_study, run_study
from softtargets.studies.labo_readings.grid import predicted
from softtargets.training import train

from .labo import made_up, make_small

STUDY = find_study(STUDIES, "labo-readings")
READINGS = ["literal", "adaptive warm-up", "fixed", "reversed", "hypergradient"]


def test_the_grid_has_every_reading_of_the_first_column():
    trials = STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full"}))
    found = {trial.labels["reading"] or trial.labels["method"]: trial.recipe.regulariser for trial in trials}
    assert list(found) == ["hard", "ls", *READINGS]
    assert found["literal"] == LABO(warmup_steps=5000)
    assert found["adaptive warm-up"] == LABO(warmup_steps=5000, warmup="adaptive")
    assert found["fixed"] == LABO(warmup_steps=5000, alpha=0.1)
    assert found["reversed"] == LABO(warmup_steps=5000, reading="reversed")
    assert found["hypergradient"] == LABO(warmup_steps=5000, hypergradient=True)
    assert {(trial.recipe.data.name, trial.recipe.model.name) for trial in trials} == {
        ("cifar100", "resnet18")
    }


def test_what_theory_predicts():
    assert predicted("hard", "", 100) == 1
    assert predicted("ls", "", 100) == pytest.approx(0.901)
    assert (
        predicted("labo", "literal", 100)
        == predicted("labo", "adaptive warm-up", 100)
        == pytest.approx(0.519, abs=1e-3)
    )
    assert predicted("labo", "fixed", 100) == pytest.approx(0.999, abs=1e-3)
    assert predicted("labo", "reversed", 100) == 1
    assert predicted("labo", "hypergradient", 100) == pytest.approx(0.2625, abs=1e-3)


def test_figure_2_is_explained_without_a_run():
    first, second, *rest = judge(STUDY.claims(Results(())))
    assert (first.verdict, second.verdict) == ("reproduced", "reproduced")
    assert first.claim.measured == "0.45 and 0.40"
    assert {one.verdict for one in rest} == {"not run yet"}
    assert STUDY.findings(Results(())).answer.startswith("Of all readings only the literal one rests")


def numbers(probabilities, gains):
    def of(labels, seed):
        name = labels["reading"] or labels["method"]
        return {
            "accuracy": (76.9 + gains.get(name, 0.0) + 0.02 * seed) / 100,
            "label_probability_train": probabilities.get(name, 0.99) + 0.001 * seed,
        }

    return of


@pytest.mark.parametrize(
    ("probabilities", "fallen"),
    [
        ({"literal": 0.5, "hypergradient": 0.25}, set()),
        ({"literal": 0.9, "hypergradient": 0.25}, {0}),
        ({"literal": 0.5, "hypergradient": 0.5}, {1}),
        ({"literal": 0.5, "hypergradient": 0.25, "reversed": 0.6}, {2}),
    ],
)
def test_theory_falls_when_models_rest_elsewhere(probabilities, fallen):
    judged = judge(STUDY.claims(made_up(STUDY, numbers(probabilities, {}))))[2:5]
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_gains_are_judged_reading_by_reading():
    gains = {"literal": -2.0, "adaptive warm-up": 0.0, "fixed": 1.2, "reversed": 4.0, "hypergradient": -5.0}
    found = made_up(STUDY, numbers({"literal": 0.5, "hypergradient": 0.25}, gains))
    judged = judge(STUDY.claims(found))[5:]
    assert [one.verdict for one in judged] == [
        "contradicted",
        "no effect",
        "reproduced",
        "reproduced",
        "contradicted",
    ]
    assert [one.value for one in judged][2:4] == ["reproduced", "contradicted"]
    assert [one.claim.printed for one in judged] == [1.18] * 5
    assert STUDY.findings(found).answer.endswith(
        "Shown to be more accurate than hard targets: fixed, reversed."
    )


def test_the_whole_study_on_a_few_digits(tmp_path, monkeypatch):
    make_small(monkeypatch)
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1)
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    rows = {row["name"]: row for row in results["tables"]["readings"]}
    assert len(rows) == 7
    assert len(results["tables"]["label_probabilities"]) == 7 * 20
    for kind in ("pulls", "label_probabilities"):
        assert (page.parent / "figures" / f"{kind}.png").stat().st_size > 5_000
