"""Table 3 of LABO: the grid, claims on numbers that were never measured, and the whole study on a few digits."""

from __future__ import annotations

import csv
import json
import shutil

import pytest

from softtargets.claims import judge, published
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Results, find_study, run_study
from softtargets.training import train

from .labo import made_up, make_small

STUDY = find_study(STUDIES, "labo-table-3")
METHODS = ["hard", "kd", "ls", "cs-kd", "tf-reg", "beta-ls", "kr-ls", "labo", "ols", "cp", "maxsup"]


def test_the_grid_is_every_method_in_four_columns_and_two_teachers():
    trials = STUDY.trials(STUDY.settings(changes={"size": "full"}))
    cells = [(t.labels["data"], t.labels["model"], t.labels["method"], t.recipe.seed) for t in trials]
    expected = [
        (data, model, method, seed)
        for data in ("cifar100", "cifar10")
        for model in ("resnet18", "mobilenetv2")
        for method in METHODS
        for seed in range(5)
    ]
    assert sorted(cells) == sorted(
        [*expected, ("cifar100", "teacher", "hard", 0), ("cifar10", "teacher", "hard", 0)]
    )
    assert len({trial.recipe.id for trial in trials}) == len(trials) == 222
    for trial in trials:
        assert trial.recipe.data.name == trial.labels["data"]
    taught = next(trial.recipe for trial in trials if trial.labels["model"] == "teacher")
    students = [t for t in trials if t.labels["method"] == "kd" and t.labels["data"] == "cifar100"]
    assert {trial.recipe.regulariser.teacher.id for trial in students} == {taught.id}


def numbers(accuracies, time=1.0, only=None):
    """Accuracies in % by method, for every column; a little more with each seed."""

    def of(labels, seed):
        if labels["model"] == "teacher" or (only and (labels["data"], labels["model"]) != only):
            return None
        key = f"lu-2023/accuracy/{labels['data']}-{labels['model']}"
        hard = 100 * published(f"{key}/hard").value
        gain = accuracies.get(labels["method"], 0.3)
        return {
            "accuracy": (hard + gain + 0.01 * seed) / 100,
            "relative_time": time + 0.001 * seed,
            "ece": 0.1,
            "nll": 1.0,
        }

    return of


@pytest.mark.parametrize(
    ("accuracies", "time", "verdicts"),
    [
        ({"hard": 0.0, "labo": 1.2}, 1.0, ["reproduced", "reproduced", "reproduced", "reproduced"]),
        (
            {"hard": 0.0, "labo": 1.2, "kr-ls": 2.0},
            1.3,
            ["reproduced", "reproduced", "contradicted", "contradicted"],
        ),
        ({"hard": 3.0, "labo": 1.0}, 1.0, ["contradicted", "contradicted", "reproduced", "reproduced"]),
        ({"hard": 0.0, "labo": 0.0}, 1.0, ["reproduced", "no effect", "contradicted", "reproduced"]),
        # Methods that the paper leaves out, and the one with a teacher, may be better.
        (
            {"hard": 0.0, "labo": 1.2, "ols": 9.0, "cp": 9.0, "maxsup": 9.0, "kd": 9.0},
            1.0,
            ["reproduced"] * 4,
        ),
    ],
)
def test_claims_stand_and_fall_with_their_own_numbers(accuracies, time, verdicts):
    found = made_up(STUDY, numbers(accuracies, time))
    judged = judge(STUDY.claims(found))
    for column in range(4):
        assert [one.verdict for one in judged[4 * column : 4 * column + 4]] == verdicts
    assert STUDY.findings(found).answer.startswith(
        "LABO is shown to be the most accurate method without a teacher in"
    )


def test_printed_numbers_are_the_papers():
    claims = STUDY.claims(Results(()))
    assert [claim.printed for claim in claims[:4]] == [76.92, 1.18, None, 1.0]
    assert [claim.printed for claim in claims[12:]] == [90.55, 0.98, None, 1.0]
    assert claims[0].margin == pytest.approx(0.84)
    judged = judge(STUDY.claims(made_up(STUDY, numbers({"hard": 0.0, "labo": 3.07}))))
    assert [judged[place].value for place in (1, 5)] == ["contradicted", "reproduced"]


def test_one_column_with_one_seed_is_a_page():
    only = ("cifar100", "resnet18")
    found = made_up(STUDY, numbers({"labo": 1.2}, only=only), seeds=1)
    assert {one.verdict for one in judge(STUDY.claims(found))} == {"not run yet"}
    section = STUDY.findings(found).sections[0]
    first, second, *_ = section.exhibits
    shown = {row["method"]: [column.show(row[column.key]) for column in first.columns] for row in first.rows}
    assert shown["LABO"][1:4] == ["78.10 %", "78.12 %", "0.90"]
    assert [column.show(second.rows[0][column.key]) for column in second.columns[1:3]] == ["67.98 %", "–"]


def test_the_whole_study_on_a_few_digits(tmp_path, monkeypatch):
    make_small(monkeypatch)
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1)
    page = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    rows = list(csv.DictReader((page.parent / "tables" / "fashion-mnist_mlp.csv").open()))
    assert len(rows) == 11
    for row, method in zip(rows, METHODS, strict=True):
        trial = next(t for t in STUDY.trials(settings) if t.labels["method"] == method)
        test = store.find(trial.recipe).predictions("test")
        right = float((test.logits.argmax(-1) == test.labels).double().mean())
        assert float(row["accuracy_mean"]) == pytest.approx(right)
        assert float(row["relative_time_mean"]) > 0
    # Half of the runs are a page too.
    for trial in STUDY.trials(settings)[::2]:
        shutil.rmtree(store.root / trial.recipe.id)
    page = run_study(STUDY, settings, store, tmp_path / "half", command="c", train=None, device="cpu")
    rows = list(csv.DictReader((page.parent / "tables" / "fashion-mnist_mlp.csv").open()))
    assert [row["accuracy_n"] for row in rows] == ["0", "1"] * 5 + ["0"]


def test_the_page_says_which_networks_are_meant_and_who_teaches():
    found = made_up(STUDY, numbers({"hard": 0.0, "labo": 1.2}))
    *_, differs = STUDY.findings(found).sections
    told = " ".join(text for text in differs.paragraphs)
    trials = STUDY.trials(STUDY.settings(changes={"size": "full"}))
    (teacher, other) = (trial.recipe for trial in trials if trial.labels["model"] == "teacher")
    assert f"ResNeXt-29 ({teacher.model.cardinality} x {teacher.model.base_width}d)" in told
    assert teacher.model == other.model
    assert {trial.recipe.regulariser.teacher.id for trial in trials if trial.labels["method"] == "kd"} == {
        teacher.id,
        other.id,
    }
    assert "One teacher, after its last epoch" in told
    assert teacher.best_by is None
    assert {claim.seeds for claim in STUDY.claims(found)} == {3, 5}
    assert "Five seeds decide about accuracies" in told
