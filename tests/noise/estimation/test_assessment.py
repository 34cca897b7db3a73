from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from softtargets.noise import assess_noise, estimate_noise, out_of_fold, pair, pair_transitions, symmetric
from softtargets.noise.estimation.anchors import find_anchors
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.sample import as_sample
from tests.noise.estimation.making import simulated

DIGITS = load_digits()
MODELS = {
    "logistic": lambda: LogisticRegression(max_iter=100, tol=1e-2),
    "forest": lambda: RandomForestClassifier(50, random_state=0),
    "bayes": lambda: GaussianNB(var_smoothing=1e-3),
}


def predicted(labels, model="logistic", pixels=slice(None)):
    """Out-of-fold probabilities of real digits."""
    inputs = DIGITS.data[:, pixels] / 16

    def fit_predict(rest, held_out):
        fitted = MODELS[model]().fit(inputs[rest], labels[rest])
        found = np.zeros((len(held_out), 10))
        found[:, fitted.classes_] = fitted.predict_proba(inputs[held_out])
        return found / found.sum(1, keepdims=True)

    return out_of_fold(fit_predict, labels, folds=3)


def drawn(examples, classes, sure=5.0, seed=0):
    random = np.random.default_rng(seed)
    clean = random.integers(classes, size=examples)
    return clean, softmax(sure * np.eye(classes)[clean] + random.standard_normal((examples, classes)), axis=1)


@pytest.mark.parametrize("model", ["logistic", "forest"])
@pytest.mark.parametrize("noise", ["clean", "uniform", "pair"])
def test_real_digits(model, noise):
    clean = DIGITS.target
    change = {
        "clean": lambda: clean,
        "uniform": lambda: symmetric(clean, 0.2, 10, 1),
        "pair": lambda: pair(clean, 0.2, 10, 1),
    }
    given = change[noise]()
    truth = (given != clean).mean()
    found = assess_noise(given, predicted(given, model), resamples=0)
    assert found.is_identified
    assert found.reason == ""
    assert found.low <= truth <= found.high
    assert found.error_rate == pytest.approx(truth, abs=0.03)
    assert found.low <= found.error_rate <= found.high < found.low + 0.3
    assert list(found.estimates) == ["anchors", "confident", "disagreement"]


def test_mistakes_of_a_weak_model_are_not_told_as_wrong_labels():
    """Logistic regression on the upper three rows of pixels, and labels that are all right."""
    labels = DIGITS.target
    probabilities = predicted(labels, pixels=slice(0, 24))
    assert 1 - estimate_noise(labels, probabilities, resamples=0).clean_rate > 0.2
    found = assess_noise(labels, probabilities, resamples=0)
    assert not found.is_identified
    assert found.error_rate is None
    assert found.low == 0 < found.high
    assert "the model may confuse the other classes" in found.reason
    assert found.high == pytest.approx(found.estimates["disagreement"], abs=0.03)


@pytest.mark.parametrize("pixels", [16, 24, 32, 48, 64])
@pytest.mark.parametrize("model", MODELS)
def test_clean_digits_are_never_told_more_than_three_per_cent(model, pixels):
    labels = DIGITS.target
    found = assess_noise(labels, predicted(labels, model, slice(0, pixels)), resamples=0)
    assert found.low == 0
    assert not found.is_identified or found.error_rate <= 0.03


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_intervals_hold_the_truth_of_clusters(classes, rate):
    held = []
    for seed in range(5):
        for apart in (1.0, 2.0, 3.0):
            clean, noisy, probabilities = simulated(pair_transitions(rate, classes), seed, 2000, apart)
            found = assess_noise(noisy, probabilities, resamples=0)
            held.append(found.low <= (clean != noisy).mean() <= found.high)
    assert np.mean(held) >= 0.9


def test_noise_that_sits_on_difficult_examples_lies_inside_too():
    """The case that anchors cannot see: labels are only wrong where the model is unsure."""
    clean, probabilities = drawn(4000, 4, sure=2.0)
    random = np.random.default_rng(1)
    unsure = probabilities.max(1) < 0.6
    moved = unsure & (random.random(4000) < 0.5)
    found = assess_noise(np.where(moved, (clean + 1) % 4, clean), probabilities, resamples=0)
    assert found.low <= moved.mean() <= found.high
    assert found.estimates["anchors"] < moved.mean() / 2


def _majority():
    """A model that knows one class only, and other labels spread evenly."""
    labels = (np.arange(1000) % 8 == 0).astype(np.int64)
    return labels, np.tile([0.9, 0.1], (1000, 1)), labels


def _uneven():
    """Two of eight classes cannot be told apart, although the model believes so."""
    clean, probabilities = drawn(4000, 8)
    both, guess = probabilities[:, 6] + probabilities[:, 7], np.random.default_rng(1).random(4000) < 0.5
    probabilities[:, 6], probabilities[:, 7] = (
        both * np.where(guess, 0.9, 0.1),
        both * np.where(guess, 0.1, 0.9),
    )
    return clean, probabilities, clean


def _noisy(noise, rate, examples, classes, sure):
    clean, probabilities = drawn(examples, classes, sure)
    given = noise(clean, rate, classes, 1)
    transitions = noise_matrix(given, clean, classes)
    return given, probabilities @ transitions, clean


def noise_matrix(given, clean, classes):
    return np.stack([(given[clean == k][:, None] == np.arange(classes)).mean(0) for k in range(classes)])


def _sharpened(power, sure=1.5):
    """As certain as naive Bayes is."""
    clean, probabilities = drawn(3000, 3, sure)
    given = symmetric(clean, 0.05, 3, 1)
    return given, probabilities**power, clean


def _clean(*arguments):
    clean, probabilities = drawn(*arguments)
    return clean, probabilities, clean


