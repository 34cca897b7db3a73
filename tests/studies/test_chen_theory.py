"""The study of the theory: its search against plain loops, its claims, and the page."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from softtargets.exceptions import StudyError
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study, run_study
from softtargets.studies.chen_theory import claims as claims_module
from softtargets.studies.chen_theory.claims import claims
from softtargets.studies.chen_theory.search import lowest_minima, printed_loss, searched_p

STUDY = find_study(STUDIES, "chen-theory")


def by_events(p: float, a: float, classes: int, kind: str) -> float:
    """The mean loss of an example of class 0, label by label: what the net says against what it is tested with."""

    def chance(label: int, right: float) -> float:
        return right if label == 0 else (1 - right) / (classes - 1)

    tested = {"alpha": 1.0, "beta": a, "gamma": p}[kind]
    loss = 0.0
    for trained in range(classes):
        for target in range(classes):
            said = p if target == trained else (1 - p) / (classes - 1)
            weight = chance(trained, a) * chance(target, tested)
            loss -= weight * math.log(said)
    return loss


@pytest.mark.parametrize("kind", ["alpha", "beta", "gamma"])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_printed_equations_are_the_mean_over_all_that_can_happen(kind, classes):
    for a in (0.2, 0.5, 0.83):
        for p in (0.05, 0.4, 0.95):
            found = printed_loss(np.array(p), np.array(a), classes, kind)
            assert float(found) == pytest.approx(by_events(p, a, classes, kind), rel=1e-12)


@pytest.mark.parametrize(
    ("kind", "classes"), [("alpha", 4), ("beta", 2), ("beta", 7), ("gamma", 2), ("gamma", 10)]
)
def test_the_search_finds_what_an_optimiser_finds(kind, classes):
    for a in (0.3, 0.6, 0.9):
        tried = [
            minimize_scalar(
                lambda t, a=a: by_events(1 / (1 + math.exp(-t)), a, classes, kind),
                bounds=(low, low + 4),
                method="bounded",
                options={"xatol": 1e-10},
            )
            for low in range(-12, 12, 2)
        ]
        best = min(tried, key=lambda one: one.fun)
        found = searched_p(np.array([a]), classes, kind)[0]
        assert by_events(found, a, classes, kind) <= best.fun + 1e-12
        mirrored = (1 / (1 + math.exp(-best.x)), 1 / (1 + math.exp(best.x)))
        assert min(abs(found - p) for p in mirrored[: 2 if kind == "gamma" else 1]) < 1e-5


def test_as_good_minima_are_counted():
    assert lowest_minima(np.array([0.7, 0.8, 0.95]), 2, "gamma").tolist() == [1, 2, 2]
    assert lowest_minima(np.array([0.7, 0.8, 0.95]), 10, "gamma").tolist() == [1, 1, 1]
    assert lowest_minima(np.array([0.2, 0.8]), 2, "alpha").tolist() == [1, 1]


def test_what_the_paper_says_holds_but_for_four_statements():
    found = {claim.statement: claim.verdict for claim in claims()}
    fallen = {statement for statement, verdict in found.items() if verdict == "contradicted"}
    assert len(found) == 20
    assert fallen == {
        "For every a there is one p with the lowest loss: gamma type.",
        "The best p of the gamma type jumps at some a: two classes.",
        "For uniform noise, the best p of the beta type is Tr[TTᵗ]/(2M).",
        "With a clean test set the best smoothing matrix is T itself, also if T is not symmetric.",
    }
    # With 101 classes the largest difference, 1/100 at a = 0, is what can just be seen: no grid may decide that.
    open_ = {statement for statement, verdict in found.items() if verdict == "inconclusive"}
    assert open_ == {"Beyond 100 classes no difference of the best p of the beta type from a² can be seen."}


def test_numbers_of_claims_by_hand():
    values = {claim.statement: claim.sample.values[0] for claim in claims()}
    # Half of a² + (1 - a)²/9 at a = 0.8.
    half = values["For uniform noise, the best p of the beta type is Tr[TTᵗ]/(2M)."]
    assert half == pytest.approx((0.64 + 0.04 / 9) / 2, abs=1e-6)
    # (1 - a)²/(M - 1), which is largest at a = 0.
    seen = values["Beyond 100 classes no difference of the best p of the beta type from a² can be seen."]
    assert seen == pytest.approx(1 / 100, abs=1e-7)
    limit = values["With more and more classes the best p of the beta type tends to a²."]
    assert limit == pytest.approx(1 / 10_000, abs=1e-7)
    close = values[
        "From a = 0.8 on, the best p for different numbers of classes approximate each other well."
    ]
    assert close == pytest.approx(0.2**2 * (1 - 1 / 99), abs=1e-6)
    bends = values["The best p of the gamma type jumps at some a: two classes."]
    assert bends == pytest.approx(math.sqrt(3e-4), rel=0.02)


def test_claims_fall_when_the_minima_lie_elsewhere(monkeypatch):
    def shifted(a, classes, kind):
        return searched_p(a, classes, kind) + 1e-4 * classes

    monkeypatch.setattr(claims_module, "searched_p", shifted)
    fallen = {claim.statement for claim in claims() if claim.verdict == "contradicted"}
    assert {
        "With a clean test set the best p is a.",
        "With a test set as corrupted as the training set the best p is 2a² − 2a + 1.",
        "With a clean test set the best p does not depend on the number of classes.",
        "With a corrupted test set the best p is (1 − 2a + a²M)/(M − 1).",
    } <= fallen


def test_the_page_has_the_four_figures_and_no_runs(tmp_path):
    store = RunStore(tmp_path / "runs")
    page = run_study(STUDY, STUDY.settings(), store, tmp_path / "report", command="c", train=None)
    results = json.loads((page.parent / "results.json").read_text())
    assert results["provenance"]["runs"] == 0
    assert all(claim["computed"] for claim in results["claims"])
    assert page.read_text(encoding="utf-8").count("computed exactly") == 20
    assert "seeds" not in results["rule"].replace("no seeds", "")
    assert [claim["verdict"] for claim in results["claims"]].count("reproduced") == 15
    for name in ("landscapes", "two_classes", "many_classes", "gamma_classes"):
        assert (page.parent / "figures" / f"{name}.svg").stat().st_size > 5_000
    rows = list(csv.DictReader((page.parent / "tables" / "landscapes.csv").open()))
    assert len(rows) == 49 * 49
    for row in rows[:: 7 * 49 + 3]:
        a, p = float(row["a"]), float(row["p"])
        for kind in ("alpha", "beta", "gamma"):
            assert float(row[kind]) == pytest.approx(by_events(p, a, 2, kind), rel=1e-10)
    curve = list(csv.DictReader((page.parent / "tables" / "many_classes.csv").open()))
    endless = [row for row in curve if row["curve"] == "beta, M = ∞"]
    assert len(endless) == 199
    assert all(float(row["p"]) == pytest.approx(float(row["a"]) ** 2) for row in endless)
    errata = list(csv.DictReader((page.parent / "tables" / "errata.csv").open()))
    assert float(errata[0]["theirs"]) == pytest.approx(by_events((0.64 + 0.04 / 9) / 2, 0.8, 10, "beta"))
    assert [round(float(errata[1][key]), 3) for key in ("theirs", "best")] == [0.707, 0.545]


def test_there_is_no_recipe_to_change():
    with pytest.raises(StudyError, match="--set epochs: the study 'chen-theory' trains nothing"):
        STUDY.settings(changes={"epochs": 3})
