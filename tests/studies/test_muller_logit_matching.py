"""Logit matching at each teacher's own best: the grid, the choosing seed, the claims, and the page on a few digits."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from softtargets.exceptions import StudyError
from softtargets.recipes import Digits
from softtargets.report import Table
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Results, find_study, run_study
from softtargets.studies.muller_logit_matching.findings import chosen as chosen_setting
from softtargets.studies.muller_logit_matching.grid import PLANS, SHARED
from softtargets.training import train

from .pages import chosen, full_grid, made_up, rows_of, told, verdicts, wiggle

STUDY = find_study(STUDIES, "muller-logit-matching")
GRID = full_grid(STUDY.name, None)
CELLS = 5 * 6


ALONE = {"size": "full", "role": "alone"}


def best_table(results):
    exhibits = [one for section in STUDY.findings(results).sections for one in section.exhibits]
    (table,) = (one for one in exhibits if isinstance(one, Table) and one.name == "best")
    return table.rows


def test_the_grid_is_two_teachers_and_every_rate_and_clip_for_each():
    assert STUDY.seeds == 6
    assert len(GRID) == 6 * (2 + 2 * CELLS + 5)
    assert len({t.recipe.id for t in GRID}) == len(GRID)
    for trial in chosen(GRID, role="student"):
        recipe, soft = trial.recipe, trial.recipe.regulariser
        assert (soft.match, soft.beta, soft.teacher.seed) == ("logits", 0.6, recipe.seed)
        assert (recipe.optimiser.lr, recipe.clip) == (trial.labels["lr"], trial.labels["clip"])
        assert recipe.optimiser.rates == (("head.*", 0.1),)
    for trial in chosen(GRID, role="teacher"):
        assert trial.recipe.model.dropout == (0.0 if trial.labels["alpha"] else 0.5)
    for trial in chosen(GRID, role="alone"):
        assert trial.recipe.regulariser.name == "cross_entropy"
        assert trial.recipe.clip is None


def test_the_one_setting_for_both_is_that_of_the_table_of_mnist_distillation():
    other = find_study(STUDIES, "mnist-distillation")
    table = {
        t.recipe.id for t in other.trials(other.settings(seeds=6)) if t.labels["role"].startswith("table")
    }
    lr, clip = SHARED
    mine = {
        t.recipe.id for t in [*chosen(GRID, role="student", lr=lr, clip=clip), *chosen(GRID, role="teacher")]
    }
    assert mine == table


@pytest.mark.parametrize("field", ["optimiser.lr", "clip", "model.dropout"])
def test_what_the_grid_compares_cannot_be_set(field):
    with pytest.raises(StudyError, match="it is what the study compares"):
        STUDY.settings(changes={field: 1})


# Errors in per cent at the best setting of each and at the shared one, and sizes of logits.
LIKE_THE_PAPER = {"hard": 0.74, "smoothed": 0.91, "hard_shared": 0.80, "smoothed_shared": 0.95, "ratio": 4.0}
BEST = {"hard": (0.1, 10.0), "smoothed": (0.3, None)}


def results_with(seeds=None, missing=lambda trial: False, lucky=None, **changes):
    values = LIKE_THE_PAPER | changes

    def measures(trial):
        labels, seed = trial.labels, trial.recipe.seed
        if missing(trial):
            return None
        kind = "smoothed" if labels.get("alpha") else "hard"
        error, logits = 1.5, 1.0
        if labels["role"] == "student":
            place = (labels["lr"], labels["clip"])
            error = values[kind] if place == BEST[kind] else 2.0
            error = values[f"{kind}_shared"] if place == SHARED else error
            if seed == 0 and (kind, *place) == lucky:
                error = 0.01  # with the seed that chooses, and with no other
        elif labels["role"] == "teacher" and kind == "hard":
            logits = values["ratio"]
        error = (error + wiggle(seed, 0.004) * (1 if kind == "hard" else -1)) / 100
        return {"error": error, "accuracy": 1 - error, "logits": logits + wiggle(seed, 0.001)}

    return made_up(STUDY, measures, seeds)


def test_results_like_the_papers_bear_every_claim_out():
    assert verdicts(STUDY, results_with()) == ["reproduced"] * 3


@pytest.mark.parametrize(
    ("changes", "fallen"),
    [
        ({"smoothed": 0.6}, {0}),
        ({"hard_shared": 1.3}, {1}),
        ({"ratio": 1.5}, {2}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changes, fallen):
    found = verdicts(STUDY, results_with(**changes))
    assert found == ["contradicted" if place in fallen else "reproduced" for place in range(3)]


def test_each_teacher_has_its_own_best_and_the_seed_that_chooses_does_not_judge():
    results = results_with(lucky=("smoothed", 3.0, 0.1))
    found = {alpha: chosen_setting(results, alpha) for alpha in (0.0, 0.1)}
    assert (found[0.0]["lr"], found[0.0]["clip"]) == BEST["hard"]
    assert (found[0.1]["lr"], found[0.1]["clip"]) == (3.0, 0.1)
    claim = STUDY.claims(results)[0]
    assert claim.sample.n == 5
    assert claim.sample.mean == pytest.approx(2.0 - 0.74, abs=0.02), "the lucky seed does not count"


def is_without_clip(trial):
    return trial.labels.get("clip", 0.0) is None


def test_runs_that_failed_are_empty_cells_and_are_not_chosen():
    unfinished = results_with(missing=is_without_clip)
    results = replace(unfinished, failed=tuple(trial for trial in GRID if is_without_clip(trial)))
    assert chosen_setting(results, 0.1)["clip"] is not None
    assert len(STUDY.findings(results).claims) == 3
    sections = STUDY.findings(results_with(missing=lambda trial: trial.labels["role"] == "student")).sections
    assert len(sections) == 2


def test_nothing_is_chosen_before_the_first_seed_has_trained_its_whole_grid():
    """Of the smoothed teacher's students those without a clip are still to be trained; the best may be among them."""
    results = results_with(missing=lambda trial: is_without_clip(trial) and trial.labels["alpha"] == 0.1)
    assert chosen_setting(results, 0.1) is None
    assert (chosen_setting(results, 0.0)["lr"], chosen_setting(results, 0.0)["clip"]) == BEST["hard"]
    assert verdicts(STUDY, results) == ["not run yet", "reproduced", "reproduced"]
    students = {row["student"]: row for row in best_table(results)}
    assert students["of the teacher with label smoothing 0.1"]["setting"] == "–"


