from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from cli.command import ran
from inspection.made import net
from softtargets.arrays import as_labels, as_logits, as_probabilities
from softtargets.arrays import scores as arrays
from softtargets.predictions import kinds, open_predictions
from softtargets.predictions.labels import LabelledRows

from .making import logits, probabilities, refusal, same


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 300),
    st.integers(1, 60),
    st.integers(0, 9),
    st.sampled_from(["float16", "float32", "float64"]),
)
def test_a_softmax_is_known_from_its_logits(tmp_path_factory, classes, rows, seed, dtype):
    path = tmp_path_factory.mktemp("a") / "a.npz"
    scores, labels = probabilities(rows, classes, dtype, seed)
    np.savez(path, scores=scores, labels=labels)
    found = open_predictions(path)
    assert found.kind == "probabilities"
    as_probabilities(found.load()[0])
    scores, labels = logits(rows, classes, dtype, seed)
    if scores.min() < 0 or scores.max() > 1:
        np.savez(path, scores=scores, labels=labels)
        found = open_predictions(path)
        assert found.kind == "logits"
        assert np.array_equal(as_logits(found.load()[0]), scores)
        assert as_labels(found.load()[1], rows, classes).tolist() == labels.tolist()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("later", [None, torch.float32, torch.float64])
def test_probabilities_of_low_precision(tmp_path, dtype, later):
    scores, labels = probabilities(rows=300, classes=30)
    scores = torch.tensor(scores).to(dtype)
    scores = scores if later is None else scores.to(later)
    save_file({"x": scores, "labels": torch.tensor(labels)}, tmp_path / "a.safetensors")
    found = open_predictions(tmp_path / "a.safetensors")
    assert found.kind == "probabilities"
    got = as_probabilities(found.load()[0])
    assert got.dtype == scores.dtype
    assert torch.allclose(got.double(), scores.double(), atol=5e-3)
    if later is not None and dtype != torch.float32:
        assert "divided by their sums" in found.reason
        assert torch.allclose(
            got.double(), (scores.double() / scores.double().sum(1, keepdim=True)), atol=1e-4
        )


def test_logs_of_probabilities_are_logits(tmp_path):
    scores, labels = probabilities()
    np.savez(tmp_path / "a.npz", x=np.log(scores), labels=labels)
    found = same(tmp_path / "a.npz", np.log(scores), labels)
    assert found.kind == "logits"
    assert "log-probabilities" in found.reason


def test_what_is_said_and_contradicted(tmp_path):
    scores, labels = probabilities()
    np.savez(tmp_path / "p.npz", x=scores, labels=labels)
    refusal(tmp_path / "p.npz", "should have logits", 'kind="probabilities"', kind="logits")
    assert same(tmp_path / "p.npz", scores, labels, kind="probabilities").kind == "probabilities"
    scores, labels = logits()
    np.savez(tmp_path / "l.npz", x=scores, labels=labels)
    refusal(tmp_path / "l.npz", "row 0", 'kind="logits"', kind="probabilities")
    with pytest.raises(ValueError, match="kind must be 'logits' or 'probabilities', not 'odds'"):
        open_predictions(tmp_path / "l.npz", kind="odds")


def test_numbers_from_0_to_1_that_are_neither(tmp_path):
    scores = np.random.default_rng(0).random((40, 5))
    np.savez(tmp_path / "a.npz", x=scores, labels=np.zeros(40, int))
    refusal(tmp_path / "a.npz", "do not add up to 1", 'kind="logits"')
    assert same(tmp_path / "a.npz", scores, [0] * 40, kind="logits").kind == "logits"
    np.savez(tmp_path / "b.npz", logits=scores, labels=np.zeros(40, int))
    assert same(tmp_path / "b.npz", scores, [0] * 40).kind == "logits"
    np.savez(tmp_path / "c.npz", probs=scores, labels=np.zeros(40, int))
    refusal(tmp_path / "c.npz", f"row 0 that add up to {scores[0].sum():g}, not 1")


def test_values_count_more_than_names(tmp_path):
    scores, labels = probabilities()
    np.savez(tmp_path / "a.npz", logits=scores, labels=labels)
    assert "although the name says otherwise" in same(tmp_path / "a.npz", scores, labels).reason


@pytest.mark.parametrize("row", [0, 20, 39, 5000])
def test_the_row_that_does_not_add_up_is_named(tmp_path, row):
    scores, labels = probabilities(rows=max(40, row + 800))
    scores[row] *= 0.9
    np.savez(tmp_path / "a.npz", x=scores, labels=labels)
    refusal(tmp_path / "a.npz", f"in row {row} that add up to 0.9, not 1")
    scores[row] *= 3
    scores[row, 0] = -scores[row, 0]
    np.savez(tmp_path / "a.npz", x=scores, labels=labels)
    refusal(tmp_path / "a.npz", f"in row {row}, but its other scores are probabilities")


