from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from softtargets.noise import (
    METHODS,
    class_conditional,
    estimate_noise,
    observed_transitions,
    out_of_fold,
    pair_transitions,
    symmetric_transitions,
)

from .making import distance, simulated

UNEVEN = np.array(
    [
        [0.60, 0.25, 0.05, 0.05, 0.05],
        [0.00, 0.95, 0.05, 0.00, 0.00],
        [0.10, 0.10, 0.70, 0.10, 0.00],
        [0.00, 0.00, 0.30, 0.70, 0.00],
        [0.15, 0.00, 0.00, 0.00, 0.85],
    ]
)
MATRICES = {
    "none": np.eye(5),
    "symmetric, 0.2": symmetric_transitions(0.2, 5),
    "symmetric, 0.4": symmetric_transitions(0.4, 5),
    "pair, 0.2": pair_transitions(0.2, 5),
    "pair, 0.4": pair_transitions(0.4, 5),
    "uneven": UNEVEN,
}


@pytest.mark.parametrize("name", MATRICES)
def test_the_truth_is_recovered_over_twenty_seeds(name):
    """With 3,000 examples of 5 classes T is found within 0.05, and not much worse than by counting with clean labels;
    the share of right labels within 0.01, 0.005 on average.
    """
    matrix = MATRICES[name]
    distances, counted, errors, naive_distances, naive_errors = [], [], [], [], []
    for seed in range(20):
        clean, noisy, probabilities = simulated(matrix, seed)
        share = (clean == noisy).mean()
        found = estimate_noise(noisy, probabilities, resamples=0)
        naive = estimate_noise(noisy, probabilities, "naive", resamples=0)
        distances.append(distance(found.matrix, matrix))
        counted.append(distance(observed_transitions(clean, noisy, 5), matrix))
        naive_distances.append(distance(naive.matrix, matrix))
        errors.append(abs(found.clean_rate - share))
        naive_errors.append(abs(naive.clean_rate - share))
    assert max(distances) < 0.05
    assert np.mean(distances) < 1.2 * np.mean(counted) + 0.005
    assert max(errors) < 0.01
    assert np.mean(errors) < 0.005
    assert np.mean(distances) < 0.85 * np.mean(naive_distances)
    assert np.mean(errors) < 0.5 * np.mean(naive_errors)


@pytest.mark.parametrize("name", ["symmetric, 0.2", "pair, 0.4", "uneven"])
def test_the_confident_joint_lies_between_the_naive_estimate_and_the_truth(name):
    matrix = MATRICES[name]
    found = {method: [] for method in METHODS}
    for seed in range(20):
        _, noisy, probabilities = simulated(matrix, seed, apart=2.0)
        for method in ("confident", "naive"):
            estimate = estimate_noise(noisy, probabilities, method, resamples=0)
            found[method].append(distance(estimate.matrix, matrix))
    assert np.mean(found["confident"]) < np.mean(found["naive"])


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_far_out_predictions_are_forgiven(rate):
    matrix = symmetric_transitions(rate, 4)
    errors, naive_errors = [], []
    for seed in range(8):
        clean, noisy, probabilities = simulated(matrix, seed, tails=3)
        share = (clean == noisy).mean()
        errors.append(estimate_noise(noisy, probabilities, resamples=0).clean_rate - share)
        naive_errors.append(estimate_noise(noisy, probabilities, "naive", resamples=0).clean_rate - share)
    assert np.abs(errors).max() < 0.04
    assert np.mean(naive_errors) < -0.05