def test_the_students_alone_have_no_best_either_before_all_of_them_are_there():
    whole, part = results_with(), results_with(missing=lambda t: t.labels == {**ALONE, "lr": 3.0})
    assert [row["setting"] for row in best_table(whole)][-1] == "a rate of 0.03, no clip"
    assert [row["setting"] for row in best_table(part)][-1] == "–"


def test_pages_are_made_of_any_part_of_the_runs():
    whole = results_with()
    assert verdicts(STUDY, Results(())) == ["not run yet"] * 3
    assert verdicts(STUDY, results_with(seeds=1)) == ["not run yet"] * 3
    for part in (Results(()), Results(whole.outcomes[:1]), Results(whole.outcomes[5:9]), whole):
        assert len(STUDY.findings(part).sections) == 2


def test_the_whole_study_on_a_few_digits(tmp_path):
    changes = {"size": "small", "data": Digits(limit=64), "epochs": 1, "batch": 32}
    settings = STUDY.settings(seeds=1, changes=changes)
    store = RunStore(tmp_path / "runs")
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    rows = {row["run"]: row for row in rows_of(page, "runs")}
    plan = PLANS["small"]
    assert len(rows) == 2 + 2 * len(plan.rates) * len(plan.clips) + len(plan.rates)
    assert told(page)["claims"] == []
    for trial in STUDY.trials(settings)[:3]:
        kept = store.find(trial.recipe).predictions("test")
        spreads = []
        for logits in kept.logits.double().tolist():
            mean = sum(logits) / 10
            spreads.append(math.sqrt(sum((z - mean) ** 2 for z in logits) / 10))
        found = rows[store.find(trial.recipe).id]
        assert float(found["logits"]) == pytest.approx(sum(spreads) / len(spreads), rel=1e-9)
        wrong = sum(int(z.argmax() != y) for z, y in zip(kept.logits, kept.labels, strict=True))
        assert float(found["error"]) == pytest.approx(wrong / len(kept.labels))
    assert (page.parent / "figures" / "rates_and_clips.svg").stat().st_size > 5_000
