from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.predictions import PredictionFileError, open_arrays, open_predictions

from .making import bomb, logits, refusal, same


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "dtype", ["<f2", "<f4", ">f4", "<f8", ">f8", "<i2", ">i8", "u1", "<u2", "<u4", "<u8", "g"]
)
def test_scores_of_any_type_and_order(tmp_path, dtype, order):
    scores, labels = logits(dtype="float64")
    scores = np.asarray(np.abs(scores) if "u" in dtype else scores, dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", scores)
    np.save(tmp_path / "y.npy", labels.astype(">i4"))
    found = same(tmp_path / "a.npy", scores, labels, labels=tmp_path / "y.npy", kind="logits")
    assert "a.npy" in found.source
    assert "y.npy" in found.source


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from("CF"),
    st.data(),
)
def test_blocks_are_the_array_from_any_row_on(tmp_path_factory, n, t, k, rows, order, data):
    path = tmp_path_factory.mktemp("a") / "a.npy"
    values = np.asarray(np.random.default_rng(n).normal(size=(n, t, k)), order=order)
    np.save(path, values)
    array = open_arrays(path)["array"]
    start = data.draw(st.integers(0, n - 1))
    blocks = [block.numpy() for block in array.blocks(rows, start)]
    assert all(len(block) == rows for block in blocks[:-1])
    assert np.array_equal(np.concatenate(blocks), values[start:])
    flat = values.reshape(-1, k)
    start = data.draw(st.integers(0, n * t - 1))
    assert np.array_equal(
        np.concatenate([b.numpy() for b in array.merged().blocks(rows, start)]), flat[start:]
    )
    assert np.array_equal(array.load().numpy(), values)


def test_records_with_scores_in_one_field(tmp_path):
    scores, labels = logits()
    records = np.zeros(len(labels), dtype=[("mark", "u1"), ("logits", "<f4", (5,)), ("label", "<i2")])
    records["logits"], records["label"] = scores, labels
    np.save(tmp_path / "a.npy", records)
    same(tmp_path / "a.npy", scores, labels)
    same(tmp_path / "a.npy", scores, labels, rows=1)


def test_records_with_a_field_for_each_class(tmp_path):
    scores, labels = logits(classes=3)
    records = np.zeros(len(labels), dtype=[("label", "<i4"), ("a", ">f4"), ("b", "<f4"), ("c", "<f8")])
    records["label"] = labels
    for place, name in enumerate("abc"):
        records[name] = scores[:, place]
    np.save(tmp_path / "a.npy", records)
    assert same(tmp_path / "a.npy", scores, labels).class_names == ("a", "b", "c")


def test_names_of_fields_in_any_script(tmp_path):
    """They are written in numpy's third format, in UTF-8."""
    records = np.zeros(3, dtype=[("label", "<i4"), ("猫", "<f4"), ("Hündin", "<f4")])
    records["猫"] = [1, 2, 3]
    with pytest.warns(UserWarning, match="format 3.0"):
        np.save(tmp_path / "a.npy", records)
    found = open_predictions(tmp_path / "a.npy")
    assert found.class_names == ("猫", "Hündin")
    assert found.load()[0].tolist() == [[1, 0], [2, 0], [3, 0]]


def test_an_array_alone_has_no_labels(tmp_path):
    np.save(tmp_path / "a.npy", logits()[0])
    refusal(tmp_path / "a.npy", "has no labels", "(40, 5) float32", "with labels")


def test_a_pickle_is_not_executed(tmp_path):
    harm, marker = bomb(tmp_path)
    np.save(tmp_path / "a.npy", np.array([harm, harm]), allow_pickle=True)
    refusal(tmp_path / "a.npy", "Python objects", "numeric dtype")
    records = np.zeros(2, dtype=[("label", "i4"), ("x", "O")])
    records["x"] = harm
    np.save(tmp_path / "b.npy", records, allow_pickle=True)
    refusal(tmp_path / "b.npy", "Python objects")
    assert not marker.exists()


def header(text: str, content: bytes = b"", version: int = 1) -> bytes:
    packed = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + packed + text.encode() + content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            header("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 3)}", b"\0" * 47),
            ["48 bytes", "are 47"],
        ),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3)}", b"\0" * 48), ["48"]),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (2**70, 3)}", b"\0" * 48), ["header"]),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (-4, -3)}", b"\0" * 48), ["header"]),
        (header("{'descr': '<f4', 'fortran_order': False, 'shape': (True, 3)}", b"\0" * 12), ["header"]),
        (
            header("{'descr': '<q9', 'fortran_order': False, 'shape': (4, 3)}", b"\0" * 48),
            ["unreadable or incomplete numpy header"],
        ),
        (header("__import__('os').mkdir('exploded')"), ["unreadable or incomplete numpy header"]),
        (header("(" * 9000), ["unreadable or incomplete numpy header"]),
        (header("x" * 99999, version=2), ["numpy header"]),
        (header("{}", version=9), ["numpy header"]),
        (header("{'descr'")[:14], ["incomplete numpy header"]),
        (b"\x93NUMPY", ["numpy header"]),
        (b"something else", ["begins with other bytes"]),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, content, words, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.npy").write_bytes(content)
    refusal(tmp_path / "a.npy", *words)
    assert not (tmp_path / "exploded").exists()


def test_every_cut_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", logits(rows=4)[0])
    np.save(tmp_path / "y.npy", logits(rows=4)[1])
    whole = (tmp_path / "a.npy").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "b.npy").write_bytes(whole[:length])
        with pytest.raises(PredictionFileError):
            open_predictions(tmp_path / "b.npy", labels=tmp_path / "y.npy")


def test_text_and_complex_numbers_are_no_scores(tmp_path):
    for values in (np.array(["a", "b"]), np.ones((3, 2), complex), np.ones((3, 2), bool)):
        np.save(tmp_path / "a.npy", values)
        refusal(tmp_path / "a.npy", "no array that could be scores")
        with pytest.raises(
            PredictionFileError, match=r"no numbers in the scores|do not match|has no numbers"
        ):
            open_predictions(tmp_path / "a.npy", scores_name="array", labels=tmp_path / "a.npy")
