from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.arrays import scores as arrays
from softtargets.calibration import scores
from softtargets.calibration.chunks import Chunks, as_chunks, fold_of, in_fold, logits_from_probabilities


def gathered(chunks):
    pieces = list(chunks)
    return torch.cat([z for z, _ in pieces]), torch.cat([y for _, y in pieces])


@pytest.mark.parametrize("make", [torch.as_tensor, np.asarray])
def test_arrays_come_back_in_pieces_of_about_a_megabyte(make):
    logits = torch.arange(3 * scores.PIECE, dtype=torch.float32).reshape(-1, 64)
    labels = torch.arange(len(logits)) % 64
    chunks = as_chunks(make(logits), make(labels))
    for _ in range(2):
        assert [len(z) for z, _ in chunks] == [scores.PIECE // 64] * 3
        z, y = gathered(chunks)
        assert torch.equal(z, logits)
        assert torch.equal(y, labels)


def test_a_tensor_is_not_copied():
    logits = torch.zeros(5, 3)
    ((z, _),) = as_chunks(logits, torch.zeros(5))
    assert z.data_ptr() == logits.data_ptr()


def test_a_map_of_a_file_is_read_a_piece_at_a_time(tmp_path, monkeypatch):
    values = np.random.default_rng(0).standard_normal((1000, 7)).astype(np.float32)
    np.save(tmp_path / "logits.npy", values)
    mapped = np.load(tmp_path / "logits.npy", mmap_mode="r")
    monkeypatch.setattr(scores, "PIECE", 70)
    largest = []
    tensor = arrays.as_tensor
    monkeypatch.setattr(arrays, "as_tensor", lambda values: largest.append(values.size) or tensor(values))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # torch warns of memory that may not be written to
        z, _ = gathered(as_chunks(mapped, np.zeros(1000, np.int64)))
    assert torch.equal(z, torch.as_tensor(values))
    assert max(largest) == 70


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a[::-1],
        lambda a: np.asfortranarray(a),
        lambda a: a.astype(">f4"),
        lambda a: a.astype(np.longdouble),
        lambda a: a.astype(np.float16),
        lambda a: a.astype(np.int32),
    ],
)
def test_numpy_arrays_of_every_kind(change):
    values = change(np.arange(12, dtype=np.float32).reshape(4, 3))
    z, y = gathered(as_chunks(values, np.array([0, 1, 2, 0], dtype=np.uint16)))
    assert z.dtype in (torch.float32, torch.float64)
    assert z.tolist() == values.tolist()
    assert (y.dtype, y.tolist()) == (torch.int64, [0, 1, 2, 0])


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("make", [torch.as_tensor, np.asarray])
def test_leading_dimensions_are_rows_in_order(contiguous, make):
    values = np.arange(24.0).reshape(2, 3, 4)
    if not contiguous:
        values = np.ascontiguousarray(values.transpose(2, 1, 0)).transpose(2, 1, 0)
    labels = np.array([[0, 1, 2], [3, 0, 1]])
    z, y = gathered(as_chunks(make(values), make(labels)))
    assert z.tolist() == np.arange(24.0).reshape(6, 4).tolist()
    assert y.tolist() == [0, 1, 2, 3, 0, 1]


def test_ignored_rows_may_hold_anything_and_rows_are_still_counted():
    logits = torch.tensor([[math.nan, 1.0], [1.0, 2.0], [math.inf, 0.0], [3.0, math.nan]])
    labels = torch.tensor([-100, 1, -100, 0])
    with pytest.raises(ValueError, match="logits of example 3 are not all finite: nan for class 1"):
        list(as_chunks(logits, labels, ignore_index=-100))
    z, y = gathered(as_chunks(logits[:3], labels[:3], ignore_index=-100))
    assert (z.tolist(), y.tolist()) == ([[1, 2]], [1])


