"""Distillation on CIFAR-10: the grid as the paper describes it, the pilot, the claims, and the page on a few digits."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache

import pytest

from softtargets.claims import examples_variance
from softtargets.exceptions import StudyError
from softtargets.recipes import Digits, Distillation
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from softtargets.studies.muller_figure_5.grid import PILOT_SEEDS, PROTOCOLS, VIEW, measure
from softtargets.studies.muller_figure_6.grid import TEACHER
from softtargets.studies.protocols import ALEXNET_CIFAR10
from softtargets.training import train
from softtargets.training.teaching import asked_through

from .making import written
from .pages import chosen, full_grid, made_up, rows_of, told, verdicts, wiggle

STUDY = find_study(STUDIES, "muller-figure-5")
GRID = full_grid(STUDY.name, None)
TINY = {"size": "small", "data": Digits(limit=64, validation=40), "epochs": 2, "batch": 32}


def test_the_grid_has_every_point_of_the_figure():
    assert STUDY.seeds == 3
    assert Counter(trial.labels["role"] for trial in GRID) == {
        "teacher": 3 * 6,
        "baseline": 3 * 6,
        "student": 3 * (7 + 5),  # the hard teacher's student at T = 1 is on two curves
        "pilot": 2 * 3 * 2,
    }
    assert len({trial.recipe.id for trial in GRID}) == len(GRID) == 84
    for scenario in PROTOCOLS["full"].scenarios:
        assert all(len(chosen(GRID, **point)) == 3 for point in scenario.points)


def test_recipes_are_those_of_the_paper():
    for trial in GRID:
        recipe, role = trial.recipe, trial.labels["role"]
        base = TEACHER if role == "teacher" else ALEXNET_CIFAR10
        changed = {"seed": recipe.seed, "regulariser": recipe.regulariser}
        if role == "pilot":
            changed |= {"epochs": 62, "schedule.milestones": (20, 41)}
        assert recipe.id == base.replace(changed).id
        if role in ("student", "pilot"):
            soft = recipe.regulariser
            assert isinstance(soft, Distillation)
            assert (soft.beta, soft.student_temperature, soft.match) == (1.0, False, "probabilities")
            assert soft.temperature == trial.labels["temperature"]
            assert soft.view == trial.labels.get("view", VIEW)
            alpha = getattr(soft.teacher.regulariser, "alpha", 0.0)
            assert alpha == trial.labels["alpha"]
    temperatures = {t.labels["temperature"] for t in chosen(GRID, role="student", alpha=0.0)}
    assert temperatures == {1, 2, 3, 4, 8, 12, 16}


def test_every_student_has_a_teacher_that_is_a_trial_itself():
    trained = {trial.recipe.id: trial for trial in GRID}
    for trial in GRID:
        if trial.recipe.teacher is not None:
            teacher = trained[trial.recipe.teacher.id]
            assert teacher.labels["role"] == "teacher"
            own = 0 if trial.labels["role"] == "pilot" else trial.recipe.seed
            assert teacher.recipe.seed == own


def test_the_pilot_has_seeds_that_judge_nothing_and_one_cell_for_each_view():
    assert not set(PILOT_SEEDS) & set(range(STUDY.seeds))
    assert {t.recipe.seed for t in chosen(GRID, role="pilot")} == set(PILOT_SEEDS)
    for view, through in (("stored", None), ("student", "student"), ("teacher", "teacher")):
        for trial in chosen(GRID, role="pilot", view=view):
            found = asked_through(trial.recipe)
            assert found == {None: None, "student": trial.recipe, "teacher": trial.recipe.teacher}[through]


def test_the_small_size_is_another_grid_and_cannot_be_mixed_with_the_full_one():
    small = STUDY.trials(STUDY.settings())
    assert {t.labels["size"] for t in small} == {"small"}
    assert not {t.recipe.id for t in small} & {t.recipe.id for t in GRID}
    assert {t.recipe.precision for t in small} == {"fp32"}
    assert {t.recipe.data.limit for t in small} == {2000}


@pytest.mark.parametrize("field", ["regulariser.view", "augmentation", "model", "regulariser.alpha"])
def test_what_the_grid_compares_cannot_be_set(field):
    with pytest.raises(StudyError, match="it is what the study compares"):
        STUDY.settings(changes={field: 1})


# Accuracies in per cent, as the paper's figure shows them.
LIKE_THE_PAPER = {"m1": 93.0, "m1_smoothed": 94.0, "m2": 86.0, "m2_smoothed": 85.0, "m3": 89.0, "m4": 85.0}
TEACHER_BETTER, ALONE_WORSE, EVERY, AVERAGE, NO_BETTER, INFERIOR = range(6)


def results_with(seeds=None, **accuracies):
    values = LIKE_THE_PAPER | accuracies

    def measures(trial):
        labels, seed = trial.labels, trial.recipe.seed
        smoothed = "_smoothed" if labels["alpha"] else ""
        if labels["role"] == "pilot":
            found = 80.0 + {"student": values.get("pilot_student", 0.0)}.get(labels["view"], 0.0)
        elif labels["role"] == "student":
            found = values["m4" if labels["alpha"] else "m3"]
            found = values.get(f"m3_at_{labels['temperature']:g}", found) if not labels["alpha"] else found
            found = values.get(f"m4_at_{labels['alpha']:g}", found) if labels["alpha"] else found
        else:
            found = values[{"teacher": "m1", "baseline": "m2"}[labels["role"]] + smoothed]
        accuracy = (found + wiggle(seed, 0.01)) / 100
        return {"accuracy_validation": accuracy, "accuracy": accuracy, "gamma": labels["alpha"]}

    return made_up(STUDY, measures, seeds)


def test_results_like_the_papers_bear_every_claim_out():
    assert verdicts(STUDY, results_with()) == ["reproduced"] * 6


@pytest.mark.parametrize(
    ("changes", "fallen"),
    [
        ({"m1_smoothed": 91.0}, {TEACHER_BETTER}),
        ({"m2_smoothed": 87.5}, {ALONE_WORSE}),
        # One temperature is enough to fall by, where every one is claimed.
        ({"m3_at_16": 80.0}, {EVERY}),
        ({"m4_at_0.45": 87.0}, {NO_BETTER}),
        ({"m4": 91.0}, {NO_BETTER, INFERIOR}),
        ({"m3": 83.0, "m4": 82.0}, {EVERY, AVERAGE}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changes, fallen):
    found = verdicts(STUDY, results_with(**changes))
    assert found == ["contradicted" if place in fallen else "reproduced" for place in range(6)]


def test_claims_are_known_before_there_are_runs_and_with_one_seed():
    for results in (Results(()), results_with(seeds=1)):
        assert verdicts(STUDY, results) == ["not run yet"] * 6
    assert all("–" in claim.measured or not claim.measured for claim in STUDY.claims(Results(())))
    assert len(dict(STUDY.claims(Results(()))[EVERY].cells)) == 7 * 6


def test_pages_are_made_of_any_part_of_the_runs():
    whole = results_with()
    for part in (Results(()), Results(whole.outcomes[:1]), Results(whole.outcomes[13:15]), whole):
        found = STUDY.findings(part)
        assert len(found.sections) == 3
        assert len(found.claims) == 6


def test_the_rule_of_the_pilot_is_told_and_whether_the_curves_follow_it():
    def said(results):
        return " ".join(part for part in STUDY.findings(results).sections[1].paragraphs)

    assert "So the rule chooses what the curves use." in said(results_with())
    assert "The rule would choose student's images" not in said(results_with(pilot_student=0.4))
    assert "would choose student's images" in said(results_with(pilot_student=0.6))
    assert "The pilot has not been run yet." in said(Results(()))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The whole study at its small size with one seed on 64 digits."""
    directory = tmp_path_factory.mktemp("muller-figure-5")
    store, settings = RunStore(directory / "runs"), STUDY.settings(seeds=1, changes=TINY)
    page = run_study(STUDY, settings, store, directory / "page", command="c", train=train, device="cpu")
    return page, store, settings


