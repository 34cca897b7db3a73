from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import binomtest

from inspection.made import net, saved
from softtargets.calibration import ConfidenceSums, calibration_of, measure_calibration
from softtargets.calibration.chunks import fold_of
from softtargets.calibration.sums import CalibrationSums
from softtargets.calibration.sweep import temperature_sweep
from softtargets.calibration.temperature import temperature_scaling
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.calibrate.finding import inspect
from softtargets.inspection.shared.measured import overconfidence
from softtargets.inspection.shared.two_passes import FOLDS


@pytest.fixture(scope="module")
def over(tmp_path_factory):
    logits, labels = net(3000, sharpness=1.6)
    path = tmp_path_factory.mktemp("over") / "over.npz"
    return logits, labels, inspect(saved(path, logits, labels))


def test_metrics_before_are_those_of_the_arrays(over):
    logits, labels, found = over
    expected = measure_calibration(logits, labels, from_logits=True)
    assert found.before.scalars() == pytest.approx(expected.scalars())
    assert found.before.intervals["accuracy"] == pytest.approx(expected.intervals["accuracy"])


def test_the_temperature_and_its_interval_are_those_of_a_full_fit(over):
    logits, labels, found = over
    exact = temperature_scaling(logits, labels)
    assert found.scaled.fit.temperature == pytest.approx(exact.temperature, rel=1e-5)
    low, high = exact.interval()
    assert found.scaled.temperature.low == pytest.approx(low, rel=1e-4)
    assert found.scaled.temperature.high == pytest.approx(high, rel=1e-4)
    assert found.scaled.fit.nll_after == pytest.approx(exact.nll_after, rel=1e-6)
    assert found.scaled.fit.nll_before == pytest.approx(exact.nll_before, rel=1e-6)


def test_no_example_is_scaled_by_a_fit_that_saw_it(over):
    logits, labels, found = over
    fold = fold_of(0, len(labels), FOLDS)
    scaled = logits.double().clone()
    for f in range(FOLDS):
        others = temperature_scaling(logits[fold != f], labels[fold != f]).temperature
        scaled[fold == f] /= others
    expected = measure_calibration(scaled, labels, from_logits=True, level=None)
    after = found.scaled.after
    assert after.negative_log_likelihood == pytest.approx(expected.negative_log_likelihood, rel=1e-6)
    assert after.brier_score == pytest.approx(expected.brier_score, rel=1e-5)
    assert after.smooth_calibration_error == pytest.approx(expected.smooth_calibration_error, abs=1e-4)


def test_the_gain_is_a_paired_mean(over):
    logits, labels, found = over
    nll = torch.nn.functional.cross_entropy
    fold = fold_of(0, len(labels), FOLDS)
    temperatures = torch.tensor(found.scaled.temperatures)[fold, None]
    gain = nll(logits, labels, reduction="none") - nll(logits / temperatures, labels, reduction="none")
    half = 1.96 * float(gain.double().std()) / math.sqrt(len(gain))
    assert found.scaled.gain.value == pytest.approx(float(gain.mean()), abs=1e-5)
    assert found.scaled.gain.high - found.scaled.gain.value == pytest.approx(half, rel=1e-3)


def test_overconfidence_is_confidence_less_accuracy(over):
    logits, labels, found = over
    p = logits.double().softmax(1)
    d = p.amax(1) - (p.argmax(1) == labels).double()
    half = 1.96 * float(d.std()) / math.sqrt(len(d))
    assert found.overconfidence.value == pytest.approx(float(d.mean()), abs=1e-6)
    assert found.overconfidence.high - found.overconfidence.low == pytest.approx(2 * half, rel=1e-3)


def test_the_fitted_temperature_is_in_its_place_on_the_curves(over):
    logits, labels, found = over
    assert list(found.curves) == sorted(found.curves)
    sweep = temperature_sweep(logits, labels, [*found.curves])
    assert found.best in found.sweep.temperatures
    assert found.sweep.nll == pytest.approx(sweep.nll, rel=1e-5)
    assert found.sweep.ece == pytest.approx(sweep.ece, abs=1e-5)


def test_a_known_overconfidence_is_found(over):
    _, _, found = over
    assert found.scaled.temperature.low <= 1.6 <= found.scaled.temperature.high
    assert found.overconfidence.above_zero
    assert found.scaled.gain.above_zero


def test_the_worst_classes_are_computed_by_hand(over):
    logits, labels, found = over
    p = logits.double().softmax(1)
    errors = []
    for k in range(10):
        place = (p[:, k] * 15).long().clamp(max=14)
        gaps = [abs(float((p[:, k] - (labels == k).double())[place == b].sum())) for b in range(15)]
        errors.append(sum(gaps) / len(labels))
    worst = max(range(10), key=errors.__getitem__)
    assert found.worst[0].index == worst
    assert found.worst[0].error == pytest.approx(errors[worst], rel=1e-4)
    assert found.worst[0].examples == int((labels == worst).sum())
    excess = float(p[:, worst].mean()) - float((labels == worst).double().mean())
    assert found.worst[0].excess.value == pytest.approx(excess, abs=1e-6)
    assert [one.error for one in found.worst] == sorted((one.error for one in found.worst), reverse=True)


def test_the_interval_of_an_excess_is_that_of_binomial_counts_in_bins(over):
    logits, labels, found = over
    p = logits.double().softmax(1)
    worst = found.worst[0]
    place = (p[:, worst.index] * 15).long().clamp(max=14)
    variance = 0.0
    for b in range(15):
        count = int((place == b).sum())
        rate = (int((labels[place == b] == worst.index).sum()) + 0.5) / (count + 1)
        variance += count * rate * (1 - rate)
    half = 1.959964 * math.sqrt(variance) / len(labels)
    assert worst.excess.high - worst.excess.value == pytest.approx(half, rel=1e-6)
    assert worst.excess.value - worst.excess.low == pytest.approx(half, rel=1e-6)


