"""Mutual information in training: the grid, what is read from the looks, the claims, and the page on a few digits."""

from __future__ import annotations

import math

import pytest

from softtargets.information import Evolution
from softtargets.recipes import Digits, Information
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Results, find_study, run_study
from softtargets.studies.muller_figure_6.grid import first_drop, read
from softtargets.studies.protocols import RESNET56_CIFAR10
from softtargets.training import train
from softtargets.training.course import rate_factor

from .pages import full_grid, made_up, rows_of, told, verdicts, wiggle

STUDY = find_study(STUDIES, "muller-figure-6")
GRID = full_grid(STUDY.name, None)


def test_the_grid_is_the_papers_and_shares_its_runs_with_figure_5():
    assert [t.labels["alpha"] for t in GRID] == [0.0, 0.15, 0.3, 0.45, 0.6, 0.75] * 3
    for trial in GRID:
        recipe = trial.recipe
        probes = (Information(), Information(inner="others"))
        changed = {"seed": recipe.seed, "regulariser": recipe.regulariser, "probes": probes}
        assert recipe.id == RESNET56_CIFAR10.replace(changed).id
        assert (probes[0].examples, probes[0].draws, probes[0].every) == (300, 5, 4000)
    teachers = {t.recipe.id for t in full_grid("muller-figure-5", None) if t.labels["role"] == "teacher"}
    assert teachers <= {t.recipe.id for t in GRID}


def test_no_look_is_chosen_by_what_it_found():
    course = Evolution((100, 200, 300, 400), (1.0, 3.0, 9.0, 2.0), (0.1,) * 4, 6.4)
    assert read(course) == {"information": 2.0, "early": 2.0, "fall": 0.0, "bound": 6.4}
    once = Evolution((7,), (1.5,), (0.1,), 6.4)
    assert read(once) == {"information": 1.5, "early": 1.5, "fall": 0.0, "bound": 6.4}


def test_early_looks_are_those_before_the_rate_first_drops():
    """At step 32,000 of the paper's training the rate is a tenth of what it was, since step 102 x 313 = 31,926."""
    recipe = GRID[0].recipe
    steps = (*range(4000, 64001, 4000), 64_165)
    rates = [recipe.optimiser.lr * rate_factor(recipe.schedule, step, 313, 64_165) for step in steps]
    highest = [step for step, rate in zip(steps, rates, strict=True) if rate == max(rates)]
    assert highest[-1] == 28_000
    course = Evolution(steps, tuple(float(step) for step in steps), (0.1,) * len(steps), 6.4)
    assert read(course, first_drop(recipe))["early"] == sum(highest) / len(highest)


def history(trial):
    rows = []
    for step, nats in ((4000, 2.0), (8000, 1.5), (12000, 1.0)):
        row = {"step": step}
        for prefix in ("train_0_5", "train_0_5_others"):
            row |= {
                f"information.{prefix}_{key}": value
                for key, value in (("nats", nats), ("standard_error", 0.1))
            }
            row[f"information.{prefix}_bound"] = math.log(600)
        rows.append(row)
    return rows


# As the paper describes it: nats at the end, and before.
LIKE_THE_PAPER = {"hard": 2.5, "hard_early": 2.7, "smoothed": 0.8, "smoothed_early": 1.8}


def results_with(seeds=None, **changes):
    values = LIKE_THE_PAPER | changes

    def measures(trial):
        kind = "smoothed" if trial.labels["alpha"] else "hard"
        shake = wiggle(trial.recipe.seed, 0.002)
        final, early = values[kind] + shake, values[f"{kind}_early"] - shake
        found = {"information": final, "early": early, "fall": early - final, "others_information": final}
        return found | {"validation_accuracy": 0.9}

    return made_up(STUDY, measures, seeds, history)


def test_results_like_the_papers_bear_every_claim_out():
    assert verdicts(STUDY, results_with()) == ["reproduced"] * 4


@pytest.mark.parametrize(
    ("changes", "fallen"),
    [
        ({"hard": 0.5, "hard_early": 0.7}, {0}),
        ({"smoothed_early": 0.5, "hard_early": 1.0}, {1}),
        ({"hard_early": 4.5}, {2}),
        ({"smoothed": 1.4, "smoothed_early": 2.4}, {3}),
        ({"smoothed": 0.5}, {3}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changes, fallen):
    found = verdicts(STUDY, results_with(**changes))
    assert found == ["contradicted" if place in fallen else "reproduced" for place in range(4)]


def test_pages_are_made_of_any_part_of_the_runs():
    whole = results_with()
    assert verdicts(STUDY, Results(())) == ["not run yet"] * 4
    for part in (
        Results(whole.outcomes[:1]),
        Results(whole.outcomes[1:2]),
        Results(whole.outcomes[5:6]),
        whole,
    ):
        found = STUDY.findings(part)
        assert len(found.claims) == 4
        assert len(found.sections) == 3
    assert STUDY.findings(whole).sections[0].exhibits[0].name == "information"


def test_the_whole_study_on_a_few_digits(tmp_path):
    changes = {"size": "small", "data": Digits(validation=100), "epochs": 2}
    settings = STUDY.settings(seeds=1, changes=changes)
    store = RunStore(tmp_path / "runs")
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    assert told(page)["claims"] == []
    assert told(page)["warnings"] == []
    rows = rows_of(page, "information")
    for trial in STUDY.trials(settings):
        kept = store.find(trial.recipe).history()
        looks = {row["step"]: row for row in kept if row.get("information.train_0_5_nats") is not None}
        for inner, key in (("all", "train_0_5"), ("others", "train_0_5_others")):
            mine = [r for r in rows if (float(r["alpha"]), r["inner"]) == (trial.labels["alpha"], inner)]
            assert [int(r["step"]) for r in mine] == sorted(looks)
            for row in mine:
                assert float(row["mean"]) == pytest.approx(looks[int(row["step"])][f"information.{key}_nats"])
    assert "the digits 0 and 5" not in page.read_text()  # these are others' digits
