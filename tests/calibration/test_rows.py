from __future__ import annotations

import math

import pytest
import torch

from calibration import exact
from softtargets.calibration import scores as pieces
from softtargets.calibration.rows import RowStatistics, rows_of, softmax
from softtargets.calibration.scores import as_scores


@pytest.mark.parametrize(("dtype", "within"), [(torch.float32, 3e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("scale", [0.1, 3.0, 20.0])
def test_probabilities_against_double_precision(dtype, within, scale):
    logits, _ = exact.sampled(count=50, classes=40, scale=scale, dtype=dtype)
    p, top, highest = softmax(logits, torch.empty_like(logits))
    expected = torch.tensor([exact.softmax(row) for row in logits.tolist()], dtype=torch.float64)
    seen = expected > 1e-30  # below, single precision has fewer digits
    torch.testing.assert_close(p.double()[seen], expected[seen], rtol=within * max(1, scale), atol=0)
    assert torch.equal(top, p.amax(1))
    assert torch.equal(highest, logits.amax(1))


def test_probabilities_of_huge_and_far_apart_logits():
    logits = torch.tensor([[3e38, -3e38, 3e38], [-3e38, -3e38, -3e38], [200.0, 0.0, -200.0]])
    p, top, _ = softmax(logits, torch.empty_like(logits))
    assert p.tolist() == [[0.5, 0, 0.5], [pytest.approx(1 / 3)] * 3, [1, 0, 0]]
    assert top.tolist() == [0.5, pytest.approx(1 / 3), 1]


def test_a_label_far_below_has_a_likelihood_all_the_same():
    (rows,) = rows_of(as_scores(torch.tensor([[200.0, 0.0]]), torch.tensor([1]), from_logits=True))
    assert (rows.nll.tolist(), rows.brier.tolist()) == ([200.0], [2.0])


def test_between_two_huge_logits_it_is_a_toss():
    logits = torch.tensor([[3.3e38, 3.3e38], [-3.3e38, -3.3e38]])
    given = as_scores(logits, torch.tensor([1, 0]), from_logits=True)
    (rows,) = rows_of(given)
    assert rows.nll.tolist() == [pytest.approx(math.log(2))] * 2


def test_rows_are_joined_in_their_order(monkeypatch):
    logits, y = exact.sampled(count=50, dtype=torch.float32)
    (whole,) = rows_of(as_scores(logits, y, from_logits=True))
    monkeypatch.setattr(pieces, "PIECE", 5 * 8)
    parts = list(rows_of(as_scores(logits, y, from_logits=True)))
    assert len(parts) == 7
    joined = RowStatistics.joined(parts)
    assert torch.equal(joined.labels, y)
    for name in ("confidence", "nll", "brier", "rank"):
        torch.testing.assert_close(getattr(joined, name), getattr(whole, name), rtol=1e-6, atol=1e-6)
    assert joined.nll.dtype == joined.brier.dtype == joined.confidence.dtype == torch.float64


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_when_all_rows_have_been_seen(bad, monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 5 * 8)
    logits, y = exact.sampled(count=50)
    logits[9, 3] = bad
    rows = rows_of(as_scores(logits, y, from_logits=True))
    with pytest.raises(ValueError, match=f"logits of example 9 are not all finite: {bad} for class 3"):
        list(rows)