@pytest.mark.parametrize("kind", ["symmetric", "pair"])
def test_handwritten_digits_whose_labels_went_wrong(kind):
    inputs, clean = load_digits(return_X_y=True)
    matrix = {"symmetric": symmetric_transitions, "pair": pair_transitions}[kind](0.3, 10)
    noisy = class_conditional(clean, matrix, 10, seed=0)

    def fit_predict(rest, held_out):
        model = LogisticRegression(max_iter=60, tol=1e-2).fit(inputs[rest] / 16, noisy[rest])
        return model.predict_proba(inputs[held_out] / 16)

    probabilities = out_of_fold(fit_predict, noisy)
    found = {method: estimate_noise(noisy, probabilities, method, resamples=0) for method in METHODS}
    share = (noisy == clean).mean()
    errors = {method: abs(estimate.clean_rate - share) for method, estimate in found.items()}
    distances = {method: distance(estimate.matrix, matrix) for method, estimate in found.items()}
    assert errors["likelihood"] < 0.02 < errors["naive"]
    assert distances["likelihood"] < 0.9 * distances["naive"]
    if kind == "pair":  # where the model learns the noise, counting sure examples is not enough
        assert distances["likelihood"] < 0.5 * distances["confident"]


@pytest.mark.parametrize("method", METHODS)
def test_what_an_estimate_is_made_of(method):
    _, noisy, probabilities = simulated(UNEVEN, seed=0, examples=500)
    found = estimate_noise(
        torch.from_numpy(noisy), torch.from_numpy(probabilities).float(), method, resamples=5
    )
    assert found.method == method
    np.testing.assert_allclose(found.matrix.sum(1), 1, rtol=1e-12)
    assert found.shares.sum() == pytest.approx(1)
    assert found.clean_rate == pytest.approx((found.shares * found.matrix.diagonal()).sum())
    # The labels there are come out: shares times T.
    if method != "anchors":  # which counts some labels and not others
        assert (found.shares @ found.matrix).tolist() == pytest.approx((np.bincount(noisy) / 500).tolist())
    assert found.interval is not None
    assert (found.interval.matrix_low <= found.interval.matrix_high).all()


@pytest.mark.parametrize("method", METHODS)
def test_names_of_classes_do_not_matter(method):
    _, noisy, probabilities = simulated(UNEVEN, seed=1, examples=600)
    renamed = np.array([3, 0, 4, 1, 2])  # class k is called renamed[k]
    moved = np.empty_like(probabilities)
    moved[:, renamed] = probabilities
    first = estimate_noise(noisy, probabilities, method, resamples=0)
    second = estimate_noise(renamed[noisy], moved, method, resamples=0)
    np.testing.assert_allclose(second.matrix[np.ix_(renamed, renamed)], first.matrix, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_examples_does_not_matter(method):
    _, noisy, probabilities = simulated(UNEVEN, seed=2, examples=600)
    order = np.random.default_rng(0).permutation(600)
    first = estimate_noise(noisy, probabilities, method, resamples=0)
    second = estimate_noise(noisy[order], probabilities[order], method, resamples=0)
    np.testing.assert_allclose(second.matrix, first.matrix, atol=1e-6)


# --- when it fails, as its documentation says ---


def test_a_model_that_has_memorised_its_labels_finds_them_all_right():
    _, noisy, _ = simulated(MATRICES["symmetric, 0.4"], seed=0)
    memorised = 0.9 * np.eye(5)[noisy] + 0.02
    assert estimate_noise(noisy, memorised, resamples=0).clean_rate > 0.99


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", [symmetric_transitions, pair_transitions])
def test_without_clusters_it_may_be_off_and_warns(kind, seed):
    random = np.random.default_rng(seed)
    matrix = kind(0.1, 10)
    clean_probabilities = random.dirichlet(np.full(10, 0.1), size=4000)
    clean = (random.random((4000, 1)) > clean_probabilities.cumsum(1)).sum(1).clip(max=9)
    noisy = class_conditional(clean, matrix, 10, seed=0)
    found = estimate_noise(noisy, clean_probabilities @ matrix, resamples=0)
    assert kind is pair_transitions or found.clean_rate < 0.85
    assert any("do not form one cluster for each class" in warning for warning in found.warnings)


def test_classes_that_are_hardly_told_apart_are_warned_of():
    _, noisy, probabilities = simulated(MATRICES["symmetric, 0.2"], seed=0, apart=1.5)
    (warning,) = estimate_noise(noisy, probabilities, resamples=0).warnings
    assert warning.startswith("the model seems to be right in only 6")


def test_where_wrong_labels_outnumber_right_ones_it_warns():
    noisy = np.arange(300) % 3
    predictions = 0.8 * np.eye(3)[(noisy + 1) % 3] + 0.2 / 3
    found = estimate_noise(noisy, predictions, "naive", resamples=0)
    assert any("outnumber right ones" in warning for warning in found.warnings)


def test_few_labels_of_a_class_and_a_class_that_is_never_predicted_are_named():
    noisy = np.array([0] * 50 + [1] * 50 + [2] * 3)
    predictions = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1]], [50, 53], axis=0)
    found = estimate_noise(noisy, predictions, "naive", resamples=4)
    assert found.warnings[0] == "class 2 has only 3 labels; its row and column are mostly chance"
    assert found.warnings[1] == "no example seems to belong to class 2, so its row of T is unknown"
    assert np.isnan(found.matrix[2]).all()
    assert (found.interval.matrix_low[2].tolist(), found.interval.matrix_high[2].tolist()) == (
        [0] * 3,
        [1] * 3,
    )


