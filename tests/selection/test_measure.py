from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from softtargets.selection import ConfidenceRows, measure_selection, risk_coverage, selection_of


def made(n=600, classes=5, seed=0):
    random = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, classes, generator=random, dtype=torch.float64)
    return logits, torch.multinomial(logits.softmax(1), 1, generator=random).squeeze(1)


def test_accuracy_at_a_coverage_is_that_of_the_most_confident():
    logits, labels = made()
    found = measure_selection(logits, labels, from_logits=True, coverages=[0.25, 0.5, 0.8, 1.0])
    confidence, predicted = logits.softmax(1).max(1)
    for one in found.at_coverage:
        chosen = confidence.argsort(descending=True)[: round(600 * one.coverage)]
        assert one.accuracy == pytest.approx(float((predicted == labels)[chosen].double().mean()))
        assert one.threshold == pytest.approx(float(confidence[chosen].min()))
        assert one.low < one.accuracy < one.high


def test_coverage_at_an_accuracy_is_the_best_of_all_thresholds():
    logits, labels = made()
    probabilities = logits.softmax(1).mul(50).round().div(50)  # ties
    probabilities = probabilities / probabilities.sum(1, keepdim=True)
    found = measure_selection(probabilities, labels, from_logits=False, accuracies=[0.7, 0.8, 0.95])
    confidence, predicted = probabilities.max(1)
    right = (predicted == labels).double()
    for one in found.at_accuracy:
        shares = [
            float((confidence >= t).double().mean())
            for t in confidence.unique()
            if right[confidence >= t].mean() >= one.accuracy
        ]
        assert one.coverage == pytest.approx(max(shares))
        assert float((confidence >= one.threshold - 1e-9).double().mean()) == pytest.approx(one.coverage)
        assert one.low <= one.coverage <= one.high


def test_an_accuracy_out_of_reach_accepts_nothing():
    found = selection_of(risk_coverage([0.9, 0.8], [0, 0]), accuracies=[0.9])
    assert (found.at_accuracy[0].coverage, found.at_accuracy[0].low, found.at_accuracy[0].threshold) == (
        0,
        0,
        None,
    )
    with pytest.raises(ValueError, match=r"target accuracy must be above 0 .* not 90"):
        selection_of(risk_coverage([0.9], [1]), accuracies=[90])


def test_logits_and_their_probabilities_have_the_same_numbers():
    logits, labels = made()
    a, b = (
        measure_selection(scores, labels, from_logits=said)
        for scores, said in ((logits, True), (logits.softmax(1), False))
    )
    assert json.dumps(a.numbers()) != ""
    assert a.aurc == pytest.approx(b.aurc)
    assert a.intervals["excess_aurc"] == pytest.approx(b.intervals["excess_aurc"])


def test_probabilities_of_exactly_one_and_zero_are_tied():
    probabilities = torch.eye(3)[torch.tensor([0, 1, 2, 0])]
    found = measure_selection(probabilities, torch.tensor([0, 1, 2, 1]), from_logits=False, coverages=[0.5])
    assert found.aurc == pytest.approx(0.25)
    assert found.at_coverage[0].accuracy == pytest.approx(0.75)
    assert found.at_coverage[0].threshold == 1


@pytest.mark.parametrize("label", [0, 1])
def test_one_example(label):
    found = measure_selection(torch.tensor([[2.0, 0.0]]), torch.tensor([label]), from_logits=True)
    assert found.aurc == label
    assert found.numbers()["at_coverage"][0]["accuracy"] == pytest.approx(1 - label)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_other_precisions_leading_shapes_and_ignored_rows(dtype):
    logits, labels = made(120)
    z, y = logits.numpy().astype(dtype).reshape(10, 12, 5), labels.numpy().reshape(10, 12).copy()
    y[0] = -100
    z[0] = np.nan
    found = measure_selection(z, y, from_logits=True, ignore_index=-100)
    expected = measure_selection(z.astype(np.float64)[1:], y[1:], from_logits=True)
    assert found.examples == 108
    assert found.aurc == pytest.approx(expected.aurc)


def test_nan_is_refused_by_its_place():
    logits, labels = made(10)
    logits[7, 2] = float("nan")
    with pytest.raises(ValueError, match="logits of example 7 are not all finite"):
        measure_selection(logits, labels, from_logits=True)


def test_of_equal_scores_the_first_is_predicted():
    found = measure_selection(torch.zeros(3, 4), torch.tensor([0, 1, 0]), from_logits=True)
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.aurc == pytest.approx(1 / 3)


def test_rows_come_out_the_same_however_they_are_cut():
    logits, labels = made()
    whole, cut = ConfidenceRows(from_logits=True), ConfidenceRows(from_logits=True)
    whole.add(logits, labels)
    for start in range(0, 600, 7):
        cut.add(logits[start : start + 7], labels[start : start + 7])
    assert whole.curve().errors.tolist() == cut.curve().errors.tolist()


def test_a_perfect_tie_has_one_threshold_and_a_curve_that_is_flat():
    found = selection_of(risk_coverage(np.zeros(50), np.arange(50) % 2), accuracies=[0.4, 0.6])
    assert [one.accuracy for one in found.at_coverage] == pytest.approx([0.5] * len(found.at_coverage))
    assert [one.coverage for one in found.at_accuracy] == [1, 0]
