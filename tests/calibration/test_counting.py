from __future__ import annotations

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from calibration import exact
from softtargets.calibration import CalibrationSums, counting
from softtargets.calibration import scores as pieces
from softtargets.calibration.counting import edges_of, large_entries


def by_topk(p, bins):
    values, classes = p.topk(min(bins, p.shape[1]), dim=1)
    return classes.flatten(), values.flatten()


def summed(logits, labels, **options):
    return CalibrationSums.of(logits, labels, from_logits=True, **options)


@pytest.mark.parametrize("truth", [0.1, 1.0])
def test_both_ways_of_finding_large_entries_agree(truth, monkeypatch):
    logits, y = exact.sampled(classes=30, scale=1 + truth, truth=truth)
    expected = summed(logits, y)
    monkeypatch.setattr(counting, "large_entries", by_topk)
    for name, tensor in summed(logits, y).tensors().items():
        torch.testing.assert_close(tensor, expected.tensors()[name], rtol=1e-12, atol=1e-12)


@settings(max_examples=40, deadline=None)
@drawn(
    classes=st.integers(1, 40),
    bins=st.integers(2, 50),
    scale=st.floats(0, 6),
    single=st.booleans(),
    seed=st.integers(0, 99),
)
def test_no_entry_beyond_the_first_bin_is_missed(classes, bins, scale, single, seed):
    logits, _ = exact.sampled(count=20, classes=classes, scale=scale, seed=seed)
    p = logits.softmax(1).to(torch.float32 if single else torch.float64)
    found = sorted(zip(*(part.tolist() for part in large_entries(p, bins)), strict=True))
    expected = sorted((k, v) for row in p.tolist() for k, v in enumerate(row) if v >= 1 / bins)
    assert set(expected) <= set(found)
    assert [(k, v) for k, v in found if v >= 1 / bins] == expected
    assert all(v >= 0.999999 / bins * (1 - 1e-7) for _, v in found)


@pytest.mark.parametrize("bins", [3, 7, 10, 15, 49])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_entries_one_step_from_the_edge_are_in_the_bin_where_they_belong(bins, dtype):
    edge = torch.tensor(1 / bins, dtype=dtype)
    steps = [torch.nextafter(edge, edge - 1), edge, torch.nextafter(edge, edge + 1)]
    p = torch.stack([torch.stack([value, 1 - value]) for value in steps])
    found = CalibrationSums.of(p, torch.zeros(3), from_logits=False, bins=bins)
    expected = torch.zeros(2, bins, dtype=torch.int64)
    for row in p.tolist():
        for k, value in enumerate(row):
            expected[k, exact.bin_of(value, bins)] += 1
    assert torch.equal(found.class_counts, expected)


@pytest.mark.parametrize("at_once", [1, 30, 1000])
def test_counts_do_not_depend_on_how_many_rows_are_counted_at_once(at_once, monkeypatch):
    logits, y = exact.sampled(count=100)
    expected = summed(logits, y)
    monkeypatch.setattr(pieces, "PIECE", 5 * 11)
    monkeypatch.setattr(counting, "AT_ONCE", at_once)
    for name, tensor in summed(logits, y).tensors().items():
        torch.testing.assert_close(tensor, expected.tensors()[name], rtol=1e-12, atol=1e-12)


def test_edges_are_made_once():
    cpu = torch.device("cpu")
    assert edges_of(15, cpu) is edges_of(15, cpu)
    assert len(edges_of(15, cpu)[0]) == 14
    assert len(edges_of(15, cpu)[1]) + 1 == len(CalibrationSums.empty(2).cell_counts)
