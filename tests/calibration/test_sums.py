from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration import exact
from softtargets.calibration import CalibrationSums, calibration_of, sums
from softtargets.calibration import scores as pieces
from softtargets.calibration.rows import rows_of


def assert_same(a, b, tolerance=1e-9):
    for name, tensor in a.tensors().items():
        torch.testing.assert_close(tensor, b.tensors()[name], rtol=tolerance, atol=tolerance)


@pytest.fixture
def with_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def summed(logits, labels, **options):
    return CalibrationSums.of(logits, labels, from_logits=True, **options)


@pytest.mark.parametrize("bins", [1, 2, 15])
@pytest.mark.parametrize("classes", [1, 2, 7])
def test_sums_against_loops(classes, bins):
    logits, y = exact.sampled(count=60, classes=classes)
    p = torch.tensor([exact.softmax(row) for row in logits.tolist()], dtype=torch.float64)
    found = summed(logits, y, bins=bins)
    counts = torch.zeros(classes, bins)
    probability, positives = torch.zeros(classes, bins, dtype=torch.float64), torch.zeros(classes, bins)
    for row, label in zip(p.tolist(), y.tolist(), strict=True):
        for k, value in enumerate(row):
            counts[k, exact.bin_of(value, bins)] += 1
            probability[k, exact.bin_of(value, bins)] += value
            positives[k, exact.bin_of(value, bins)] += k == label
    assert torch.equal(found.class_counts, counts.long())
    assert torch.equal(found.class_positives, positives.long())
    torch.testing.assert_close(found.class_probability, probability, atol=1e-12, rtol=1e-12)
    ranks = [exact.rank(row, label) for row, label in zip(logits.tolist(), y.tolist(), strict=True)]
    assert found.ranks.tolist() == [ranks.count(r) for r in range(5)]
    assert found.examples == 60
    assert int(found.cell_correct.sum()) == ranks.count(0)
    assert float(found.cell_confidence.sum()) == pytest.approx(p.amax(1).sum().item(), rel=1e-12)
    assert float(found.moments[0]) == pytest.approx(60 * exact.nll(logits, y), rel=1e-12)
    assert float(found.moments[2]) == pytest.approx(60 * exact.brier(p, y), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(1, 49), rows=st.integers(1, 60), seed=st.integers(0, 99))
def test_the_stream_may_be_split_anywhere(cut, rows, seed):
    logits, y = exact.sampled(count=50, classes=4, seed=seed)
    whole = summed(logits, y)
    first, second = summed(logits[:cut], y[:cut]), summed(logits[cut:], y[cut:])
    before = copy.deepcopy(first)
    assert_same(first + second, whole)
    assert_same(first, before)
    assert_same(second.add(logits[:cut], y[:cut], from_logits=True), whole)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "PIECE", 4 * rows)
        assert_same(summed(logits, y), whole)


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_threads_share_the_rows_and_leave_no_trace_in_the_sums(threads, monkeypatch, with_threads):
    monkeypatch.setattr(pieces, "PIECE", 4 * 8)
    logits, y = exact.sampled(count=100, classes=4)
    with_threads(1)
    alone = summed(logits, y)
    with_threads(threads)
    assert_same(summed(logits, y), alone, 0)
    assert torch.get_num_threads() == threads
    logits[97, 2] = torch.nan
    with pytest.raises(ValueError, match="logits of example 97 are not all finite: nan for class 2"):
        summed(logits, y)
    assert torch.get_num_threads() == threads


def test_adding_a_constant_to_logits_changes_nothing():
    logits, y = exact.sampled()
    shifted = logits + torch.linspace(-50, 50, len(y), dtype=torch.float64)[:, None]
    found, expected = calibration_of(summed(shifted, y)), calibration_of(summed(logits, y))
    assert found.scalars() == pytest.approx(expected.scalars(), abs=1e-9)


def test_logits_and_their_probabilities_are_counted_alike():
    logits, y = exact.sampled(count=500, dtype=torch.float32)
    of_probabilities = CalibrationSums.of(logits.softmax(-1), y, from_logits=False)
    assert_same(summed(logits, y), of_probabilities, 1e-5)
    assert torch.equal(summed(logits, y).cell_counts, of_probabilities.cell_counts)


@pytest.mark.parametrize("junk", [torch.nan, torch.inf, 0.0])
def test_ignored_rows_may_hold_anything_and_are_not_counted(junk, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 5 * 7)
    logits, y = exact.sampled()
    padded, marked = logits.clone(), y.clone()
    ignored = torch.arange(len(y)) % 3 == 0
    padded[ignored], marked[ignored] = junk, -100
    found = summed(padded.view(10, 20, 5), marked.view(10, 20), ignore_index=-100)
    assert_same(found, summed(logits[~ignored], y[~ignored]))
    # A class may itself be the padding, as in vocabularies.
    assert_same(summed(logits, y, ignore_index=2), summed(logits[y != 2], y[y != 2]))
    nothing = summed(logits, torch.full_like(y, -1), ignore_index=-1)
    assert nothing.examples == 0
    with pytest.raises(ValueError, match="nothing to measure"):
        calibration_of(nothing)


