"""Adding rows to sums: pieces are looked at in threads, and what they come to is counted many rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softtargets.calibration.confidence_cells import bin_edges, cell_edges
from softtargets.calibration.rows import RowStatistics, look_at, settle
from softtargets.calibration.scores import Scores
from softtargets.calibration.workspace import Workspace, ahead, one_thread

if TYPE_CHECKING:
    from softtargets.calibration.sums import CalibrationSums

AT_ONCE = 2**14  # rows: of fewer, starting an operation costs more than the operation


class PieceSums(NamedTuple):
    """What is remembered of a piece: nothing of its size."""

    rows: RowStatistics
    columns: Tensor  # sums of probabilities by class
    classes: Tensor  # of entries beyond the first bin
    entries: Tensor
    doubt: Tensor


def sum_up(scores: Scores, sums: CalibrationSums, workspace: Workspace) -> CalibrationSums:
    """Add rows to empty sums on their device; return them, or raise what is wrong with the scores."""

    def look(start: int) -> PieceSums:
        piece = scores.piece(start)
        with workspace.lend(piece[0]) as (room, scratch):
            rows, p, doubt = look_at(piece, scores, room, scratch)
            return PieceSums(rows, p.sum(0), *large_entries(p, sums.bins), doubt)

    with one_thread() as threads:
        counting = _Counting(sums)
        helpers = min(threads, len(scores.starts)) if sums.device.type == "cpu" else 1
        pieces: Iterator[PieceSums] = map(look, scores.starts)
        if helpers > 1:
            pieces = ahead(look, scores.starts, workspace.helpers(helpers), 2 * helpers)
        for found in pieces:
            counting.add(found)
        counting.finish(scores)
    return sums


class _Counting:
    """Sums, and what waits to be added to them. Nothing here waits for a device before the end."""

    def __init__(self, sums: CalibrationSums) -> None:
        self.sums = sums
        self.edges, self.cells = edges_of(sums.bins, sums.device)
        self.columns = torch.zeros(sums.classes, dtype=torch.float64, device=sums.device)
        self.waiting: list[PieceSums] = []
        self.rows = 0
        self.doubts: list[Tensor] = []

    def add(self, found: PieceSums) -> None:
        self.waiting.append(found)
        self.doubts.append(found.doubt)
        self.rows += len(found.rows.labels)
        if self.rows >= AT_ONCE:
            self._flush()

    def finish(self, scores: Scores) -> None:
        self._flush()
        settle(self.doubts, scores)
        # The first bin of each class holds whatever is in no other.
        counts, probability = self.sums.class_counts, self.sums.class_probability
        counts[:, 0] = scores.examples - counts[:, 1:].sum(1)
        # Rounding may leave less than nothing where every probability lies in another bin.
        rest = (self.columns - probability[:, 1:].sum(1)).clamp_(min=0)
        probability[:, 0] = torch.where(counts[:, 0] > 0, rest, torch.zeros_like(rest))

    def _flush(self) -> None:
        if self.waiting:
            rows, columns, classes, entries, _ = zip(*self.waiting, strict=True)
            self._count_rows(RowStatistics.joined(rows))
            self._count_entries(torch.cat(classes), torch.cat(entries).double())
            self.columns.add_(torch.stack(columns).sum(0, dtype=torch.float64))
        self.waiting, self.rows = [], 0

    def _count_rows(self, rows: RowStatistics) -> None:
        sums = self.sums
        one = torch.ones_like(rows.labels)
        confidence, nll, brier = rows.confidence, rows.nll, rows.brier
        cell = torch.bucketize(confidence, self.cells, right=True)
        sums.cell_counts.index_add_(0, cell, one)
        sums.cell_confidence.index_add_(0, cell, confidence)
        sums.cell_correct.index_add_(0, cell, (rows.rank == 0).long())
        ranks = len(sums.ranks)
        sums.ranks.index_add_(0, rows.rank.clamp(max=ranks - 1), (rows.rank < ranks).long())
        sums.moments.add_(torch.stack([nll.sum(), nll.square().sum(), brier.sum(), brier.square().sum()]))
        place = self._places(rows.labels, rows.at_label.double())
        sums.class_positives.view(-1).index_add_(0, place, one)

    def _count_entries(self, classes: Tensor, p: Tensor) -> None:
        place = self._places(classes, p)
        self.sums.class_counts.view(-1).index_add_(0, place, torch.ones_like(place))
        self.sums.class_probability.view(-1).index_add_(0, place, p)

    def _places(self, classes: Tensor, p: Tensor) -> Tensor:
        return classes * self.sums.bins + torch.bucketize(p, self.edges, right=True)


@lru_cache(maxsize=16)
def edges_of(bins: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The edges between bins and those between cells, made once: nobody may change them."""
    with torch.inference_mode(False):  # they outlive whatever mode the first caller is in
        return bin_edges(bins)[1:-1].to(device), cell_edges(bins).to(device)


def large_entries(p: Tensor, bins: int) -> tuple[Tensor, Tensor]:
    """Classes and values of all probabilities (n, K) beyond the first bin, perhaps with a few that are in it.

    An example has at most `bins` of them, since they add up to 1.
    """
    if p.device.type != "cpu":  # to search would wait for the device
        values, classes = p.topk(min(bins, p.shape[1]), dim=1)
        return classes.flatten(), values.flatten()
    # A little below the edge, which single precision may not hold; what then lies in the first bin does not matter.
    edge = (1 - 1e-6) / bins
    # Where few are true, numpy finds them many times faster than torch.
    numbers = p.numpy()
    row, column = np.divmod(np.flatnonzero(numbers >= edge), p.shape[1])
    return torch.from_numpy(column), torch.from_numpy(numbers[row, column])
