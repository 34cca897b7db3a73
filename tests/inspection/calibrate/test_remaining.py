from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inspection.cases import rare_class, wrong_way_round
from inspection.made import net, saved
from softtargets.calibration import fold_of, histogram_binning, measure_calibration
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.calibrate.remaining import Remaining


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    logits, labels = wrong_way_round()
    return logits, labels, inspect(saved(tmp_path_factory.mktemp("bad") / "a.npz", logits, labels))


def test_what_scaling_leaves_is_the_error_of_held_out_examples(bad):
    _, _, found = bad
    assert found.recommended.name == "temperature"
    assert found.remaining.after is found.scaled.after
    assert found.remaining.is_bad
    assert found.remaining.ece.low > 0.2


def test_what_biases_leave_is_measured_after_them(tmp_path):
    logits, labels = rare_class()
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    best = found.recommended
    assert best.correction.bias is not None
    assert found.remaining.after.expected_calibration_error == pytest.approx(best.ece_after, abs=1e-6)
    assert not found.remaining.is_bad
    assert found.remaining.others == ()


def test_without_a_correction_it_is_the_error_of_the_model(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", *net(400, 3)))
    assert found.recommended is None
    assert found.remaining.after is found.before
    assert found.numbers()["remaining_error"]["still_bad"] is False


@pytest.mark.parametrize(("low", "expected"), [(0.0499, False), (0.05, True)])
def test_the_interval_decides_and_not_the_value(bad, low, expected):
    after = bad[2].remaining.after
    intervals = {**after.intervals, "expected_calibration_error": (low, 0.5)}
    assert Remaining(replace(after, intervals=intervals)).is_bad == expected


def test_few_examples_are_never_called_bad_by_scatter(tmp_path):
    """Calibrated models of 20 to 60 examples: the plain ECE is 10 to 20 %, and the interval begins near 0."""
    for seed in range(10):
        found = inspect(saved(tmp_path / "a.npz", *net(20 + 4 * seed, 3, seed=seed)))
        assert found.before.expected_calibration_error > 0.05
        assert not found.remaining.is_bad


def test_other_methods_are_measured_on_held_out_examples(bad):
    logits, labels, found = bad
    fold = fold_of(0, len(labels), 3)
    p = torch.empty_like(logits)
    for part in range(3):
        rows = fold == part
        p[rows] = histogram_binning(logits[~rows], labels[~rows])(logits[rows])
    expected = measure_calibration(p, labels, from_logits=False)
    other = found.remaining.others[0]
    assert other.name == "histogram_binning"
    assert other.brier_score == pytest.approx(expected.brier_score)
    assert (other.ece.low, other.ece.high) == pytest.approx(expected.intervals["expected_calibration_error"])
    change = (p.argmax(1) == labels).double().mean() - (logits.argmax(1) == labels).double().mean()
    assert other.accuracy.value == pytest.approx(float(change))


def test_the_method_that_leaves_least_is_named_if_it_helps(bad):
    found = bad[2]
    helping = [one for one in found.remaining.others if one.helps]
    assert found.remaining.better in helping
    assert all(found.remaining.better.ece.value <= one.ece.value for one in helping)
    assert all(one.ece.high < found.remaining.ece.low for one in helping)
    none = replace(found.remaining, others=tuple(replace(one, helps=False) for one in helping))
    assert none.better is None


def test_without_rows_other_methods_are_not_tried(tmp_path):
    logits, labels = wrong_way_round(400, classes=30)
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    assert found.corrections.why_not
    assert found.remaining.is_bad
    assert found.remaining.others == ()
