from __future__ import annotations

import csv
import json

import pytest
import torch

from inspection.made import net, saved
from softtargets.calibration import Correction, expected_calibration_error
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.page import calibrate_page, correcting_code
from softtargets.inspection.shared.measured import metric_rows
from softtargets.predictions import open_predictions
from softtargets.report import write_page


def written(found, directory):
    path = write_page(calibrate_page(found), directory)
    return path.read_text(encoding="utf-8"), json.loads(
        (directory / "results.json").read_text(encoding="utf-8")
    )


@pytest.fixture(scope="module")
def over(tmp_path_factory):
    """An overconfident net: logits, labels, what was found, and the directory, HTML and results of its page."""
    directory = tmp_path_factory.mktemp("over")
    logits, labels = net(1000, 6, sharpness=1.5)
    found = inspect(saved(directory / "a.npz", logits, labels))
    return logits, labels, found, directory, *written(found, directory / "out")


def test_the_page_has_the_numbers_of_the_arrays(over):
    logits, labels, _, directory, html, results = over
    ece = expected_calibration_error(logits.softmax(1), labels)
    assert f"{100 * ece:.2f} %" in html
    metrics = {row["metric"]: row for row in results["tables"]["metrics"]}
    assert metrics["ECE"]["before"] == pytest.approx(ece, abs=1e-6)
    assert metrics["ECE"]["before_low"] <= metrics["ECE"]["before_high"]
    assert results["kind"] == "calibrate"
    assert results["verdict"]["headline"] == "Strongly overconfident"
    with open(directory / "out" / "tables" / "reliability_bins.csv", encoding="utf-8") as file:
        bins = [row for row in csv.DictReader(file) if row["predictions"] == "as they are"]
    assert sum(int(row["count"]) for row in bins) == 1000


def test_the_widget_starts_where_nothing_is_scaled(over):
    logits, labels, found, _, _, results = over
    data = results["widgets"]["reliability"]
    assert data["temperatures"][data["start"]] == 1.0
    assert data["temperatures"][data["best"]] == pytest.approx(found.scaled.fit.temperature)
    assert data["curves"][0]["ece"][data["start"]] == pytest.approx(found.before.expected_calibration_error)
    scaled = (logits / found.scaled.fit.temperature).softmax(1)
    assert data["curves"][0]["ece"][data["best"]] == pytest.approx(
        expected_calibration_error(scaled, labels), abs=2e-3
    )
    assert results["widgets"]["sweep"]["best"] == [pytest.approx(found.scaled.fit.temperature)]


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
@pytest.mark.parametrize("method", ["temperature", "bias_corrected_temperature", "vector_scaling"])
@pytest.mark.parametrize("classes", [3, 30])
def test_the_lines_to_copy_give_the_corrected_probabilities(tmp_path, monkeypatch, kind, method, classes):
    monkeypatch.chdir(tmp_path)
    logits, _ = net(5, classes)
    scale = torch.tensor(1 / 1.5, dtype=torch.float64)
    correction = Correction(
        method=method,
        kind=kind,
        classes=classes,
        scale=scale
        if method != "vector_scaling"
        else scale + 0.1 * torch.arange(classes, dtype=torch.float64),
        bias=None if method == "temperature" else torch.linspace(-1, 1, classes, dtype=torch.float64),
    )
    correction.save("correction.json")
    names = {"torch": torch, "logits": logits, "probabilities": logits.softmax(-1)}
    expected = correction(names[kind])
    exec(correcting_code(correction), names)
    expected = expected.softmax(-1) if kind == "logits" else expected
    assert torch.allclose(names["probabilities"], expected, atol=2e-3)


def test_zeros_are_raised_by_the_lines_to_copy():
    half = torch.tensor(0.5, dtype=torch.float64)
    correction = Correction(method="temperature", kind="probabilities", classes=3, scale=half, floor=2e-4)
    names = {"torch": torch, "probabilities": torch.tensor([[0.5, 0.5, 0.0]])}
    expected = correction(names["probabilities"])
    exec(correcting_code(correction), names)
    assert torch.allclose(names["probabilities"], expected)
    assert float(names["probabilities"].min()) > 0


def test_hostile_class_names_are_text(tmp_path):
    rows = ["prob_</script><img src=x onerror=alert(1)>,prob_$x$,label"]
    rows += [f"{p:.2f},{1 - p:.2f},{i % 2}" for i, p in enumerate(torch.linspace(0.05, 0.95, 40).tolist())]
    (tmp_path / "a.csv").write_text("\n".join(rows) + "\n")
    html, _ = written(inspect(open_predictions(tmp_path / "a.csv")), tmp_path / "out")
    assert "<img src=x" not in html
    assert "onerror" in html


@pytest.mark.parametrize("examples", [1, 25])
def test_few_examples_make_a_page(tmp_path, examples):
    html, _ = written(inspect(saved(tmp_path / "a.npz", *net(examples, 3))), tmp_path / "out")
    assert "Calibration of a.npz" in html


def test_an_infinite_likelihood_is_explained(tmp_path):
    p = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]] * 20)
    labels = torch.tensor([0, 1] * 20)
    labels[3] = 2
    html, results = written(inspect(saved(tmp_path / "p.npz", p, labels, "probs")), tmp_path / "out")
    assert (
        "1 label had a probability of exactly 0, so the NLL is infinite. With 0 counted as"
        in results["warnings"][0]
    )
    rows = {row["metric"]: row for row in results["tables"]["metrics"]}
    assert rows["NLL"]["before_shown"] == "infinite"
    finite = rows["NLL, finite"]
    assert finite["before_low"] < finite["before"] < finite["before_high"] < 2
    assert "Probabilities of exactly 0 count as 0.037" in html


def test_a_page_says_what_was_read(tmp_path):
    _, results = written(inspect(saved(tmp_path / "a.npz", *net(30, 3))), tmp_path / "out")
    read = {row["what"]: row["value"] for row in results["tables"]["read"]}
    assert read["read as"].endswith(": logits")
    assert "'logits'" in read["used"]


def test_what_scatter_added_stands_beneath_the_error(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(400, 4)))
    rows = {row["metric"]: row for row in metric_rows({"before": found.before}, 15, 4)}
    plain, corrected = (
        found.before.expected_calibration_error,
        found.before.corrected["expected_calibration_error"],
    )
    assert corrected < plain
    assert rows["ECE"]["before_shown"].startswith(f"{100 * corrected:.2f} % (")
    assert rows["ECE, uncorrected"]["before_shown"] == f"{100 * plain:.2f} %"
    assert "accuracy, uncorrected" not in rows
