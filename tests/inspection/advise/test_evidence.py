from __future__ import annotations

import numpy as np
import pytest
import torch

from inspection.advise.cases import noisy, uniform
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.evidence import (
    LIKELIHOOD_WORK,
    NUMBERS,
    reduced,
    sample_of,
    sampling,
    train_out_of_fold,
)
from softtargets.predictions import open_predictions


def saved(path, examples=3000, classes=4, name="logits", order=None):
    logits, labels, _ = noisy(uniform(0.8, classes), examples)
    scores = logits if name == "logits" else torch.tensor(logits).softmax(1).numpy()
    order = np.arange(examples) if order is None else order
    np.savez(path, **{name: scores[order], "labels": labels[order]})
    return scores, labels


def test_a_small_file_is_taken_whole_as_probabilities(tmp_path):
    logits, labels = saved(tmp_path / "a.npz", 300)
    found = sample_of(open_predictions(tmp_path / "a.npz"))
    assert not found.is_sample
    assert found.method == "likelihood"
    assert found.labels.tolist() == labels.tolist()
    assert torch.allclose(found.probabilities, torch.tensor(logits).softmax(1))


def test_probabilities_stay_what_they_are(tmp_path):
    scores, _ = saved(tmp_path / "a.npz", 300, name="probs")
    assert sample_of(open_predictions(tmp_path / "a.npz")).probabilities.numpy() == pytest.approx(scores)


def test_a_sample_is_reproducible_about_as_large_as_asked_and_of_whole_rows(tmp_path):
    logits, labels = saved(tmp_path / "a.npz")
    first, again = (sample_of(open_predictions(tmp_path / "a.npz"), sample=700) for _ in range(2))
    assert first.is_sample
    assert 600 < len(first.labels) < 800
    assert torch.equal(first.probabilities, again.probabilities)
    known = {
        tuple(np.round(row, 9)): label
        for row, label in zip(torch.tensor(logits).softmax(1).numpy(), labels, strict=True)
    }
    for row, label in zip(first.probabilities.numpy(), first.labels.tolist(), strict=True):
        assert known[tuple(np.round(row, 9))] == label


def test_a_sample_of_a_sorted_file_has_all_of_it(tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 4000)
    order = np.argsort(labels, kind="stable")
    np.savez(tmp_path / "a.npz", logits=logits[order], labels=labels[order])
    found = sample_of(open_predictions(tmp_path / "a.npz"), sample=1000)
    shares = np.bincount(found.labels.numpy(), minlength=4) / len(found.labels)
    assert shares == pytest.approx(np.bincount(labels) / 4000, abs=0.04)


@pytest.mark.parametrize("classes", [2, 10, 50, 79, 80, 200, 1000, 100_000])
def test_plans_stay_within_time_and_memory(classes):
    chosen = sampling(10**7, classes)
    assert chosen.rows >= 1
    if chosen.method == "likelihood":
        assert chosen.rows * classes**2 <= LIKELIHOOD_WORK
        assert chosen.rows >= 40 * classes
    else:
        assert chosen.rows * classes <= NUMBERS
        assert "too long" in chosen.reason


def test_a_plan_takes_what_it_is_told():
    assert sampling(1000, 10, "naive").method == "naive"
    assert sampling(10**6, 10, sample=123).rows == 123
    assert sampling(50, 10, sample=123).rows == 50
    assert sampling(150, 100).method == "likelihood"  # few rows are no work


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "guess"}, "method must be one of likelihood, confident, naive, not guess"),
        ({"sample": 0}, "sample must be at least 1 row, not 0"),
    ],
)
def test_a_plan_refuses_what_cannot_be(options, sentence):
    with pytest.raises(SofttargetsError, match=sentence):
        sampling(100, 3, **options)


def blobs(examples=300, seed=0):
    """Images of three classes, each bright in a place of its own."""
    random = np.random.default_rng(seed)
    labels = np.arange(examples) % 3
    images = random.integers(0, 120, (examples, 1, 6, 6))
    for row, label in zip(images, labels, strict=True):
        row[0, 2 * label : 2 * label + 2] += 100
    return images.astype(np.uint8), labels.astype(np.int64)


def test_pixels_are_averaged_over_squares():
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 65, 66), dtype=np.uint8)
    found = reduced(images).reshape(2, 3, 21, 22)
    for y, x in ((0, 0), (3, 7), (20, 21)):
        square = images[1, 2, 3 * y : 3 * y + 3, 3 * x : 3 * x + 3]
        assert found[1, 2, y, x] == pytest.approx(square.mean() / 255, abs=1e-6)


def test_small_images_keep_every_pixel():
    images = np.random.default_rng(0).integers(0, 256, (4, 1, 8, 8), dtype=np.uint8)
    assert reduced(images) == pytest.approx(images.reshape(4, 64) / 255, abs=1e-6)


def test_no_example_is_predicted_by_a_model_that_saw_its_label():
    images, labels = blobs()
    labels[7] = 1 - labels[7]  # wrong, and alone: only a model that saw it would believe it
    found = train_out_of_fold("blobs", images, labels, ("a", "b", "c"), folds=3)
    said = found.probabilities.numpy()
    assert said.sum(1) == pytest.approx(np.ones(300))
    assert said[7].argmax() != labels[7]
    assert (said.argmax(1) == labels).mean() > 0.98
    assert found.trained == "logistic regression on 36 pixel values, 3 folds"
    assert found.understood.examples == 300


def test_how_many_were_left_out_is_told():
    images, labels = blobs(60)
    found = train_out_of_fold("blobs", images, labels, ("a", "b", "c"), examples=500)
    assert found.understood.source == "60 of 500 training examples"
    assert found.is_sample


@pytest.mark.parametrize(
    ("change", "options", "sentence"),
    [
        (0, {"method": "guess"}, "method must be one of likelihood, confident, naive, not guess"),
        (0, {"folds": 1}, "folds must lie between 2 and the number of examples, 60, not 1"),
        (3, {}, r"class 'd' has no label among 60 examples; .* raise --limit"),
        (4, {}, r"class 'd' has only 1 label among 60 examples"),
    ],
)
def test_what_cannot_be_trained_is_refused(change, options, sentence):
    images, labels = blobs(60)
    names = ("a", "b", "c") if change == 0 else ("a", "b", "c", "d")
    if change == 4:
        labels[5] = 3
    with pytest.raises(SofttargetsError, match=sentence):
        train_out_of_fold("blobs", images, labels, names, **options)