@pytest.mark.parametrize("tails", [None, 3])
def test_an_easy_case_has_no_warnings(tails):
    _, noisy, probabilities = simulated(MATRICES["symmetric, 0.2"], seed=0, tails=tails)
    assert estimate_noise(noisy, probabilities, resamples=0).warnings == ()


# --- what cannot be estimated from ---

EVEN = np.full((4, 2), 0.5)


@pytest.mark.parametrize(
    ("labels", "probabilities", "options", "message"),
    [
        (np.zeros(4, int), np.ones((4, 1)), {}, "at least two classes, not 1"),
        (np.array([0, 1]), np.full((2, 3), 1 / 3), {}, "2 examples are too few for 3 classes"),
        (np.array([0, 1, 2, 0]), EVEN, {}, "between 0 and 1 for 2 classes, but that of example 2 is 2"),
        (np.array([0, 1, -1, 0]), EVEN, {}, "but that of example 2 is -1"),
        (np.array([0.0, np.nan, 1.0, 0.0]), EVEN, {}, "that of example 1 is nan"),
        (np.array([0, 1, 1]), EVEN, {}, r"each of the 4 examples, not \(3,\)"),
        (np.array([0, 0, 0, 0]), EVEN, {}, "no example is labelled 1"),
        (np.array([0, 1, 1, 0]), np.full((4, 2), np.nan), {}, "not all finite: nan"),
        (np.array([0, 1, 1, 0]), np.full((4, 2), 3.0), {}, "pass softmax"),
        (np.array([0, 1, 1, 0]), EVEN, {}, "all examples have the same probabilities"),
        (
            np.array([0, 1, 1, 0]),
            EVEN,
            {"method": "best"},
            "likelihood, confident, naive, anchors, not 'best'",
        ),
        (np.array([0, 1, 1, 0]), EVEN, {"level": 1.0}, "level must be between 0 and 1"),
        (
            np.array([0, 1, 1, 0]),
            EVEN,
            {"resamples": 1},
            "resamples must be 0 for no interval or at least 2, not 1",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(labels, probabilities, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        estimate_noise(labels, probabilities, **options)
    assert "\n" not in str(caught.value)


def test_small_sets_are_not_slowed_down_by_threads(monkeypatch):
    """Threads that wait for each other made 300 labels take minutes."""
    used = []
    original = METHODS["likelihood"]
    monkeypatch.setitem(
        METHODS, "likelihood", lambda data: used.append(torch.get_num_threads()) or original(data)
    )
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        labels = torch.arange(60) % 3
        estimate_noise(labels, (2.0 * torch.eye(3)[labels]).softmax(1) * 0.9 + 0.1 / 3, resamples=2)
        assert (used, torch.get_num_threads()) == ([1], 2)
        with pytest.raises(ValueError, match="same probabilities"):
            estimate_noise(labels, torch.full((60, 3), 1 / 3))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