def test_refused_rows_are_named_by_their_place_among_all(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 5 * 7)
    logits, y = exact.sampled(count=50)
    y[:10] = -1
    logits[33, 4] = -torch.inf
    sums = summed(*exact.sampled())
    before = copy.deepcopy(sums)
    with pytest.raises(ValueError, match="logits of example 33 are not all finite: -inf for class 4"):
        sums.add(logits, y, from_logits=True, ignore_index=-1)
    with pytest.raises(
        ValueError, match="labels must lie between 0 and 4 for 5 classes, but that of example 0 is -1"
    ):
        sums.add(logits, y, from_logits=True)
    with pytest.raises(ValueError, match="a column for each of the 5 classes, not 3"):
        sums.add(logits[:, :3], torch.zeros_like(y), from_logits=True)
    assert_same(sums, before, 0)


def test_huge_logits_are_numbers_all_the_same():
    found = summed(torch.tensor([[3e38, 3e38], [3e38, -3e38]]), torch.tensor([0, 0]))
    assert found.ranks.tolist()[:2] == [2, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_widened_and_its_ties_are_counted(dtype):
    logits, y = exact.sampled(count=400, classes=20, dtype=dtype)
    assert_same(summed(logits, y), summed(logits.float(), y))
    expected = [
        exact.rank(row, label) for row, label in zip(logits.float().tolist(), y.tolist(), strict=True)
    ]
    assert summed(logits, y).ranks.tolist() == [expected.count(r) for r in range(5)]


def test_a_memory_map_is_read_where_it_lies(tmp_path, recwarn):
    logits, y = exact.sampled(dtype=torch.float32)
    np.save(tmp_path / "logits.npy", logits.numpy())
    np.save(tmp_path / "labels.npy", y.numpy().astype(np.uint16))
    read = np.load(tmp_path / "logits.npy", mmap_mode="r"), np.load(tmp_path / "labels.npy", mmap_mode="r")
    assert pieces.as_scores(*read, from_logits=True).piece(0)[0].data_ptr() == read[0].ctypes.data
    assert_same(summed(*read), summed(logits, y))
    assert_same(summed(logits.numpy().astype(">f4"), y.numpy()[::-1]), summed(logits, y.flip(0)))
    assert not recwarn.list


def test_gradients_are_left_alone():
    logits, y = exact.sampled()
    logits.requires_grad_()
    assert not summed(logits, y).moments.requires_grad


def test_many_entries_on_the_edge_of_the_first_bin_are_counted():
    p = torch.full((3, 15), 1 / 15, dtype=torch.float64)
    found = CalibrationSums.of(p, torch.tensor([0, 1, 2]), from_logits=False)
    assert found.class_counts[:, 1].tolist() == [3] * 15
    single = CalibrationSums.of(p.float(), torch.tensor([0, 1, 2]), from_logits=False)
    expected = exact.bin_of(p.float()[0, 0].item(), 15)
    assert single.class_counts[:, expected].tolist() == [3] * 15


def test_the_size_does_not_depend_on_the_number_of_examples():
    small, large = (summed(*exact.sampled(count=n)).tensors() for n in (10, 5000))
    assert {k: v.shape for k, v in small.items()} == {k: v.shape for k, v in large.items()}
    assert sum(v.numel() for v in large.values()) < 20_000


def test_sums_of_different_kinds_are_not_added():
    with pytest.raises(ValueError, match="not 3 classes in 15 bins and 3 classes in 10 bins"):
        CalibrationSums.empty(3) + CalibrationSums.empty(3, bins=10)
    with pytest.raises(ValueError, match="classes must be at least 1, not 0"):
        CalibrationSums.empty(0)
    with pytest.raises(ValueError, match=r"bins must be at least 1, not 2\.5"):
        CalibrationSums.empty(3, bins=2.5)


def test_pieces_cover_every_row_once(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 5 * 7)
    logits, y = exact.sampled(count=50)
    seen = pieces.as_scores(logits, y, from_logits=True)
    assert torch.equal(torch.cat([rows.labels for rows in rows_of(seen)]), y)
    assert torch.equal(torch.cat([seen.piece(start)[0] for start in seen.starts]), logits)
    assert list(seen.starts) == [0, 7, 14, 21, 28, 35, 42, 49]


def test_classes_are_added_up_some_at_a_time(monkeypatch):
    """What follows from the sums of a million classes is not computed for all of them at once."""
    generator = torch.Generator().manual_seed(0)
    found = CalibrationSums.of(
        torch.randn(50, 7, generator=generator), torch.arange(50) % 7, from_logits=True
    )
    whole = (sums.classwise_error(found), sums.decompose(found))
    monkeypatch.setattr(sums, "CLASSES_AT_ONCE", 2)
    assert [len(counts) for counts, _, _ in found.by_class()] == [2, 2, 2, 1]
    assert sums.classwise_error(found) == pytest.approx(whole[0], rel=1e-12)
    assert vars(sums.decompose(found)) == pytest.approx(vars(whole[1]), rel=1e-12)
