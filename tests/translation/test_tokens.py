"""Token predictions against plain loops in double precision; padding and batches must not matter."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from softtargets.calibration import measure_calibration
from softtargets.exceptions import SofttargetsError
from softtargets.translation import TokenCollector, TokenPredictions
from softtargets.translation import rows as rows_module

V = 23


@pytest.fixture(scope="module")
def sentences():
    generator = torch.Generator().manual_seed(11)
    lengths = [3, 7, 1, 5, 0, 9]
    logits = [5 * torch.randn(n, V, generator=generator) for n in lengths]
    labels = [
        torch.distributions.Categorical(logits=z / 2).sample() if len(z) else z.new_zeros(0).long()
        for z in logits
    ]
    return logits, labels


def padded(sentences, chosen, longest, noise):
    logits, labels = sentences
    z = noise * torch.ones(len(chosen), longest, V)
    y = torch.full((len(chosen), longest), -100)
    for row, place in enumerate(chosen):
        n = len(labels[place])
        z[row, :n], y[row, :n] = logits[place], labels[place]
    return z, y


def collected(sentences, batches, longest=9, noise=0.0):
    collector = TokenCollector()
    for chosen in batches:
        collector.add(*padded(sentences, chosen, longest, noise))
    return collector.finish()


def test_every_measure_by_loops(sentences):
    found = collected(sentences, [[0, 1, 2], [3, 4, 5]])
    nll, hits, bins, n = 0.0, 0, [[0.0, 0] for _ in range(15)], 0
    sums = []
    for z, y in zip(*sentences, strict=True):
        here = 0.0
        for row, label in zip(z.double().tolist(), y.tolist(), strict=True):
            total = math.fsum(map(math.exp, row))
            p = [math.exp(x) / total for x in row]
            here -= math.log(p[label])
            hit = row.index(max(row)) == label
            hits, n = hits + hit, n + 1
            bins[min(int(max(p) * 15), 14)][0] += max(p) - hit
        sums.append(here)
        nll += here
    assert len(found) == n == 25
    assert found.lengths.tolist() == [3, 7, 1, 5, 0, 9]
    assert found.accuracy == hits / n
    assert found.nll == pytest.approx(nll / n, abs=1e-3)  # of the codes
    assert found.perplexity == pytest.approx(math.exp(nll / n), rel=1e-3)
    assert found.ece() == pytest.approx(sum(abs(gap) for gap, _ in bins) / n, abs=1e-4)
    by = found.by_sentence()
    assert by["nll"].tolist() == pytest.approx(sums, abs=5e-3)
    assert by["tokens"].tolist() == found.lengths.tolist()
    assert by["right"].sum() == hits


def test_the_ece_is_that_of_the_calibration_room(sentences):
    logits, labels = padded(sentences, range(6), 9, 0.0)
    other = measure_calibration(logits, labels, from_logits=True, ignore_index=-100, level=None)
    found = collected(sentences, [range(6)])
    assert found.ece() == pytest.approx(other.expected_calibration_error, abs=1e-4)
    assert found.ece(5) != found.ece(15)
    assert found.reliability().counts.sum() == 25


@pytest.mark.parametrize("noise", [0.0, 50.0, math.nan, -math.inf])
@pytest.mark.parametrize(
    "batches", [[[0, 1, 2, 3, 4, 5]], [[0], [1], [2], [3], [4], [5]], [[0, 1], [2, 3, 4, 5]]]
)
def test_padding_and_batches_change_nothing_at_all(sentences, batches, noise):
    first = collected(sentences, [[0, 1, 2], [3, 4, 5]])
    for longest in (9, 30):
        found = collected(sentences, batches, longest, noise)
        for name in ("labels", "predicted", "codes", "lengths"):
            assert np.array_equal(getattr(found, name), getattr(first, name)), name
        assert found.ece() == first.ece()


def test_another_order_is_undone(sentences):
    order = [4, 2, 5, 0, 1, 3]
    found = collected(sentences, [order[:3], order[3:]]).part(np.argsort(order))
    first = collected(sentences, [range(6)])
    assert np.array_equal(found.codes, first.codes)
    assert np.array_equal(found.lengths, first.lengths)
    some = first.part(np.array([3, 1]))
    assert some.labels.tolist() == [*sentences[1][3].tolist(), *sentences[1][1].tolist()]


def test_penultimate_states_and_a_head_a_few_rows_at_a_time(sentences, monkeypatch):
    torch.manual_seed(0)
    head = nn.Linear(6, V)
    states, labels = torch.randn(4, 5, 6), torch.randint(V, (4, 5))
    whole = TokenCollector()
    whole.add(head(states), labels)
    seen = []
    monkeypatch.setattr(rows_module, "AT_ONCE", 3 * V)
    parts = TokenCollector()
    head.register_forward_hook(lambda module, given, out: seen.append(tuple(out.shape)))
    parts.add(states, labels, head)
    assert max(shape[0] for shape in seen) == 3
    a, b = whole.finish(), parts.finish()
    assert np.array_equal(a.predicted, b.predicted)
    assert np.abs(a.codes.astype(int) - b.codes).max() <= 1
    anything = TokenCollector()
    anything.add(states, labels, lambda x: head(x))
    assert np.array_equal(anything.finish().predicted, a.predicted)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions(sentences, dtype):
    logits, labels = padded(sentences, range(6), 9, 0.0)
    collector = TokenCollector()
    collector.add(logits.to(dtype), labels)
    exact = TokenCollector()
    exact.add(logits.to(dtype).double(), labels)
    a, b = collector.finish(), exact.finish()
    assert np.abs(a.codes.astype(int) - b.codes).max() <= 1


def test_certainty_keeps_its_distance_from_one():
    collector = TokenCollector()
    collector.add(torch.tensor([[[60.0, 0.0], [0.0, 60.0]]]), torch.tensor([[0, 0]]))
    found = collector.finish()
    assert found.costs[0] == pytest.approx(math.exp(-60), rel=0.02)
    assert found.costs[1] == pytest.approx(60, rel=1e-3)


def test_large_vocabularies_and_files():
    collector = TokenCollector()
    logits = torch.zeros(1, 2, 70_000)
    logits[0, 0, 69_999] = 30
    collector.add(logits, torch.tensor([[69_999, 5]]))
    found = collector.finish()
    assert found.labels.dtype == np.uint32
    assert found.predicted[0] == 69_999
    again = TokenPredictions.from_bytes(found.to_bytes())
    assert found.to_bytes() == again.to_bytes()
    assert again.nll == found.nll


def test_damaged_files_are_refused(tmp_path, sentences):
    content = collected(sentences, [range(6)]).to_bytes()
    for bad in (b"", b"nothing", content[:-30]):
        with pytest.raises(SofttargetsError, match="has no token predictions"):
            TokenPredictions.from_bytes(bad)
    path = tmp_path / "a.npz"
    np.savez(
        path,
        labels=np.zeros(3, np.uint16),
        predicted=np.zeros(3, np.uint16),
        codes=np.zeros((2, 3), np.uint16),
        lengths=np.array([1, 1]),
    )
    with pytest.raises(SofttargetsError, match="add up to"):
        TokenPredictions.load(path)
    path.write_bytes(content)
    assert len(TokenPredictions.load(path)) == 25
    with pytest.raises(SofttargetsError, match="missing"):
        TokenPredictions.load(tmp_path / "missing.npz")


def test_refusals():
    with pytest.raises(ValueError, match="no tokens"):
        TokenCollector().finish()
    with pytest.raises(ValueError, match=r"not \(2, 3, 4\) and \(2, 4\)"):
        TokenCollector().add(torch.zeros(2, 3, 4), torch.zeros(2, 4, dtype=torch.int64))
    only = TokenCollector()
    only.add(torch.zeros(1, 2, 3), torch.full((1, 2), -100))
    found = only.finish()
    assert len(found) == 0
    with pytest.raises(ValueError, match="no tokens to measure"):
        found.ece()


@pytest.mark.cuda
def test_a_gpu_is_never_waited_for(sentences):
    logits, labels = padded(sentences, range(6), 9, 0.0)
    here = TokenCollector()
    here.add(logits, labels)
    there = TokenCollector()
    z, y = logits.cuda(), labels.cuda()
    there.add(z, y)
    torch.cuda.set_sync_debug_mode("error")
    try:
        there.add(z, y)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    a, b = here.finish(), there.finish()
    assert np.abs(np.tile(a.codes, 2).astype(int) - b.codes).max() <= 1
