from __future__ import annotations

import csv

import numpy as np
import pytest

from benchmarks.noise import __main__ as command
from benchmarks.noise import coverage, ranking
from benchmarks.noise.cases import Case, all_cases, labels_of
from benchmarks.noise.coverage import Row
from benchmarks.noise.predictions import Predicted, predicted


def row(**changes):
    given = {
        "dataset": "digits",
        "noise": "clean",
        "model": "mlp",
        "examples": 1797,
        "agreement": 0.98,
        "truth": 0.0,
        "estimate": 0.01,
        "low": 0.0,
        "high": 0.04,
        "reason": "",
    }
    return Row(**(given | changes))


def test_cells_and_summary():
    rows = [
        row(),
        row(noise="uniform-20", truth=0.2, estimate=None, high=0.3, reason="weak"),
        row(dataset="cifar10", noise="worse", model="cnn", truth=0.4, estimate=0.5, low=0.45, high=0.6),
    ]
    assert [each.cell() for each in rows] == ["1.0 (0–4)", "≤ 30", "**50.0 (45–60)**"]
    assert [each.is_held_out for each in rows] == [False, False, True]
    lines = coverage.summary(rows).splitlines()
    assert lines[2] == "| all (3) | 2 | 1 (50 %) | 9 | 1 | 1 (100 %) |"
    assert lines[-1] == "The largest estimate for labels that are all right is 1.0 %."
    assert coverage.table(rows).splitlines()[2:] == [
        "| digits, clean | 0.0 |  | 1.0 (0–4) |  |  |  |  |",
        "| digits, uniform-20 | 20.0 |  | ≤ 30 |  |  |  |  |",
        "| cifar10, worse | 40.0 |  |  |  | **50.0 (45–60)** |  |  |",
    ]


@pytest.mark.parametrize("noise", ["clean", "uniform-10", "pair-40", "instance-20"])
def test_labels_are_as_wrong_as_their_name_says(noise):
    given, clean = labels_of(Case("digits", noise, "cnn"), 1797)
    rate = 0 if noise == "clean" else int(noise.split("-")[1]) / 100
    assert (given != clean).mean() == pytest.approx(rate, abs=0.03)


def test_every_case_has_a_file_of_its_own():
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names) == (3 * 10 + 15 + 2) * 6


@pytest.mark.parametrize("model", ["logistic", "neighbours"])
def test_predictions_are_made_once(model, tmp_path, monkeypatch):
    case = Case("digits", "clean", model)
    first = predicted(case, tmp_path, "cpu", 400)
    assert first.probabilities.shape == (400, 10)
    assert (first.probabilities.argmax(1) == first.clean).mean() > 0.8
    monkeypatch.setattr("benchmarks.noise.predictions.predictor", None)
    np.testing.assert_array_equal(predicted(case, tmp_path, "cpu").probabilities, first.probabilities)


def test_the_command_writes_page_and_rows(tmp_path, monkeypatch, capsys):
    page = tmp_path / "noise.md"
    page.write_text(
        "".join(f"{part}: <!-- {part} -->before<!-- end -->\n" for part in ("summary", "coverage", "ranking"))
    )
    monkeypatch.setattr(command, "PAGE", page)
    monkeypatch.setattr(command, "ROWS", tmp_path / "rows.csv")
    part = ["--datasets", "digits", "--models", "bayes", "--predictions", str(tmp_path / "kept"), "--write"]
    with pytest.raises(SystemExit):
        command.main(part)
    assert "wants all datasets and models" in capsys.readouterr().err
    monkeypatch.setattr(command, "DATASETS", ("digits",))
    monkeypatch.setattr(command, "MODELS", ("bayes",))
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    command.main(part)
    assert page.read_text().endswith("ranking: <!-- ranking -->before<!-- end -->\n"), "cleanlab is not there"
    assert "| digits, pair-20 | 20.2 |" in page.read_text()
    assert "digits.clean.bayes: 0.0 % wrong" in capsys.readouterr().out
    with (tmp_path / "rows.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert rows[0]["truth"] == "0.0"


def test_precision_is_of_as_many_as_are_wrong():
    clean = np.arange(900) % 3
    given = clean.copy()
    given[:30] = (clean[:30] + 1) % 3
    found = ranking.precisions(Predicted(given, clean, 0.1 + 0.7 * np.eye(3)[clean]))
    assert found["softtargets"] == found["cleanlab self_confidence"] == 1
    assert ranking.table([("x", {"a": 0.5}), ("y", {"b": 1.0})]).splitlines()[2:] == [
        "| x | 50.0 |  |",
        "| y |  | 100.0 |",
    ]