def test_an_ignored_label_of_small_unsigned_numbers():
    labels = torch.tensor([255, 1, 156], dtype=torch.uint8)
    _, y = gathered(as_chunks(torch.zeros(3, 200), labels, ignore_index=255))
    assert y.tolist() == [1, 156]
    _, y = gathered(as_chunks(torch.zeros(3, 256), labels, ignore_index=-100))
    assert y.tolist() == [255, 1, 156]


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (torch.zeros(3), torch.zeros(3), r"logits must be \(examples, classes\), .* not \(3,\)"),
        (torch.zeros(2, 3), torch.zeros(3), r"one label for each of the 2 examples, not \(3,\)"),
        (torch.zeros(2, 3, 4), torch.zeros(6), r"one label for each of the \(2, 3\) examples, not \(6,\)"),
        (torch.zeros(2, 3), None, "labels are missing"),
        (torch.zeros(2, 3, dtype=torch.bool), torch.zeros(2), "real numbers, not torch.bool"),
        (np.array([["a", "b"]]), np.array([0]), "logits must be real numbers, not <U1"),
        (torch.zeros(2, 3), torch.tensor([True, False]), "whole numbers, .* not torch.bool"),
        (torch.zeros(2, 3), np.array(["a", "b"]), "whole numbers, .* not <U1"),
        (torch.zeros(2, 3), torch.tensor([0.0, 0.5]), "but that of example 1 is 0.5"),
        (
            torch.zeros(2, 3),
            torch.tensor([0, -1]),
            "between 0 and 2 for 3 classes, but that of example 1 is -1",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(logits, labels, message):
    with pytest.raises(ValueError, match=message) as raised:
        list(as_chunks(logits, labels))
    assert "\n" not in str(raised.value)


def test_all_ignored_is_said():
    with pytest.raises(ValueError, match="there are no examples: all 2 labels are -1, which is ignored"):
        list(as_chunks(torch.zeros(2, 3), torch.tensor([-1, -1]), ignore_index=-1))


def test_a_stream_that_cannot_be_read_again_is_refused():
    once = iter([(torch.zeros(2, 3), torch.tensor([0, 1]))])
    chunks = as_chunks(lambda: once)
    assert len(list(chunks)) == 1
    with pytest.raises(
        ValueError, match="2 rows when the data was first read, and now there are 0; pass a function"
    ):
        list(chunks)


def test_what_a_stream_gives_is_checked_with_its_place_in_the_whole():
    good = torch.zeros(3, 2), torch.tensor([0, 1, 0])
    with pytest.raises(ValueError, match="that of example 4 is 7"):
        list(Chunks(lambda: [good, (torch.zeros(2, 2), torch.tensor([0, 7]))]))
    with pytest.raises(ValueError, match="row 3 has 4 classes, but the rows before have 2"):
        list(Chunks(lambda: [good, (torch.zeros(1, 4), torch.tensor([0]))]))
    with pytest.raises(ValueError, match=r"each piece must be .* not \(3, 2\) and \(1,\)"):
        list(Chunks(lambda: [(torch.zeros(3, 2), torch.tensor([0]))]))


def test_chunks_know_their_labels_already():
    chunks = as_chunks(torch.zeros(2, 3), torch.tensor([0, 1]))
    assert as_chunks(chunks) is chunks
    with pytest.raises(ValueError, match="reads its own labels"):
        as_chunks(chunks, torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="set when Chunks are made"):
        as_chunks(chunks, ignore_index=0)


def test_the_logarithms_of_probabilities():
    p = torch.tensor([[0.25, 0.75], [1.0, 0.0]], dtype=torch.float64)
    found = logits_from_probabilities(p)
    assert found[0].tolist() == pytest.approx([math.log(0.25), math.log(0.75)])
    assert found[1].tolist() == pytest.approx([0, math.log(5e-324)], rel=1e-3)
    assert torch.allclose(found.softmax(1), p)
    assert logits_from_probabilities(p.numpy().reshape(2, 1, 2)).shape == (2, 1, 2)


@pytest.mark.parametrize(
    ("dtype", "lowest"),
    [(torch.float16, 2.0**-24), (torch.bfloat16, 2.0**-133), (torch.float32, 2.0**-149)],
)
def test_zero_is_the_smallest_number_of_its_precision(dtype, lowest):
    found = logits_from_probabilities(torch.tensor([[1.0, 0.0]], dtype=dtype))
    assert found.dtype == torch.float32
    assert float(found[0, 1]) == pytest.approx(math.log(lowest))
    assert float(torch.tensor(lowest, dtype=dtype)) == lowest > 0


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([[0.5, 0.4]], "those of example 0 add up to 0.9; divide by the sum"),
        ([[1.5, -0.5]], "example 0 has -0.5 to 1.5; pass softmax"),
        ([[math.nan, 1.0]], "probabilities of example 0 are not all finite"),
    ],
)
def test_what_are_no_probabilities_is_refused(p, message):
    with pytest.raises(ValueError, match=message):
        logits_from_probabilities(torch.tensor(p))
    stream = Chunks(lambda: [(torch.tensor(p), torch.tensor([0]))], from_logits=False)
    with pytest.raises(ValueError, match=message):
        list(stream)


def test_folds_are_of_about_the_same_size_and_change_with_the_seed():
    first, second = fold_of(0, 50_000, 5), fold_of(0, 50_000, 5, seed=1)
    counts = torch.bincount(first)
    assert len(counts) == 5
    assert float((counts - 10_000).abs().max()) < 5 * math.sqrt(50_000 * 0.2 * 0.8)
    # Neighbours, and the same row with another seed, are in the same fold one time in five.
    for other in (first[1:], second[:-1]):
        assert abs(float((first[:-1] == other).double().mean()) - 0.2) < 0.01


@pytest.mark.parametrize("seed", [0, 7, -1])
def test_a_fold_is_the_hash_in_plain_integers(seed):
    def mixed(x):
        x = (x + 0x9E3779B97F4A7C15) % 2**64
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    expected = [mixed((row + mixed(seed % 2**64)) % 2**64) % 5 for row in range(100, 150)]
    assert fold_of(100, 50, 5, seed).tolist() == expected


@settings(max_examples=30, deadline=None)
@given(folds=st.integers(2, 5), seed=st.integers(-5, 5), cut=st.integers(0, 60))
def test_every_row_is_held_out_once_wherever_the_stream_is_cut(folds, seed, cut):
    logits = torch.arange(120.0).reshape(60, 2)
    labels = torch.arange(60) % 2
    whole = as_chunks(logits, labels)
    cut_up = Chunks(lambda: [(logits[:cut], labels[:cut]), (logits[cut:], labels[cut:])])
    seen = []
    for fold in range(folds):
        z, _ = gathered(in_fold(whole, fold, folds, seed, held_out=True))
        others, _ = gathered(in_fold(cut_up, fold, folds, seed, held_out=False))
        assert not set(z[:, 0].tolist()) & set(others[:, 0].tolist())
        assert len(z) + len(others) == 60
        seen += z[:, 0].tolist()
    assert sorted(seen) == logits[:, 0].tolist()