# By name: labels, probabilities and the truth, and how the reason begins.
REFUSED = {
    "too few": (lambda: _noisy(pair, 0.2, 400, 3, 3.0), "400 examples are too few"),
    "one class": (
        lambda: (np.zeros(600, np.int64), drawn(600, 3)[1], np.zeros(600)),
        "All labels are the same",
    ),
    "memorised": (lambda: _clean(600, 3, 50.0), "The model agrees with 100.00 % of the labels"),
    "chance": (lambda: _clean(1000, 10, 0.0), "The model is too weak: even of its most confident"),
    "worse than chance": (
        lambda: _clean(1000, 10, -4.0),
        "The model is too weak: even of its most confident",
    ),
    "weak": (lambda: _clean(3000, 3, 1.0), "The model is too weak: "),
    "majority": (_majority, "The model rarely predicts the classes"),
    "overconfident": (lambda: _sharpened(6, 2.5), "The model is overconfident (temperature scaling divides"),
    "close": (lambda: _noisy(pair, 0.42, 3000, 4, 5.0), "In at least one class, the two most"),
    "uneven": (_uneven, "Labels differ from 1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    make, reason = REFUSED[case]
    labels, probabilities, truth = make()
    found = assess_noise(labels, probabilities / probabilities.sum(1, keepdims=True), resamples=0)
    assert found.reason.startswith(reason)
    assert (found.is_identified, found.error_rate, found.low) == (False, None, 0.0)
    assert found.high >= (labels != truth).mean()
    assert (found.high == 1) == (case in ("memorised", "worse than chance"))


def test_the_interval_by_hand():
    given, probabilities, _ = _noisy(symmetric, 0.2, 3000, 4, 3.0)
    found = assess_noise(given, probabilities, resamples=0)
    anchors = find_anchors(calibrated(as_sample(given, probabilities))[0])
    most = found.estimates["disagreement"]

    def wilson(share, examples, sign):
        z = 1.959964
        reach = z * np.sqrt(share * (1 - share) / examples + z * z / (4 * examples**2))
        return (share + z * z / (2 * examples) + sign * reach) / (1 + z * z / examples)

    leaked = max(0.3 * (most - anchors.disagreement), anchors.curve[0.5] - anchors.curve[0.1])
    assert leaked > 0.01
    assert found.low == pytest.approx(wilson(anchors.lowest, anchors.examples, -1) - leaked, abs=1e-6)
    assert found.high == pytest.approx(wilson(most, 3000, 1), abs=1e-6)
    assert most == pytest.approx((probabilities.argmax(1) != given).mean(), abs=0.003)


@pytest.mark.parametrize("model", ["tree", "neighbour", "classes"])
def test_confidences_that_are_all_alike_choose_no_anchors(model):
    clean, probabilities = drawn(3000, 10, sure=8.0)
    random = np.random.default_rng(2)
    mistaken = random.random(3000) < 0.1
    predicted_class = np.where(mistaken, random.integers(10, size=3000), probabilities.argmax(1))
    sure = {"tree": 1.0, "neighbour": np.where(random.random(3000) < 0.8, 1.0, 0.6), "classes": 1.0}[model]
    rest = (1 - sure) / 9
    given = np.full((3000, 10), 1.0) * np.reshape(rest, (-1, 1))
    given[np.arange(3000), predicted_class] = sure
    if model == "tree":
        given = given.astype(np.float32)
    found = assess_noise(clean, given, resamples=0)
    assert not found.is_identified
    assert found.error_rate is None
    assert "equally confident" in found.reason
    assert found.low == 0
    assert found.high > mistaken.mean() * 0.9


def test_many_predictions_that_are_all_certain_and_right_are_clean():
    clean, _ = drawn(3000, 10)
    given = np.eye(10)[clean]
    given[:30] = 0.1
    found = assess_noise(clean, given, resamples=0)
    assert found.is_identified
    assert found.error_rate < 0.01


def test_classes_without_labels_do_no_harm():
    clean, probabilities = drawn(2000, 10)
    given = np.where(clean == 3, 4, clean)
    found = assess_noise(given, probabilities)
    assert found.low <= (given != clean).mean() <= found.high
    assert np.isfinite(found.estimate.matrix).all()


def test_many_classes_with_few_examples_each():
    clean, probabilities = drawn(1000, 100, sure=7.0)
    given = symmetric(clean, 0.2, 100, 0)
    found = assess_noise(given, probabilities, resamples=5)
    assert found.is_identified  # ten examples of a class are too few to compare classes by
    assert found.low <= (given != clean).mean() <= found.high


def test_a_wider_level_is_a_wider_interval_and_seeds_only_matter_to_the_bootstrap():
    clean, probabilities = drawn(1500, 4)
    given = symmetric(clean, 0.2, 4, 0)
    narrow, wide = (assess_noise(given, probabilities, level=level, resamples=3) for level in (0.5, 0.99))
    assert wide.low < narrow.low <= narrow.high < wide.high
    other = assess_noise(
        torch.from_numpy(given), torch.from_numpy(probabilities), level=0.5, resamples=3, seed=1
    )
    assert (other.low, other.high) == (narrow.low, narrow.high)
    assert not np.array_equal(other.estimate.interval.matrix_high, narrow.estimate.interval.matrix_high)


def test_the_matrix_is_that_of_the_noise():
    clean, probabilities = drawn(6000, 3)
    given = pair(clean, 0.2, 3, 0)
    found = assess_noise(given, probabilities)
    np.testing.assert_allclose(found.estimate.matrix, pair_transitions(0.2, 3), atol=0.05)
    assert found.estimate.clean_rate == pytest.approx(1 - found.error_rate)
