"""Distillation on MNIST: the grid as the papers describe it, and all the rest on a few digits."""

from __future__ import annotations

import csv
import json
import math
import shutil
from collections import Counter

import pytest
import torch

from softtargets.claims import judge
from softtargets.exceptions import StudyError
from softtargets.models import MLP as Net
from softtargets.recipes import MNIST, SGD, Digits, Distillation, Linear, Shift
from softtargets.runs import Run, RunStore
from softtargets.studies import STUDIES, Outcome, Place, Results, find_study, run_study
from softtargets.studies.distilling import Smoothness, best, smoothness_index
from softtargets.studies.mnist_distillation.curves import BASELINES, OF_HARD, OF_SMOOTHED
from softtargets.studies.mnist_distillation.grid import TEMPERATURES
from softtargets.training import train

STUDY = find_study(STUDIES, "mnist-distillation")
GRID = STUDY.trials(STUDY.settings())
TINY = {"data": Digits(limit=48), "epochs": 1, "batch": 32, "precision": "fp32"}


def chosen(trials, **labels):
    return [t for t in trials if all(t.labels.get(key) == value for key, value in labels.items())]


def test_the_grid_has_every_point_of_the_figure_and_every_row_of_the_table():
    assert STUDY.seeds == 10
    counts = Counter(trial.labels["role"] for trial in GRID)
    assert counts == {
        "teacher": 10 * 6,
        "baseline": 10 * 6,
        "student": 10 * (6 + 5),  # the hard teacher's student at T = 1 is on two curves
        "table teacher": 10 * 2,
        "table student": 10 * 2,
    }
    assert len({trial.recipe.id for trial in GRID}) == 270
    for curve in (OF_HARD, OF_SMOOTHED):
        assert all(len(chosen(GRID, **point)) == 10 for point in curve.points)
    assert OF_HARD.points[0] == OF_SMOOTHED.points[0]
    assert STUDY.keep == ("test:scores",)


def test_every_student_has_a_teacher_of_the_same_seed_that_is_a_trial_itself():
    trained = {trial.recipe.id: trial for trial in GRID}
    students = [trial for trial in GRID if "student" in trial.labels["role"]]
    for trial in students:
        teacher = trained[trial.recipe.teacher.id]
        assert teacher.recipe.seed == trial.recipe.seed
        assert teacher.labels["alpha"] == trial.labels["alpha"]
        assert teacher.labels["role"] == trial.labels["role"].replace("student", "teacher")


def test_recipes_are_those_of_the_papers():
    for trial in GRID:
        recipe, teaches = trial.recipe, trial.labels["role"].endswith("teacher")
        assert recipe.data == MNIST(validation=0, limit=None, standardise="unit")
        assert recipe.optimiser == SGD(lr=1.0, momentum=0.9, dampening=0.9, rates=(("head.*", 0.1),))
        assert (recipe.schedule, recipe.epochs, recipe.batch) == (Linear(end=0.0), 100, 128)
        assert recipe.precision == "bf16"
        # Matching a hard teacher's logits at a learning rate of 1 diverges without it.
        assert recipe.clip == (1.0 if trial.labels["role"] == "table student" else None)
        assert recipe.model.hidden == ((1200, 1200) if teaches else (800, 800))
        assert recipe.model.init_std == 0.03
        assert recipe.augmentation == ((Shift(pixels=2),) if teaches else ())
        with_dropout = trial.labels == {"role": "table teacher", "alpha": 0.0}
        assert recipe.model.dropout == (0.5 if with_dropout else 0.0)


def test_losses_are_those_of_the_papers():
    for trial in GRID:
        loss, labels = trial.recipe.regulariser, trial.labels
        if labels["role"] == "student":
            assert loss == Distillation(
                teacher=trial.recipe.teacher,
                temperature=labels["temperature"],
                beta=1.0,
                student_temperature=False,
                match="probabilities",
            )
        elif labels["role"] == "table student":
            assert loss == Distillation(teacher=trial.recipe.teacher, match="logits", beta=0.6)
        elif labels["alpha"] == 0:
            assert loss.name == "cross_entropy"
        else:
            assert (loss.name, loss.alpha, loss.spread) == ("label_smoothing", labels["alpha"], "all")
    assert {t.labels["temperature"] for t in chosen(GRID, role="student", alpha=0.0)} == set(TEMPERATURES)