def test_the_whole_study_on_a_few_digits(tiny):
    page, _, settings = tiny
    results = told(page)
    assert results["claims"] == []
    assert results["warnings"] == []
    assert "The small size decides nothing" in page.read_text()
    assert len(rows_of(page, "runs")) == len(STUDY.trials(settings)) == 3 + 3 + 5 + 12
    for name in ("distillation", "pilot"):
        assert (page.parent / "figures" / f"{name}.svg").stat().st_size > 5_000


def test_what_is_measured_is_what_was_kept(tiny):
    page, store, settings = tiny
    rows = {row["run"]: row for row in rows_of(page, "runs")}
    for trial in STUDY.trials(settings):
        run = store.find(trial.recipe)
        assert run.has_only_scores("train")
        for split, name in (("validation", "accuracy_validation"), ("test", "accuracy")):
            kept = run.predictions(split)
            right = sum(int(row.argmax() == y) for row, y in zip(kept.logits, kept.labels, strict=True))
            assert float(rows[run.id][name]) == pytest.approx(right / len(kept.labels))


def test_gamma_is_that_of_what_the_teacher_says_of_its_training_images(tiny):
    page, store, settings = tiny
    rows = {row["run"]: row for row in rows_of(page, "runs")}
    trial = chosen(STUDY.trials(settings), role="student", alpha=0.0, temperature=4.0)[0]
    kept = store.find(trial.recipe.teacher).predictions("train")
    said = (kept.logits.double() / 4).softmax(-1)
    wrong = sum(1 - float(said[i, label]) for i, label in enumerate(kept.labels)) / len(kept.labels)
    assert float(rows[store.find(trial.recipe).id]["gamma"]) == pytest.approx(wrong * 10 / 9, rel=1e-6)


