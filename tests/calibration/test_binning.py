from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from softtargets.calibration import expected_calibration_error, reliability


def two_classes(confidences):
    """Probabilities whose top label is class 0 with these confidences (each at least a half)."""
    return torch.tensor([[c, 1 - c] for c in confidences], dtype=torch.float64)


def probabilities(count=200, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    return torch.softmax(logits, -1), torch.randint(classes, (count,), generator=generator)


def by_loops(p, y, bins):
    """Counts, confidences and accuracies per bin, and the ECE, from the definition."""
    members = [[] for _ in range(bins)]
    for row, label in zip(p, y, strict=True):
        top = max(row)
        predicted = row.index(top)
        for b in range(bins):
            if b / bins <= top < (b + 1) / bins or (b == bins - 1 and top == 1):
                members[b].append((top, predicted == label))
    counts = [len(group) for group in members]
    confidence = [sum(c for c, _ in group) / len(group) if group else math.nan for group in members]
    accuracy = [sum(right for _, right in group) / len(group) if group else math.nan for group in members]
    error = sum(
        n / sum(counts) * abs(c - a) for n, c, a in zip(counts, confidence, accuracy, strict=True) if n
    )
    return counts, confidence, accuracy, error


def test_an_error_computed_by_hand():
    p = two_classes([0.55, 0.65, 0.95, 0.85, 0.9])
    y = torch.tensor([0, 1, 0, 0, 1])
    # bins of a fifth: [0.4, 0.6) holds 0.55 (right), [0.6, 0.8) holds 0.65 (wrong), [0.8, 1] the rest (2 of 3)
    expected = 1 / 5 * (1 - 0.55) + 1 / 5 * 0.65 + 3 / 5 * (2.7 / 3 - 2 / 3)
    assert expected_calibration_error(p, y, bins=5) == pytest.approx(expected, rel=1e-12)


def test_the_bins_computed_by_hand():
    found = reliability(two_classes([0.55, 0.65, 0.95, 0.85, 0.9]), torch.tensor([0, 1, 0, 0, 1]), bins=5)
    assert found.edges.tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1])
    assert found.counts.tolist() == [0, 0, 1, 1, 3]
    assert found.confidence.tolist() == pytest.approx([math.nan, math.nan, 0.55, 0.65, 0.9], nan_ok=True)
    assert found.accuracy.tolist() == pytest.approx([math.nan, math.nan, 1, 0, 2 / 3], nan_ok=True)


@pytest.mark.parametrize("bins", [1, 2, 7, 10, 15, 100])
@pytest.mark.parametrize("classes", [2, 5])
def test_bins_and_error_against_loops(bins, classes):
    p, y = probabilities(classes=classes)
    counts, confidence, accuracy, error = by_loops(p.tolist(), y.tolist(), bins)
    found = reliability(p, y, bins)
    assert found.counts.tolist() == counts
    assert found.confidence.tolist() == pytest.approx(confidence, nan_ok=True, rel=1e-12)
    assert found.accuracy.tolist() == pytest.approx(accuracy, nan_ok=True, rel=1e-12)
    assert found.expected_calibration_error == pytest.approx(error, rel=1e-12)
    assert expected_calibration_error(p, y, bins) == pytest.approx(error, rel=1e-12)


def test_there_are_fifteen_bins_unless_told():
    p, y = probabilities()
    assert len(reliability(p, y).counts) == 15
    assert expected_calibration_error(p, y) == pytest.approx(
        by_loops(p.tolist(), y.tolist(), 15)[3], rel=1e-12
    )


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 49])
def test_certainty_falls_into_the_last_bin(bins):
    found = reliability(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]), bins)
    assert found.counts.tolist() == [0] * (bins - 1) + [2]
    assert found.confidence[-1].item() == 1
    assert found.accuracy[-1].item() == 0.5


@pytest.mark.parametrize("bins", [2, 4, 5, 8, 10, 15, 20])
def test_a_confidence_on_an_edge_belongs_to_the_bin_above(bins):
    for b in range(math.ceil(bins / 2), bins):
        found = reliability(two_classes([b / bins]), torch.tensor([0]), bins)
        assert found.counts.tolist().index(1) == b


def test_softmax_in_single_precision_may_exceed_one_by_a_rounding():
    found = reliability(torch.tensor([[1.0000001, 0.0]]), torch.tensor([0]), bins=10)
    assert found.counts.tolist() == [0] * 9 + [1]


def test_right_and_sure_is_perfectly_calibrated_wrong_and_sure_as_bad_as_can_be():
    sure = torch.eye(3)
    assert expected_calibration_error(sure, torch.tensor([0, 1, 2])) == 0
    assert expected_calibration_error(sure, torch.tensor([1, 2, 0])) == 1


