"""LABO as a teacher: the grid and what it shares, the claims, and the page on a few digits."""

from __future__ import annotations

import pytest

from softtargets.recipes import LABO, Digits
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, Trial, find_study, run_study
from softtargets.studies.beyond_labo_teacher.grid import METHODS, PAIRS, warm_up
from softtargets.training import train

from .pages import chosen, full_grid, made_up, rows_of, told, verdicts, wiggle

STUDY = find_study(STUDIES, "beyond-labo-teacher")
GRID = full_grid(STUDY.name, None)


def test_the_grid_has_a_student_of_every_teacher_at_both_temperatures():
    mnist, cifar = chosen(GRID, data="mnist"), chosen(GRID, data="cifar10")
    assert len(mnist) == 5 * (1 + 5 * 3)
    assert len(cifar) == 2 * (1 + 4 * 3)
    for trial in chosen(GRID, role="student"):
        soft = trial.recipe.regulariser
        assert (soft.temperature, soft.beta) == (trial.labels["temperature"], 1.0)
        assert soft.view == ("stored" if trial.labels["data"] == "cifar10" else "student")
        assert soft.teacher.seed == trial.recipe.seed
    literal = chosen(GRID, role="teacher", method="LABO", data="cifar10")[0].recipe.regulariser
    assert isinstance(literal, LABO)
    assert (literal.reading, literal.alpha, literal.warmup_steps) == ("literal", None, 4107)


def test_runs_are_shared_with_the_studies_of_distillation():
    for name, size, data in (("mnist-distillation", None, "mnist"), ("muller-figure-5", "full", "cifar10")):
        other = find_study(STUDIES, name)
        settings = other.settings(seeds=2, changes={"size": size} if size else {})
        theirs = {t.recipe.id for t in other.trials(settings)}
        hard = [
            t for t in chosen(GRID, data=data) if t.labels.get("method", "hard targets") == "hard targets"
        ]
        assert {t.recipe.id for t in hard if t.recipe.seed < 2} <= theirs


def test_a_warm_up_is_the_same_share_of_every_training():
    teacher = PAIRS["full"]["mnist"].teacher
    assert warm_up(teacher) == round(0.064 * 46_900)
    assert warm_up(teacher.replace({"epochs": 50})) == round(0.064 * 23_450)
    assert warm_up(teacher.replace({"data.limit": 128})) == round(0.064 * 100)


# Errors in per cent of students, by method.
AS_IF = {"alone": 2.0, "hard targets": 1.0, "label smoothing": 1.8, "LABO": 1.5}


def results_with(seeds=None, **changes):
    values = AS_IF | changes

    def measures(trial):
        labels = trial.labels
        key = "alone" if labels["role"] == "alone" else labels["method"]
        shake = wiggle(trial.recipe.seed, 0.001) * (1 if key == "LABO" else -1)
        scale = 10 if labels["data"] == "cifar10" else 1
        error = (scale * values.get(key, 1.2) + shake) / 100
        return {"error": error, "accuracy": 1 - error, "gamma": 0.1}

    return made_up(STUDY, measures, seeds)


def test_claims_hold_and_fall_by_their_own_numbers():
    assert verdicts(STUDY, results_with()) == ["reproduced"] * 6
    assert verdicts(STUDY, results_with(LABO=0.8)) == ["contradicted", "reproduced", "reproduced"] * 2
    assert verdicts(STUDY, results_with(LABO=1.9)) == ["reproduced", "contradicted", "reproduced"] * 2
    worst = verdicts(STUDY, results_with(LABO=2.5))
    assert worst == ["reproduced", "contradicted", "contradicted"] * 2
    assert verdicts(STUDY, results_with(LABO=1.0))[0] == "no effect"


def test_a_users_changes_decide_nothing():
    changed = []
    for outcome in results_with().outcomes:
        trial = Trial(outcome.trial.recipe.replace({"epochs": 1}), outcome.trial.labels)
        changed.append(Outcome(trial, outcome.run, outcome.measures))
    assert verdicts(STUDY, Results(tuple(changed))) == ["not run yet"] * 6


def test_pages_are_made_of_any_part_of_the_runs():
    whole = results_with()
    assert verdicts(STUDY, Results(())) == ["not run yet"] * 6
    assert verdicts(STUDY, results_with(seeds=2))[:3] == ["not run yet"] * 3
    for part in (Results(()), Results(whole.outcomes[:1]), Results(whole.outcomes[-2:]), whole):
        found = STUDY.findings(part)
        assert len(found.sections) == 2
        assert len(found.claims) == 6


def test_the_whole_study_on_a_few_digits(tmp_path):
    changes = {"size": "small", "data": Digits(limit=64), "epochs": 1, "batch": 32}
    settings = STUDY.settings(seeds=1, changes=changes)
    store = RunStore(tmp_path / "runs")
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    results = told(page)
    assert results["claims"] == []
    assert results["warnings"] == []
    table = rows_of(page, "errors_mnist")
    assert [row["method"] for row in table] == [*METHODS, "no teacher"]
    run = store.find(chosen(STUDY.trials(settings), role="student", method="LABO", temperature=4.0)[0].recipe)
    kept = run.predictions("test")
    wrong = sum(int(z.argmax() != y) for z, y in zip(kept.logits, kept.labels, strict=True))
    assert float(table[2]["warm_mean"]) == pytest.approx(wrong / len(kept.labels))
