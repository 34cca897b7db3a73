from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from calibration import exact
from softtargets.calibration import scores as pieces
from softtargets.calibration.rows import RowStatistics, rank_of, rows_of, softmax
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


def ranks(scores, labels, *, from_logits):
    seen = as_scores(scores, torch.as_tensor(labels), from_logits=from_logits)
    return torch.cat([rows.rank for rows in rows_of(seen)]).tolist()


def by_loops(scores, labels):
    return [exact.rank(row, int(label)) for row, label in zip(scores.tolist(), labels, strict=True)]


@settings(max_examples=60, deadline=None)
@drawn(
    classes=st.integers(1, 30),
    levels=st.integers(1, 6),
    scale=st.floats(0.05, 8),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([torch.float16, torch.bfloat16, torch.float32, torch.float64]),
)
def test_ranks_of_scores_with_many_ties_against_loops(classes, levels, scale, seed, dtype):
    generator = torch.Generator().manual_seed(seed)
    scores = (scale * torch.randint(levels, (40, classes), generator=generator)).to(dtype)
    labels = torch.randint(classes, (40,), generator=generator)
    assert ranks(scores, labels, from_logits=True) == by_loops(scores, labels)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("rest", [-30.0, -90.0, -1000.0])
def test_two_classes_may_share_everything(rest, dtype):
    # Both have exactly one half: neither is more than all others together.
    logits = torch.full((2, 9), rest, dtype=dtype)
    logits[:, [3, 7]] = 5.0
    assert ranks(logits, [3, 7], from_logits=True) == [0, 1]


@pytest.mark.parametrize(("dtype", "share"), [
    (torch.bfloat16, 0.5078125), (torch.float16, 0.50146484375), (torch.float32, 0.50004), (torch.float64, 0.5000004),
])  # fmt: skip
def test_probabilities_that_add_up_to_a_little_more_than_one_may_tie_above_one_half(dtype, share):
    p = torch.tensor([[share, share]] * 2, dtype=dtype)
    assert float(p[0, 0]) > 0.5
    assert ranks(p, [0, 1], from_logits=False) == [0, 1]


@pytest.mark.parametrize("from_logits", [True, False])
def test_half_a_step_apart_is_not_a_tie(from_logits):
    above = torch.nextafter(torch.tensor(0.5), torch.tensor(1.0))
    scores = torch.stack([torch.tensor(0.5), above]).expand(2, 2)
    assert ranks(scores, [0, 1], from_logits=from_logits) == [1, 0]


def test_nothing_is_counted_where_the_label_has_more_than_one_half():
    # Scores that contradict the probability show who was looked at.
    scores = torch.tensor([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    label = torch.zeros(3, 1, dtype=torch.int64)
    at_label = torch.tensor([0.6, 0.5, 0.5009])
    found = rank_of(scores, label, scores[:, :1], at_label, 1e-3, torch.empty_like(scores))
    assert found.tolist() == [0, 1, 1]


def test_ranks_of_scores_that_do_not_lie_one_after_the_other():
    logits, y = exact.sampled(count=60, classes=12, scale=0.5)
    turned = logits.t().contiguous().t()
    assert not turned.is_contiguous()
    assert ranks(turned, y, from_logits=True) == by_loops(logits, y)
    wide = torch.zeros(60, 24, dtype=torch.float64)
    wide[:, ::2] = logits
    assert ranks(wide[:, ::2], y, from_logits=True) == by_loops(logits, y)