def test_gaps_of_opposite_sign_do_not_cancel():
    p = two_classes([0.6] * 5 + [0.9] * 5)
    y = torch.tensor([0] * 5 + [0, 0, 0, 1, 1])
    assert p[:, 0].mean().item() == pytest.approx(0.75)
    assert expected_calibration_error(p, y, bins=10) == pytest.approx(0.5 * 0.4 + 0.5 * 0.3)
    assert expected_calibration_error(p, y, bins=1) == pytest.approx(abs(0.75 - 0.8))


def test_numpy_arrays_and_tensors_of_any_float_agree():
    p, y = probabilities()
    expected = expected_calibration_error(p, y)
    assert expected_calibration_error(p.numpy(), y.numpy()) == expected
    assert expected_calibration_error(p.numpy(), y.numpy().astype(np.uint8)) == expected
    assert expected_calibration_error(p.float(), y.int()) == pytest.approx(expected, abs=1e-2)


def test_the_order_of_examples_and_of_classes_does_not_matter():
    p, y = probabilities(classes=4)
    expected = expected_calibration_error(p, y)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(3))
    assert expected_calibration_error(p[order], y[order]) == pytest.approx(expected, rel=1e-12)
    names = torch.tensor([2, 0, 3, 1])
    renamed = torch.empty_like(p)
    renamed[:, names] = p
    assert expected_calibration_error(renamed, names[y]) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=50, deadline=None)
@given(
    confidences=st.lists(st.floats(0.5, 1), min_size=1, max_size=20),
    bins=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_every_example_is_counted_once_and_the_error_is_a_fraction(confidences, bins, seed):
    y = torch.randint(2, (len(confidences),), generator=torch.Generator().manual_seed(seed))
    found = reliability(two_classes(confidences), y, bins)
    assert found.counts.sum().item() == len(confidences)
    full = found.counts > 0
    assert not found.confidence[full].isnan().any()
    assert not found.accuracy[full].isnan().any()
    assert found.confidence[~full].isnan().all()
    assert found.accuracy[~full].isnan().all()
    assert 0 <= found.expected_calibration_error <= 1 + 1e-6


def test_the_inputs_are_left_alone():
    p, y = probabilities()
    before = p.clone()
    reliability(p, y)
    assert torch.equal(p, before)


GOOD = torch.tensor([[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("p", "y", "bins", "message"),
    [
        (GOOD[0], torch.tensor([0, 1]), 15, r"probabilities must be \(examples, classes\)"),
        (GOOD, torch.tensor([0]), 15, "one label for each of the 2 examples"),
        (torch.zeros(0, 2), torch.zeros(0), 15, r"at least one of each, not \(0, 2\)"),
        (torch.zeros(1, 0), torch.tensor([0]), 15, r"at least one of each, not \(1, 0\)"),
        (GOOD, torch.tensor([0, 1]), 0, "bins must be at least 1, not 0"),
        (GOOD, torch.tensor([0, 1]), -3, "bins must be at least 1, not -3"),
        (GOOD * math.nan, torch.tensor([0, 1]), 15, "not all finite: nan"),
        (GOOD * math.inf, torch.tensor([0, 1]), 15, "not all finite: inf"),
        (GOOD * 3, torch.tensor([0, 1]), 15, r"pass softmax\(logits\), not logits"),
        (GOOD - 0.5, torch.tensor([0, 1]), 15, r"pass softmax\(logits\), not logits"),
        (GOOD / 2, torch.tensor([0, 1]), 15, "add up to 0.5"),
        (GOOD, torch.tensor([0, 2]), 15, "labels must lie between 0 and 1"),
    ],
)
def test_bad_input_is_refused(p, y, bins, message):
    for call in (reliability, expected_calibration_error):
        with pytest.raises(ValueError, match=message):
            call(p, y, bins)


def test_bins_are_half_open_to_the_last_bit():
    for confidence, bins, expected in [(np.nextafter(0.9, 0), 10, 8), (0.9, 10, 9), (15 / 22, 22, 15)]:
        probabilities = np.array([[confidence, 1 - confidence]])
        assert int(reliability(probabilities, np.array([0]), bins).counts.argmax()) == expected


def test_wilson_intervals_against_scipy():
    p, y = probabilities()
    found = reliability(p, y, bins=10)
    for entry, low, high in zip(found.table(0.9), *found.accuracy_interval(0.9), strict=True):
        if entry.count:
            right = round(entry.accuracy * entry.count)
            expected = binomtest(right, entry.count).proportion_ci(0.9, method="wilson")
            assert (low.item(), high.item()) == pytest.approx((expected.low, expected.high), abs=1e-12)
            assert (entry.accuracy_low, entry.accuracy_high) == (low.item(), high.item())
        else:
            assert math.isnan(low)
            assert math.isnan(entry.accuracy_low)


def test_the_table_holds_the_bins():
    found = reliability(*probabilities(), bins=4)
    table = found.table()
    assert [(e.low, e.high) for e in table] == [(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1)]
    assert [e.count for e in table] == found.counts.tolist()
    assert sum(e.share for e in table) == pytest.approx(1)
    assert found.mean_confidence == pytest.approx(sum(e.share * e.confidence for e in table if e.count))