@pytest.mark.parametrize("row", [0, 39, 3333])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [logits, probabilities])
def test_the_row_that_is_not_finite_is_named(tmp_path, row, value, make):
    scores, labels = make(rows=max(40, row + 2000))
    scores[row, 3] = value
    np.savez(tmp_path / "a.npz", x=scores, labels=labels)
    refusal(tmp_path / "a.npz", f"has {value} in row {row}, class 3")


def test_one_logit_is_that_of_class_one(tmp_path):
    scores = np.array([3.0, -2.0, 0.5])
    np.savez(tmp_path / "a.npz", logits=scores, labels=np.array([1, 0, 1]))
    found = open_predictions(tmp_path / "a.npz")
    got, _ = found.load()
    assert found.kind == "logits"
    assert "logit of class 1" in found.reason
    assert torch.allclose(got.softmax(1)[:, 1], torch.sigmoid(torch.tensor(scores)))
    np.savez(tmp_path / "a.npz", probs=scores, labels=np.array([1, 0, 1]))
    refusal(tmp_path / "a.npz", "row 0", kind="probabilities")


def test_one_probability_that_is_none(tmp_path):
    scores = np.full((40, 1), 0.25)
    scores[30] = 1.5
    np.savez(tmp_path / "a.npz", scores=scores, labels=np.zeros(40, int))
    refusal(tmp_path / "a.npz", "1.5 in row 30")


@pytest.mark.parametrize("name", ["x", "logits", "probs"])
@pytest.mark.parametrize("digits", [0, 1, 5])
def test_percentages_are_no_logits(tmp_path, name, digits):
    scores, labels = probabilities(rows=300, classes=10 if digits else 3)
    percent = (100 * scores.astype("float64")).round(digits)
    np.savez(tmp_path / "a.npz", **{name: percent, "labels": labels})
    refusal(tmp_path / "a.npz", "add up to 100", "divide them by 100", 'kind="logits"')
    assert same(tmp_path / "a.npz", percent, labels, kind="logits").kind == "logits"


def test_one_column_of_percentages(tmp_path):
    scores, labels = probabilities(rows=300, classes=2)
    percent = 100 * scores[:, 1].astype("float64")
    np.savez(tmp_path / "a.npz", scores=percent, labels=labels)
    refusal(tmp_path / "a.npz", "percentages", "divide them by 100")
    assert open_predictions(tmp_path / "a.npz", kind="logits").kind == "logits"
    np.savez(tmp_path / "a.npz", scores=percent[:10], labels=labels[:10])  # few logits may all be positive
    assert open_predictions(tmp_path / "a.npz").kind == "logits"


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_calibrate_looks_at_a_row_once_each_time_it_is_read(tmp_path, monkeypatch, capsys, kind):
    """Readers of files look at rows; sums, temperatures and scalings believe them.

    Only methods that are tried where scaling is not enough look for themselves, which these predictions do not need.
    """
    scores, labels = net(3000, 4)
    scores = scores if kind == "logits" else scores.softmax(1)
    np.savez(tmp_path / "a.npz", scores=scores.numpy(), labels=labels.numpy())
    read, looked = [], []
    blocks, find = LabelledRows.blocks, arrays.find_fault

    def counted(rows, *arguments):
        for block in blocks(rows, *arguments):
            read.append(len(block.labels))
            yield block

    def looking(rows, tolerance):
        looked.append(len(rows))
        return find(rows, tolerance)

    monkeypatch.setattr(LabelledRows, "blocks", counted)
    monkeypatch.setattr(arrays, "find_fault", looking)
    monkeypatch.setattr(kinds, "find_fault", looking)
    code, *_ = ran(capsys, "calibrate", str(tmp_path / "a.npz"), "--out", str(tmp_path / "page"))
    assert code == 0
    assert sum(read) >= 2 * 3000
    assert looked == read


@pytest.mark.parametrize("odd", [None, -1e-7, 1.2])
def test_probabilities_that_add_up_to_less_are_not_logits(tmp_path, odd):
    scores, labels = probabilities(classes=4, dtype="float64")
    scores = 0.9 * scores
    if odd is not None:
        scores[7, 2] = odd  # one row that is wrong says nothing of the others
    np.savez(tmp_path / "a.npz", scores=scores, labels=labels)
    refusal(tmp_path / "a.npz", "between 0 and 1 that do not add up to 1", "sum of 0.9")
