from __future__ import annotations

import numpy as np
import pytest

from softtargets.data import Examples
from softtargets.exceptions import DataError

IMAGES = np.arange(4 * 3 * 2 * 2, dtype=np.uint8).reshape(4, 3, 2, 2)
LABELS = np.array([0, 1, 1, 0])
CLASSES = ("cat", "dog")


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES.astype(np.float32), LABELS, "float32"),
        (IMAGES[0], LABELS, r"shape \(3, 2, 2\)"),
        (IMAGES.tolist(), LABELS, "not list"),
        (IMAGES.transpose(0, 2, 3, 1), LABELS, "contiguous"),
        (IMAGES, LABELS.astype(np.int32), "int32"),
        (IMAGES, LABELS[:, None], "one-dimensional"),
        (IMAGES, LABELS[:3], "4 images but 3 labels"),
        (IMAGES, LABELS + 1, "from 1 to 2, but there are 2 classes"),
        (IMAGES, LABELS - 1, "from -1"),
    ],
)
def test_what_does_not_fit_is_refused(images, labels, message):
    with pytest.raises(DataError, match=message):
        Examples(images, labels, CLASSES)


@pytest.mark.parametrize("indices", [[3, 0], np.array([3, 0]), (3, 0)])
def test_take_keeps_the_order_asked_for(indices):
    taken = Examples(IMAGES, LABELS, CLASSES).take(indices)
    assert np.array_equal(taken.images, IMAGES[[3, 0]])
    assert taken.labels.tolist() == [0, 0]


def test_take_understands_masks_and_nothing():
    examples = Examples(IMAGES, LABELS, CLASSES)
    assert np.array_equal(examples.take(LABELS == 1).images, IMAGES[1:3])
    assert len(examples.take([])) == 0
