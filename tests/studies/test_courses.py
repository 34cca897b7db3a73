"""Courses over epochs: of those that were measured, whichever these are."""

from __future__ import annotations

from types import SimpleNamespace

from softtargets.claims import Sample
from softtargets.studies.courses import by_epoch


def outcome(seed, *rows):
    history = [{"epoch": epoch, "test_accuracy": accuracy} for epoch, accuracy in rows]
    return SimpleNamespace(seed=seed, run=SimpleNamespace(history=lambda: history))


def test_every_tenth_epoch_and_the_last():
    two = SimpleNamespace(
        outcomes=[outcome(1, (10, 0.6), (20, 0.8), (26, 0.9)), outcome(0, (10, 0.5), (20, 0.7), (26, 0.8))]
    )
    found = by_epoch(two)
    assert list(found) == [10, 20, 26]
    assert found[26] == Sample.of([0.8, 0.9])


def test_of_several_measurements_in_an_epoch_the_last_counts_and_seeds_may_have_others():
    mixed = SimpleNamespace(outcomes=[outcome(0, (1, 0.1), (2, 0.2), (2, 0.3)), outcome(1, (2, 0.5))])
    assert by_epoch(mixed) == {1: Sample.of([0.1]), 2: Sample.of([0.3, 0.5])}