@pytest.mark.parametrize("field", ["model.hidden", "augmentation", "regulariser.alpha", "model.dropout"])
def test_what_the_grid_compares_cannot_be_set(field):
    with pytest.raises(StudyError, match="it is what the study compares"):
        STUDY.settings(changes={field: 1})


def test_gamma_by_hand():
    """Three classes; the second example is mistaken, which counts as mass on a wrong class like any other."""
    logits, labels = [[2.0, 0.0, -1.0], [0.5, 1.0, 0.0]], [0, 2]
    for temperature in (1.0, 4.0):
        total = 0.0
        for row, label in zip(logits, labels, strict=True):
            mass = [math.exp(value / temperature) for value in row]
            total += sum(mass[k] / sum(mass) * 3 / 2 for k in range(3) if k != label)
        found = smoothness_index(torch.tensor(logits), torch.tensor(labels), temperature)
        assert found == pytest.approx(total / 2, rel=1e-12)


def test_gamma_of_label_smoothing_is_alpha():
    targets = torch.full((4, 10), 0.3 / 10, dtype=torch.float64)
    labels = torch.tensor([0, 3, 3, 9])
    targets[range(4), labels] += 0.7
    assert smoothness_index(targets.log(), labels) == pytest.approx(0.3, rel=1e-12)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The whole study with one seed on 48 digits, made once for this module."""
    directory = tmp_path_factory.mktemp("mnist-distillation")
    store = RunStore(directory / "runs")
    settings = STUDY.settings(seeds=1, changes=TINY)
    page = run_study(
        STUDY, settings, store, directory / "report", command="c", train=train, device="cpu", data_dir=None
    )
    return page, store, settings


def test_a_student_without_its_teacher_is_left_out(tiny, tmp_path):
    _, store, settings = tiny
    other = RunStore(tmp_path / "runs")
    shutil.copytree(store.root, other.root)
    student = next(
        trial.recipe
        for trial in reversed(STUDY.trials(settings))
        if isinstance(trial.recipe.regulariser, Distillation)
        and trial.recipe.regulariser.match == "probabilities"
    )
    other.delete(student.teacher.id)
    shutil.rmtree(other.root / student.id / "measures")  # what was measured while the teacher was there
    page = run_study(STUDY, settings, other, tmp_path / "report", command="c", train=None, device="cpu")
    warnings = json.loads((page.parent / "results.json").read_text())["warnings"]
    assert any(
        f"Run {student.id} could not be measured: run {student.teacher.id}" in said for said in warnings
    )


def test_the_whole_study_on_a_few_digits(tiny):
    page, _, _ = tiny
    html = page.read_text()
    results = json.loads((page.parent / "results.json").read_text())
    assert len(results["claims"]) == 10
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    assert "nan" not in json.dumps(results["claims"])
    assert results["warnings"] == []
    for kind in ("png", "svg"):
        assert (page.parent / "figures" / f"distillation.{kind}").stat().st_size > 5_000
    assert len(list(csv.DictReader((page.parent / "tables" / "runs.csv").open()))) == 27
    assert len(list(csv.DictReader((page.parent / "tables" / "distillation.csv").open()))) == 24
    assert "see 48 training digits" in html
    assert "Mini-batches are of 32 examples" in html
    assert "0.67 %" in html
    assert "1.05 %" in html


def test_what_is_said_of_test_digits_is_kept_and_is_what_the_page_says(tiny):
    page, store, settings = tiny
    rows = {row["run"]: row for row in csv.DictReader((page.parent / "tables" / "runs.csv").open())}
    for trial in STUDY.trials(settings):
        run = store.find(trial.recipe)
        assert run.has_only_scores("test")
        assert not run.has_predictions("train")
        kept = run.predictions("test")
        right = sum(int(row.argmax() == label) for row, label in zip(kept.logits, kept.labels, strict=True))
        assert float(rows[run.id]["accuracy"]) == pytest.approx(right / len(kept.labels))


def test_gamma_on_the_page_is_that_of_the_teachers_weights(tiny):
    """Re-derived from the files: the teacher's layers, one after the other, on the digits as they are."""
    page, store, settings = tiny
    from softtargets.data import load

    rows = list(csv.DictReader((page.parent / "tables" / "distillation.csv").open()))
    digits = load("digits", "train")
    images, labels = torch.from_numpy(digits.images[:48]).double() / 255, torch.from_numpy(digits.labels[:48])
    for alpha, temperature, curve in ((0.0, 8.0, "M3"), (0.3, 1.0, "M4")):
        student = chosen(STUDY.trials(settings), role="student", alpha=alpha, temperature=temperature)[0]
        weights = store.find(student.recipe.teacher).weights()
        net = Net((1, 8, 8), 10, hidden=(1200, 1200), init_std=0.03)
        net.load_state_dict(weights)
        net.double().eval()
        with torch.no_grad():
            said = (net(images) / temperature).softmax(-1)
        wrong = sum(1 - float(said[i, label]) for i, label in enumerate(labels)) / 48
        where = {"curve": curve, "alpha": str(alpha), "temperature": str(temperature)}
        row = next(row for row in rows if where.items() <= row.items())
        assert float(row["gamma_mean"]) == pytest.approx(wrong * 10 / 9, rel=1e-4)


