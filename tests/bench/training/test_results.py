from __future__ import annotations

import math
from dataclasses import replace

import pytest

from bench.training.making import case_result, made_up, speed
from benchmarks.training.results import (
    AccuracyCase,
    AccuracyResult,
    Speed,
    TrainingCase,
    TrainingEntry,
    TrainingResult,
)


def test_a_ratio_is_against_the_mean_of_the_turns_around_ours():
    case = TrainingCase("fcn", 128, 100, "bf16", "stacked", 4)
    ours = TrainingEntry("ours", speeds=(Speed(images=5000, seconds=0.5),))
    eager = TrainingEntry("eager", speeds=(Speed(images=900, seconds=1.0), Speed(images=2200, seconds=2.0)))
    result = TrainingResult(case=case, session=0, chosen=True, entries=(ours, eager))
    assert result.rate() == 10_000
    assert result.rate("eager") == 1000
    assert result.ratio() == 10
    assert eager.spread == pytest.approx(1100 / 900 - 1)
    assert ours.spread is None


def test_who_failed_has_no_ratio():
    failed = case_result("resnet18", "streams", 16, None, also_bf16=True)
    assert failed.ratio() is None
    assert failed.rate("eager") == 12_000
    alone = replace(failed, entries=(TrainingEntry("ours", speeds=(speed(5),)),))
    assert alone.ratio() is None
    broken = TrainingEntry("eager", "failed", "out of memory", speeds=(speed(5),))
    assert broken.rate is None  # what it did before it broke is not compared with what ours did after


def test_the_difference_of_accuracies_has_a_standard_error():
    item = AccuracyResult(
        case=AccuracyCase("digits", 3, "fp32", 3), session=0, ours=(0.90, 0.92, 0.94), eager=(0.91, 0.95)
    )
    assert item.difference == pytest.approx(-0.01)
    # Variances 0.0004 and 0.0008, over 3 and 2 seeds.
    assert item.error == pytest.approx(math.sqrt(0.0004 / 3 + 0.0008 / 2))
    assert item.allowed == pytest.approx(2 * item.error + 0.002)
    assert item.agrees


@pytest.mark.parametrize(
    ("shift", "agrees"), [(0.0, True), (0.0059, True), (0.0063, False), (-0.0063, False)]
)
def test_more_than_two_standard_errors_and_a_margin_is_a_difference(shift, agrees):
    # Standard error sqrt(2 * 0.002**2 / 2) = 0.002, so 0.006 is allowed.
    base = (0.9 - 0.002 / math.sqrt(2), 0.9 + 0.002 / math.sqrt(2))
    case = AccuracyCase("digits", 3, "fp32", 2)
    item = AccuracyResult(case=case, session=0, ours=tuple(value + shift for value in base), eager=base)
    assert item.error == pytest.approx(0.002)
    assert item.agrees is agrees


def test_without_both_sides_nobody_can_tell():
    item = made_up().of(AccuracyResult)[0]
    assert replace(item, eager=()).agrees is None
    assert replace(item, ours=(0.9,), eager=(0.9,)).agrees is None
