from __future__ import annotations

import pytest
import torch

from softtargets.calibration.confidence_cells import bin_edges, bin_of_cell, cell_edges


@pytest.mark.parametrize("bins", [1, 2, 7, 15, 100])
def test_cells_are_nested_in_bins_narrow_and_few(bins):
    edges = cell_edges(bins)
    assert set(bin_edges(bins)[1:].tolist()) <= set(edges.tolist())
    ends = torch.cat([torch.zeros(1, dtype=torch.float64), edges])
    assert (ends.diff() > 0).all()
    assert ends.diff().max() <= 1 / 4096
    assert edges[-1] == 1
    assert len(edges) < 5500 + bins
    for cell, which in enumerate(bin_of_cell(bins).tolist()):
        start = ends[cell].item()
        assert which / bins <= start
        assert which == bins - 1 or start < (which + 1) / bins


def test_confidences_close_to_one_are_told_apart():
    close = 1 - torch.logspace(-3, -7, 9, dtype=torch.float64)
    assert len(torch.bucketize(close, cell_edges(15), right=True).unique()) == 9
    assert torch.bucketize(torch.tensor([1.0]).double(), cell_edges(15), right=True) == len(cell_edges(15))


@pytest.mark.parametrize("bins", [0, -1, 1.5, True])
def test_a_number_of_bins_must_be_one(bins):
    with pytest.raises(ValueError, match="bins must be at least 1, not"):
        bin_edges(bins)
