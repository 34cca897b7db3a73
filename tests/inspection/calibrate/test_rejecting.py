from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
import torch

from inspection.cases import wrong_way_round
from inspection.made import net, saved
from softtargets.inspection.calibrate import rejecting
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.page import calibrate_page
from softtargets.inspection.calibrate.words import verdict_on
from softtargets.inspection.shared import two_passes
from softtargets.report import write_page
from softtargets.selection import LogitNormalisation, fit_normalisation, measure_selection, normalised_logits


def lengths(n=1500):
    """Logits whose lengths mean nothing: normalised ones order them better."""
    random = torch.Generator().manual_seed(0)
    labels = torch.randint(10, (n,), generator=random)
    logits = (
        torch.randn(n, 10, generator=random) + 8 * torch.rand(n, 1, generator=random) * torch.eye(10)[labels]
    )
    return logits * torch.exp(torch.randn(n, 1, generator=random)), labels


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return inspect(saved(tmp_path_factory.mktemp("v") / "a.npz", *net(2000)))


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Logits, labels, what was found, and the directory of the page."""
    directory = tmp_path_factory.mktemp("broken")
    logits, labels = lengths()
    found = inspect(saved(directory / "a.npz", logits, labels))
    write_page(calibrate_page(found), directory / "out")
    return logits, labels, found, directory / "out"


def text(section):
    return " ".join(section.paragraphs)


def test_the_numbers_are_those_of_the_arrays(broken):
    logits, labels, found, _ = broken
    expected = measure_selection(logits, labels, from_logits=True)
    assert found.selection.numbers() == expected.numbers()
    assert found.normalisation.numbers() == fit_normalisation(logits, labels).numbers()
    assert found.numbers()["selection"]["normalised_logits"]["is_better"] is True
    json.dumps(found.numbers()["selection"])


def test_the_sentence_has_the_accuracy_of_the_most_confident_four_fifths(broken):
    logits, labels, found, _ = broken
    confidence, predicted = logits.double().softmax(1).max(1)
    kept = confidence.argsort(descending=True)[:1200]
    accuracy = float((predicted == labels)[kept].double().mean())
    sentence = rejecting.handing_over(found)[0]
    assert sentence.startswith(
        "If the 20 % least confident cases are handed to a person, accuracy on the rest is "
        f"{100 * accuracy:.1f} % ("
    )
    assert sentence in verdict_on(found).sentences


def test_normalised_logits_are_recommended_only_where_they_gain_for_certain(found, broken):
    *_, better, _ = broken
    assert f"by normalised logits (p = {better.normalisation.p})" in rejecting.handing_over(better)[1]
    assert "points (" in rejecting.handing_over(better)[1]
    assert len(rejecting.handing_over(found)) == 1
    hardly = replace(better.normalisation, difference=(-0.01, -0.02, 0.001))
    section = rejecting.section(replace(better, normalisation=hardly))
    assert "no gain beyond chance. They change the AURC by −1.000 points (−2.000 to +0.100)" in text(section)
    assert len(rejecting.handing_over(replace(better, normalisation=hardly))) == 1


def test_the_lines_to_copy_give_normalised_logits(broken):
    logits, _, found, _ = broken
    code = rejecting.normalising_code(found).text
    names = {"torch": torch, "logits": logits, "threshold": 0.5}
    exec(code, names)
    assert names["confidence"].numpy() == pytest.approx(
        normalised_logits(logits, found.normalisation.p).numpy(), rel=1e-4
    )


def test_the_page_has_the_curve_and_its_tables(broken):
    _, _, found, directory = broken
    results = json.loads((directory / "results.json").read_text(encoding="utf-8"))
    widget = results["widgets"]["risk_coverage"]
    assert [one["name"] for one in widget["curves"]] == [
        "maximum probability",
        "normalised logits (held out)",
    ]
    assert widget["curves"][0]["risk"][-1] == pytest.approx(1 - found.before.accuracy)
    assert widget["best"][-1] == pytest.approx(1 - found.before.accuracy)
    assert widget["coverages"][0] >= 20 / 1500
    rows = results["tables"]["at_coverage"]
    assert [row["handed_over"] for row in rows] == pytest.approx([0.5, 0.3, 0.2, 0.1, 0.05, 0])
    assert all(row["accuracy_low"] < row["accuracy"] < row["accuracy_high"] for row in rows)
    assert {row["area"] for row in results["tables"]["selection_areas"]} == {"AURC", "excess AURC", "AUGRC"}
    with open(directory / "tables" / "risk_coverage.csv", encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 2 * len(widget["coverages"])


def test_why_normalised_logits_were_not_tried_is_said(found):
    none = LogitNormalisation(why_not="with two classes all normalised logits are equal")
    section = rejecting.section(replace(found, normalisation=none))
    assert "were not tried: with two classes" in text(section)


@pytest.mark.parametrize("n", [1, 2, 19, 21])
def test_a_handful_of_examples_has_a_page_and_no_promise(tmp_path, n):
    logits, labels = net(n, 3)
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    write_page(calibrate_page(found), tmp_path / "out")
    assert len(rejecting.handing_over(found)) == (n >= 20)


def test_all_right_is_said_without_trying_anything(tmp_path):
    labels = torch.arange(150) % 3
    found = inspect(saved(tmp_path / "a.npz", 9.0 * torch.eye(3)[labels], labels))
    assert "all predictions are right" in text(rejecting.section(found))
    assert found.selection.aurc == 0
    write_page(calibrate_page(found), tmp_path / "out")


def test_of_very_many_examples_a_sample_is_put_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(two_passes, "MOST_ORDERED", 500)
    monkeypatch.setattr(two_passes, "NORMALISED_NUMBERS", 3000)  # of 10 classes
    logits, labels = net(1800)
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    assert 300 < found.selection.examples < 600
    normalised = found.normalisation.curve.examples
    assert 200 < normalised < 400
    said = (
        f"Measured on {found.selection.examples} examples of 1,800; normalised logits on {normalised}, chosen"
    )
    assert said in text(rejecting.section(found))
    assert found.selection.aurc == pytest.approx(
        measure_selection(logits, labels, from_logits=True).aurc, rel=0.2
    )


def selection(scores, labels):
    return measure_selection(torch.tensor(scores), torch.tensor(labels), from_logits=False)


@pytest.mark.parametrize(
    ("scores", "labels", "expected"),
    [
        ([[0.9, 0.1], [0.2, 0.8]], [0, 1], "All 2 predictions are right: nothing is left to gain by"),
        ([[0.9, 0.1], [0.2, 0.8]], [1, 0], "All 2 predictions are wrong: nothing is gained by"),
        ([[0.9, 0.1]], [0], "The only prediction is right: nothing is left to gain by"),
        (
            [[0.6, 0.4], [0.6, 0.4]],
            [0, 1],
            "All predictions are equally confident, so confidence does not tell",
        ),
    ],
)
def test_where_rejecting_cannot_help_no_accuracy_stands_against_itself(scores, labels, expected):
    told = rejecting.handed_over(selection(scores, labels))
    assert told.startswith(expected)
    assert "instead of" not in told


def test_where_confidences_differ_the_accuracies_stand_side_by_side():
    told = rejecting.handed_over(selection([[0.9, 0.1]] * 4 + [[0.6, 0.4]], [0, 0, 0, 0, 1]))
    assert "accuracy on the rest is 100.0 %" in told
    assert told.endswith("instead of 80.0 %.")


def test_confidence_that_orders_cases_the_wrong_way_round_is_called_that(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *wrong_way_round()))
    told = rejecting.handing_over(found)[0]
    assert told.startswith(
        "Do not choose cases by confidence: without the 20 % least confident ones, accuracy on the "
    )
    rest = next(one.accuracy for one in found.selection.at_coverage if one.coverage == 0.8)
    assert f"falls to {100 * rest:.1f} %" in told
    assert rest < found.selection.accuracy
