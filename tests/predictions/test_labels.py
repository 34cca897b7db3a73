from __future__ import annotations

import numpy as np
import pytest

from softtargets.predictions import open_predictions

from .making import logits, refusal, same


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(40,), (40, 1)])
def test_labels_of_any_type(tmp_path, kind, shape):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels.astype(kind).reshape(shape))
    same(tmp_path / "a.npz", scores, labels)


@pytest.mark.parametrize("kind", [np.int64, np.bool_, np.float32])
@pytest.mark.parametrize("name", ["labels", "targets"])
def test_one_hot_rows(tmp_path, kind, name):
    scores, labels = logits()
    hot = np.eye(5)[labels].astype(kind)
    np.savez(tmp_path / "a.npz", **{"logits": scores, name: hot})
    assert "one-hot" in same(tmp_path / "a.npz", scores, labels).source
    hot[7] = 0
    np.savez(tmp_path / "b.npz", **{"logits": scores, name: hot})
    refusal(tmp_path / "b.npz", "not one-hot in row 7")
    hot[7, :2] = 1
    np.savez(tmp_path / "b.npz", **{"logits": scores, name: hot})
    refusal(tmp_path / "b.npz", "not one-hot in row 7")


def test_true_and_false_are_two_classes(tmp_path):
    scores, labels = logits(classes=2)
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels == 1)
    assert "True is class 1" in same(tmp_path / "a.npz", scores, labels).source
    scores, labels = logits()
    np.savez(tmp_path / "b.npz", logits=scores, labels=labels == 1)
    refusal(tmp_path / "b.npz", "True and False as labels for 5 classes")


@pytest.mark.parametrize("row", [0, 39, 4321])
@pytest.mark.parametrize(
    ("label", "advice"),
    [
        (-1, "ignore_index=-1"),
        (-100, "ignore_index=-100"),
        (5, "counted from 1"),
        (77, "belong to these scores"),
    ],
)
def test_a_label_that_is_no_class(tmp_path, row, label, advice):
    scores, labels = logits(rows=max(40, row + 1000))
    labels[row] = label
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    refusal(tmp_path / "a.npz", f"label {label} in row {row}, but 5 classes are 0 to 4", advice)


@pytest.mark.parametrize("label", [0.5, np.nan, np.inf, 1e300])
def test_a_label_that_is_no_whole_number(tmp_path, label):
    scores, labels = logits()
    labels = labels.astype(float)
    labels[12] = label
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    refusal(tmp_path / "a.npz", "label", "in row 12")


def test_lengths_that_do_not_match(tmp_path):
    scores, labels = logits()
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels[:39])
    refusal(tmp_path / "a.npz", "(40, 5)", "(39,)", "one label for each example")
    np.savez(tmp_path / "b.npz", logits=scores.T, labels=labels)
    refusal(tmp_path / "b.npz", "transpose")
    np.savez(tmp_path / "c.npz", logits=np.zeros((2, 5, 3, 4)), labels=np.zeros((2, 3, 4), int))
    refusal(tmp_path / "c.npz", "move the classes to the last dimension")
    np.save(tmp_path / "y.npy", labels[:39])
    refusal(tmp_path / "a.npz", "y.npy", labels=tmp_path / "y.npy")


def test_ignored_rows_are_left_out_whatever_is_in_them(tmp_path):
    scores, labels = logits(rows=900)
    dropped = np.random.default_rng(1).random(900) < 0.4
    scores[dropped] = np.nan
    labels[dropped] = -100
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    same(tmp_path / "a.npz", scores[~dropped], labels[~dropped], ignore_index=-100)
    scores[~dropped & (np.cumsum(~dropped) == 100), 2] = np.inf
    row = int(np.flatnonzero(np.isinf(scores[:, 2]))[0])
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    refusal(tmp_path / "a.npz", f"inf in row {row}", ignore_index=-100)
    np.savez(tmp_path / "a.npz", logits=scores, labels=np.full(900, -100))
    refusal(tmp_path / "a.npz", "no example left", ignore_index=-100)


def test_a_class_may_be_ignored_where_columns_name_labels(tmp_path):
    (tmp_path / "a.csv").write_text("label,3,5\n3,1,2\n0,7,7\n5,2,9\n")
    found = open_predictions(tmp_path / "a.csv", ignore_index=0)
    scores, labels = found.load()
    assert (scores.tolist(), labels.tolist(), found.examples) == ([[1.0, 2.0], [2.0, 9.0]], [0, 1], 2)