def test_gamma_of_nets_without_a_teacher_is_their_alpha(tiny):
    page, _, _ = tiny
    for row in csv.DictReader((page.parent / "tables" / "distillation.csv").open()):
        if row["curve"] in ("M1", "M2"):
            assert float(row["gamma_mean"]) == float(row["alpha"])


def test_a_teacher_is_asked_once(tiny, monkeypatch):
    """All temperatures of the hard teacher come from one look at it."""
    from softtargets.training.tasks.images import ImageTask

    _, store, settings = tiny
    asked = []

    def counting(task, recipe, *rest):
        asked.append(recipe.id)
        return original(task, recipe, *rest)

    original = ImageTask.say
    monkeypatch.setattr(ImageTask, "say", counting)
    gauge = Smoothness(Place(device="cpu"))
    found = {
        trial.labels["temperature"]: gauge(trial, store.find(trial.recipe))["gamma"]
        for trial in chosen(STUDY.trials(settings), role="student", alpha=0.0)
    }
    assert len(asked) == 1
    assert sorted(found, key=lambda temperature: found[temperature]) == list(TEMPERATURES)
    table = chosen(STUDY.trials(settings), role="table student")[0]
    assert gauge(table, store.find(table.recipe)) == {}


# Errors in %, as if measured; those that a claim compares are changed in the tests below.
ERRORS = {"teacher": 0.6, "baseline": 1.2, "table teacher": 0.7, "table student": 0.8, "m3": 0.9, "m4": 1.25}


def made_up(tmp_path, **errors: float) -> Results:
    """Results of ten seeds; `errors` are those of hard_teacher, smoothed_student, m3 (T = 1 and above) and so on."""
    trials = STUDY.trials(STUDY.settings())
    run = finished(tmp_path, trials[0].recipe)
    outcomes = []
    for trial in trials:
        labels = dict(trial.labels)
        table = {"table teacher": "teacher", "table student": "student"}.get(labels["role"])
        curve = "m3" if labels["alpha"] == 0 else "m4"
        kind = labels["role"] if labels["role"] != "student" else curve
        keys = {
            (True, 0.0): f"hard_{table}",
            (True, 0.1): f"smoothed_{table}",
            (False, 0.0): "m3_at_1" if labels.get("temperature") == 1.0 else "",
            (False, 0.15): "m2" if kind == "baseline" else "m4_at_0.15" if kind == "m4" else "",
            (False, 0.3): "m4_at_0.3" if kind == "m4" else "",
        }
        own = keys.get((table is not None, labels["alpha"]), "")
        if kind == "m3" and labels["temperature"] == 4.0:
            own = "m3_at_4"
        error = errors.get(own, errors.get(kind, ERRORS.get(kind, 0.0)))
        error += 0.0005 * ((7 * trial.recipe.seed) % 10) * (1 if kind in ("m4", "table student") else 2)
        measures = {"accuracy": 1 - error / 100, "error": error / 100, "gamma": labels["alpha"]}
        outcomes.append(Outcome(trial, run, measures))
    return Results(tuple(outcomes))