def test_a_page_without_some_teacher(tiny, tmp_path):
    _, store, settings = tiny
    other = RunStore(tmp_path / "runs")
    shutil.copytree(store.root, other.root)
    for directory in other.root.glob("*/measures"):
        shutil.rmtree(directory)  # what was measured while the teacher was there
    other.delete(chosen(STUDY.trials(settings), role="teacher", alpha=0.3)[0].recipe.id)
    page = run_study(STUDY, settings, other, tmp_path / "page", command="c", train=None, device="cpu")
    assert any("could not be measured" in said for said in told(page)["warnings"])


def test_differences_have_the_chance_of_the_held_out_images(tmp_path):
    """Which images are held out is chance too: more seeds do not lower what it adds."""
    store = RunStore(tmp_path)
    curves = [trial for trial in GRID if trial.labels["role"] != "pilot"]
    runs = {trial.recipe.id: written(store, trial) for trial in curves}
    results = Results(tuple(Outcome(t, runs[t.recipe.id], measure(t, runs[t.recipe.id])) for t in curves))
    made = STUDY.claims(results)
    for claim in made:
        samples = [sample for _, sample in claim.cells] or [claim.sample]
        assert all(sample.examples is not None for sample in samples)
    taught, alone = ([t for t in curves if is_on(t)] for is_on in (_of_hard, _alone))
    table = [
        [100 * (_share(runs, taught, seed, image) - _share(runs, alone, seed, image)) for image in range(300)]
        for seed in range(STUDY.seeds)
    ]
    found = made[AVERAGE].sample
    assert list(found.values) == pytest.approx([sum(row) / 300 for row in table])
    assert found.examples == pytest.approx(examples_variance(table))
    assert found.examples > 0


def _of_hard(trial):
    return trial.labels["role"] == "student" and trial.labels["alpha"] == 0


def _alone(trial):
    return trial.labels["role"] == "baseline"


def _share(runs, trials, seed, image):
    """Of the models of a curve and seed, how many are right about a held-out image."""
    right = []
    for trial in trials:
        if trial.recipe.seed == seed:
            said = _held_out(runs[trial.recipe.id])
            right.append(int(said[0][image] == said[1][image]))
    return sum(right) / len(right)


@cache
def _held_out(run):
    said = run.predictions("validation")
    return said.logits.argmax(-1).tolist(), said.labels.tolist()
