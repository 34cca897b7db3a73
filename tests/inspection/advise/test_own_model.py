from __future__ import annotations

import numpy as np
import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.own_model import reduced, train_out_of_fold


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
