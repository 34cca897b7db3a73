from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from softtargets.randomness import permutation
from softtargets.training.tasks.translation.buckets import Bucket, into_buckets
from softtargets.training.tasks.translation.layout import Layout

SEEDS = (0, 1)


@pytest.fixture(scope="module")
def layout():
    rng = np.random.default_rng(0)
    source, target = rng.integers(1, 40, 300), rng.integers(1, 40, 300)
    return Layout(into_buckets(source, target), target, tokens=160)


def sentences(layout, seed, number):
    """The sentences of each step of an epoch, in order, from what the device would draw."""
    of_rows, of_batches = layout.keys([seed], torch.device("cpu"))
    epochs = torch.tensor([number])
    table, order = layout.table(of_rows, epochs)[0].tolist(), layout.order(of_batches, epochs)[0].tolist()
    steps = []
    for batch in order:
        bucket, begin = layout.batches[batch]
        members = layout.buckets[bucket].members
        rows = table[begin : begin + layout.shapes[bucket].rows]
        steps.append((bucket, [int(members[row]) for row in rows if row < len(members)]))
    return steps


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("number", [0, 3])
def test_an_epoch_has_every_sentence_once_and_says_what_each_step_holds(layout, seed, number):
    steps, epoch = sentences(layout, seed, number), layout.epoch(seed, number)
    assert Counter(one for _, rows in steps for one in rows) == Counter(range(300))
    assert [shape.bucket for shape in epoch.shapes] == [bucket for bucket, _ in steps]
    assert list(epoch.units) == [int(layout.lengths[rows].sum()) for _, rows in steps]
    assert sum(epoch.units) == layout.lengths.sum()
    for shape, (_, rows) in zip(epoch.shapes, steps, strict=True):
        assert len(rows) <= shape.rows
        assert shape.rows * max(shape.source, shape.target) <= 160


def test_epochs_and_seeds_have_orders_of_their_own_and_the_same_one_again(layout):
    orders = {(seed, number): sentences(layout, seed, number) for seed in SEEDS for number in (0, 1)}
    assert len({str(order) for order in orders.values()}) == 4
    assert sentences(layout, 0, 1) == orders[0, 1]
    assert len({layout.epoch(seed, number).shapes for seed, number in orders}) == 4
    assert len({len(layout.epoch(seed, number).shapes) for seed, number in orders}) == 1


def test_several_runs_draw_what_each_draws_alone(layout):
    of_rows, of_batches = layout.keys(SEEDS, torch.device("cpu"))
    epochs = torch.tensor([2, 5])
    table, order = layout.table(of_rows, epochs), layout.order(of_batches, epochs)
    for run, (seed, number) in enumerate(zip(SEEDS, (2, 5), strict=True)):
        own_rows, own_batches = layout.keys([seed], torch.device("cpu"))
        assert torch.equal(table[run], layout.table(own_rows, torch.tensor([number]))[0])
        assert torch.equal(order[run], layout.order(own_batches, torch.tensor([number]))[0])


def test_rows_are_those_of_a_permutation_of_each_bucket():
    """Drawn in one go, which must not change what trainings see."""
    buckets = [Bucket(np.arange(7), 4, 4), Bucket(np.arange(7, 12), 8, 8), Bucket(np.arange(12, 13), 12, 12)]
    layout = Layout(buckets, np.full(13, 3), tokens=24)
    keys, _ = layout.keys([3, 4], torch.device("cpu"))
    epochs = torch.tensor([2, 9])
    expected = []
    for number, bucket in enumerate(buckets):
        rows = layout.shapes[number].rows
        drawn = permutation(keys, len(bucket), epochs, number)
        expected.append(torch.nn.functional.pad(drawn, (0, -len(bucket) % rows), value=len(bucket)))
    assert torch.equal(layout.table(keys, epochs), torch.cat(expected, 1))
