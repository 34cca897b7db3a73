from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softtargets.data.digits import held_out, read_digits


def test_the_two_splits_are_all_of_it_and_share_nothing():
    from sklearn.datasets import load_digits

    train, test = read_digits("train"), read_digits("test")
    assert (len(train), len(test)) == (1297, 500)
    images = np.rint(load_digits().images * 255 / 16).astype(np.uint8)
    together = np.concatenate([train.images, test.images])[:, 0].reshape(1797, -1)
    assert sorted(map(bytes, together)) == sorted(map(bytes, images.reshape(1797, -1)))


def test_every_class_is_held_out_in_proportion():
    train, test = np.bincount(read_digits("train").labels), np.bincount(read_digits("test").labels)
    np.testing.assert_allclose(test, (train + test) * 500 / 1797, atol=1)


def test_values_span_the_bytes():
    images = read_digits("train").images
    assert set(np.unique(images)) == {round(v * 255 / 16) for v in range(17)}


def test_the_split_is_the_one_it_always_was():
    """Results are compared across machines, so this may never change."""
    found = hashlib.sha256()
    for split in ("train", "test"):
        examples = read_digits(split)
        found.update(examples.labels.astype(np.uint8).tobytes() + examples.images.tobytes())
    assert found.hexdigest()[:16] == "4b4c1981dc69e87c"


@pytest.mark.parametrize("part", [slice(0, 100), slice(400, 600), slice(-400, None)])
def test_every_stretch_of_the_training_digits_has_all_classes_in_proportion(part):
    labels = read_digits("train").labels
    share = np.bincount(labels) / len(labels)
    counts = np.bincount(labels[part], minlength=10)
    np.testing.assert_allclose(counts, share * counts.sum(), atol=1.5)


@given(labels=st.lists(st.integers(0, 4), min_size=1, max_size=60), share=st.floats(0, 1))
def test_any_split_has_the_right_number_and_proportions(labels, share):
    count = int(share * len(labels))
    chosen = held_out(labels, count)
    assert len(chosen) == len(set(chosen)) == count
    for label in set(labels):
        exact = count * labels.count(label) / len(labels)
        assert abs(sum(labels[i] == label for i in chosen) - exact) < 1