def finished(tmp_path, recipe) -> Run:
    about = {"examples": {"train": 60_000, "test": 10_000}}
    with RunStore(tmp_path).claim(recipe) as writer:
        return writer.finish({}, {}, [{"epoch": 1, "test_accuracy": 0.5}], about)


AS_PUBLISHED = {
    "hard_teacher": 0.67,
    "smoothed_teacher": 0.59,
    "hard_student": 0.74,
    "smoothed_student": 0.91,
    "m2": 1.15,
    "m3_at_4": 0.8,
    "m4_at_0.3": 1.22,
}
TEACHERS, STUDENTS, EVERY, NO_BETTER, BEST_ALONE, BEST_HARD = range(6)


def verdicts(results: Results) -> list[str]:
    return [judged.verdict for judged in judge(STUDY.findings(results).claims)]


def test_results_like_the_papers_bear_every_claim_out(tmp_path):
    assert verdicts(made_up(tmp_path, **AS_PUBLISHED)) == ["reproduced"] * 10


@pytest.mark.parametrize(
    ("changes", "fallen"),
    [
        ({"smoothed_teacher": 0.65, "hard_teacher": 0.60}, {TEACHERS}),
        ({"smoothed_student": 0.80, "hard_student": 0.86}, {STUDENTS}),
        # One temperature is enough to fall by, where every one is claimed; so is one alpha.
        ({"m3_at_1": 1.3}, {EVERY}),
        ({"m4_at_0.3": 1.0}, {NO_BETTER}),
        # A best student alone that beats all students of the hard teacher, and so of smoothed ones.
        ({"m2": 0.7}, {EVERY, BEST_ALONE}),
        ({"m4": 0.7, "m4_at_0.3": 0.7}, {NO_BETTER, BEST_HARD}),
        ({"hard_teacher": 0.90}, {6}),
        ({"smoothed_teacher": 0.40}, {7}),
        ({"hard_student": 0.50}, {8}),
        ({"smoothed_student": 1.2}, {9}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(tmp_path, changes, fallen):
    found = verdicts(made_up(tmp_path, **(AS_PUBLISHED | changes)))
    assert found == ["contradicted" if place in fallen else "reproduced" for place in range(10)]


def test_an_effect_of_three_digits_of_ten_thousand_is_none(tmp_path):
    close = AS_PUBLISHED | {"hard_teacher": 0.62, "smoothed_teacher": 0.61}
    assert verdicts(made_up(tmp_path, **close))[TEACHERS] == "no effect"


def test_the_statement_about_students_alone_is_tested_by_students_alone(tmp_path):
    """Figure 5: M4 against M2, at the same alpha; M4 against M3 is another statement."""
    claims = STUDY.findings(made_up(tmp_path, **AS_PUBLISHED)).claims
    claim = claims[NO_BETTER]
    assert [item.source for item in claim.published] == ["Müller et al. 2019, figure 5"]
    assert [name for name, _ in claim.cells] == [f"alpha {alpha:g}" for alpha in (0.15, 0.3, 0.45, 0.6, 0.75)]
    assert dict(claim.cells)["alpha 0.3"].mean == pytest.approx(1.22 - 1.2, abs=0.02)
    assert len(claims[EVERY].cells) == 36
    for place in (EVERY, NO_BETTER, BEST_ALONE):
        assert "Teachers saw shifted digits" in claims[place].remark


def test_printed_errors_have_a_margin_of_two_standard_errors(tmp_path):
    claims = STUDY.findings(made_up(tmp_path, **AS_PUBLISHED)).claims[6:]
    assert [claim.printed for claim in claims] == pytest.approx([0.67, 0.59, 0.74, 0.91])
    for claim in claims:
        share = claim.printed / 100
        by_hand = 200 * math.sqrt(share * (1 - share) / 10_000)
        assert claim.margin == pytest.approx(by_hand, abs=0.005)
    assert [judged.value for judged in judge(claims)] == ["reproduced"] * 4


def test_best_points_are_chosen_on_one_seed_and_judged_on_others(tmp_path):
    results = made_up(tmp_path, **AS_PUBLISHED)
    assert best(results, OF_HARD.points)["temperature"] == 4.0
    assert best(results, BASELINES.points)["alpha"] == 0.15
    # With seed 0 alone another temperature is best, and that one is judged, on the other nine.
    turned = tuple(
        Outcome(o.trial, o.run, o.measures | {"error": 0.0})
        if o.seed == 0 and o.trial.labels.get("temperature") == 8.0
        else o
        for o in results.outcomes
    )
    claims = STUDY.findings(Results(turned)).claims
    assert "T = 8 minus error alone at alpha 0.15" in claims[BEST_ALONE].quantity
    assert "minus error at T = 8" in claims[BEST_HARD].quantity
    assert claims[BEST_ALONE].sample.n == claims[BEST_ALONE].seeds == 9
    assert claims[BEST_ALONE].sample.mean == pytest.approx(0.9 - 1.15, abs=0.02)


def test_without_the_seed_that_chooses_nothing_is_judged(tmp_path):
    results = made_up(tmp_path, **AS_PUBLISHED)
    rest = Results(
        tuple(o for o in results.outcomes if o.seed or o.trial.labels["role"] not in ("student", "baseline"))
    )
    found = verdicts(rest)
    assert [found[place] for place in (BEST_ALONE, BEST_HARD)] == ["not run yet"] * 2


def test_the_figure_compares_with_the_best_of_the_smoothed_teachers(tmp_path):
    """Where the hard teacher's student at T = 1, which is on that curve too, is better than all of them."""
    results = made_up(tmp_path, **AS_PUBLISHED)
    better = Results(
        tuple(
            Outcome(o.trial, o.run, o.measures | {"error": 0.001, "accuracy": 0.999})
            if (o.trial.labels["alpha"], o.trial.labels.get("temperature")) == (0.0, 1.0)
            else o
            for o in results.outcomes
        )
    )
    drawing = STUDY.findings(better).sections[1].exhibits[0].draw()
    (legend,) = drawing.legends
    assert "M4 at its best, alpha 0.3" in [text.get_text() for text in legend.get_texts()]


def test_a_curve_without_any_finished_run_is_said(tmp_path):
    results = made_up(tmp_path)
    rest = Results(tuple(o for o in results.outcomes if o.trial.labels["role"] != "baseline"))
    with pytest.raises(StudyError, match=r"no finished run with .*baseline.* runs list"):
        STUDY.findings(rest)


def _lost(outcome):
    return outcome.trial.labels.get("temperature") == 16.0


def test_one_lost_point_does_not_hide_the_others(tmp_path):
    results = made_up(tmp_path, **AS_PUBLISHED)
    rest = Results(
        tuple(o for o in results.outcomes if not _lost(o)),
        failed=tuple(o.trial for o in results.outcomes if _lost(o)),
    )
    findings = STUDY.findings(rest)
    found = [judged.verdict for judged in judge(findings.claims)]
    # “Every” waits for it.
    assert found == ["not run yet" if place == EVERY else "reproduced" for place in range(10)]
    assert findings.sections[1].exhibits[0].draw() is not None


def test_nothing_is_chosen_while_a_point_is_still_to_be_trained(tmp_path):
    """It may be the best: the temperature is chosen when the first seed has all."""
    results = made_up(tmp_path, **AS_PUBLISHED)
    found = verdicts(Results(tuple(o for o in results.outcomes if o.seed or not _lost(o))))
    assert [found[place] for place in (EVERY, BEST_ALONE, BEST_HARD)] == ["not run yet"] * 3
    assert found.count("reproduced") == 7
    later = verdicts(Results(tuple(o for o in results.outcomes if o.seed != 9 or not _lost(o))))
    assert later == ["not run yet" if place == EVERY else "reproduced" for place in range(10)]


def test_errors_stand_beside_both_papers(tmp_path):
    table = STUDY.findings(made_up(tmp_path, **AS_PUBLISHED)).sections[0].exhibits[0]
    printed = [[column.show(row[column.key]) for column in table.columns[1:3]] for row in table.rows]
    assert printed == [
        ["0.67 %", "0.81 %"],
        ["0.59 %", "0.69 %"],
        ["0.74 %", "0.93 %"],
        ["0.91 %", "1.05 %"],
    ]
    assert [row["ours"].mean for row in table.rows] == pytest.approx(
        [0.0067, 0.0059, 0.0074, 0.0091], abs=1e-4
    )