def test_probabilities_are_measured_as_they_are(tmp_path):
    logits, labels = net(400, 4, sharpness=1.5)
    p = logits.softmax(1)
    found = inspect(saved(tmp_path / "p.npz", p, labels, "probs"))
    expected = measure_calibration(p, labels, from_logits=False)
    assert found.understood.kind == "probabilities"
    assert found.before.expected_calibration_error == expected.expected_calibration_error
    assert found.curves[1.0][1].expected_calibration_error == expected.expected_calibration_error
    assert found.scaled.fit.temperature == pytest.approx(
        temperature_scaling(logits, labels).temperature, rel=1e-4
    )


def test_a_label_with_probability_zero_is_counted(tmp_path):
    p = torch.tensor([[0.5, 0.5, 0.0], [0.2, 0.8, 0.0]] * 20)
    labels = torch.tensor([0, 1] * 20)
    labels[3] = 2
    found = inspect(saved(tmp_path / "p.npz", p, labels, "probs"))
    assert (found.zeros.zeros, found.zeros.labelled) == (40, 1)
    assert found.zeros.floor == pytest.approx(1.5 / 41)
    assert math.isinf(found.before.negative_log_likelihood)
    floored = torch.where(p > 0, p.double(), 1.5 / 41)
    nll = -(floored / floored.sum(1, keepdim=True)).log()[torch.arange(40), labels]
    assert found.nll_with_floor.value == pytest.approx(float(nll.mean()), rel=1e-5)
    assert found.numbers()["zeros"]["nll_with_floor"]["value"] == found.nll_with_floor.value


def test_perfect_predictions_have_no_temperature(tmp_path):
    labels = torch.arange(60) % 3
    found = inspect(saved(tmp_path / "a.npz", 9.0 * torch.eye(3)[labels], labels))
    assert found.scaled.fit.ending == "lowest"
    assert not found.scaled.is_known


def test_temperatures_outside_the_grid_are_those_of_the_other_folds(tmp_path):
    logits, labels = net(300, 3, sharpness=0.05)
    found = inspect(saved(tmp_path / "a.npz", logits, labels))
    fold = fold_of(0, len(labels), FOLDS)
    expected = [temperature_scaling(logits[fold != f], labels[fold != f]).temperature for f in range(FOLDS)]
    assert max(expected) < 1 / 4
    assert found.scaled.temperatures == pytest.approx(expected, rel=1e-4)


def test_equal_logits_are_no_problem(tmp_path):
    found = inspect(saved(tmp_path / "a.npz", torch.ones(60, 3), torch.arange(60) % 3))
    assert found.scaled.fit.ending == "flat"


def test_predictions_worse_than_chance_are_no_problem(tmp_path):
    labels = torch.arange(60) % 3
    found = inspect(saved(tmp_path / "a.npz", -5.0 * torch.eye(3)[labels], labels))
    assert found.scaled.fit.ending == "highest"


@pytest.mark.parametrize("examples", [1, 19])
def test_too_few_examples_are_measured_but_not_scaled(tmp_path, examples):
    found = inspect(saved(tmp_path / "a.npz", *net(examples, 3)))
    assert found.scaled is None
    assert found.numbers()["temperature"] is None


def test_a_file_is_read_twice(tmp_path, monkeypatch):
    predictions = saved(tmp_path / "a.npz", *net(400, 300))
    readings = []
    chunks = predictions.chunks
    monkeypatch.setattr(predictions, "chunks", lambda rows=None: readings.append(rows) or chunks(rows))
    inspect(predictions)
    assert len(readings) == 2


@pytest.mark.parametrize("bins", [0, 1001])
def test_impossible_bins_are_refused(tmp_path, bins):
    with pytest.raises(SofttargetsError, match=f"not {bins}"):
        inspect(saved(tmp_path / "a.npz", *net(30, 3)), bins)


def test_overconfidence_of_a_stream_is_that_of_its_examples():
    logits, labels = net(500, 5, sharpness=2.0)
    sums = CalibrationSums.of(logits, labels, from_logits=True)
    found = calibration_of(sums, level=None)
    assert overconfidence(sums).value == pytest.approx(found.mean_confidence - found.accuracy)


@pytest.mark.parametrize("right", [0, 1])
def test_overconfidence_is_not_certain_where_all_are_right_or_wrong(right):
    sums = ConfidenceSums.empty().add(torch.full((40,), 0.98), torch.full((40,), right))
    found = overconfidence(sums)
    accuracy = binomtest(40 * right, 40).proportion_ci(0.95, method="wilson")
    assert (found.low, found.value, found.high) == pytest.approx(
        (0.98 - accuracy.high, 0.98 - right, 0.98 - accuracy.low)
    )


def test_progress_ends_where_the_file_does(tmp_path):
    told = []
    inspect(saved(tmp_path / "a.npz", *net(100, 3)), told=lambda *words: told.append(words))
    assert ("measuring", 100, 100) in told
    assert ("scaling", 100, 100) in told
    stages = list(dict.fromkeys(what for what, _, _ in told))
    assert stages == [
        "measuring",
        "scaling",
        "computing intervals",
        "fitting corrections",
        "ordering by confidence",
    ]


def test_a_small_file_is_not_shared_among_threads(tmp_path):
    """Two threads took three times the time of one for 10,000 examples of 10 classes, waiting for each other."""
    before, seen = torch.get_num_threads(), set()
    torch.set_num_threads(2)
    try:
        inspect(saved(tmp_path / "a.npz", *net(200, 3)), told=lambda *_: seen.add(torch.get_num_threads()))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert seen == {1}
