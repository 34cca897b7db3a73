"""The arithmetic of verdicts against plain loops, scipy and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import f_oneway, norm, t, ttest_1samp

from softtargets.claims.rule import (
    VERDICTS,
    decide,
    estimate,
    examples_variance,
    for_every,
    for_some,
    holm,
    p_above,
    p_inside,
    p_outside,
    reach,
)

VALUES = np.array([[0.3, -1.0], [0.5, -0.2], [0.1, 0.4], [0.9, -2.0]])


def test_p_values_are_those_of_students_test():
    for end in (-0.5, 0.0, 0.7):
        expected = ttest_1samp(VALUES, end, alternative="greater").pvalue
        assert p_above(estimate(VALUES), end) == pytest.approx(expected)


def test_inside_takes_both_ends_and_outside_either():
    found = estimate(VALUES)
    greater = [ttest_1samp(VALUES, end, alternative="greater").pvalue for end in (-1.0, 1.0)]
    less = [ttest_1samp(VALUES, end, alternative="less").pvalue for end in (-1.0, 1.0)]
    assert p_inside(found, -1.0, 1.0) == pytest.approx(np.maximum(greater[0], less[1]))
    assert p_outside(found, -1.0, 1.0) == pytest.approx(np.minimum(2 * np.minimum(less[0], greater[1]), 1))
    assert p_inside(found, -np.inf, 1.0) == pytest.approx(less[1])
    assert p_outside(found, -np.inf, 1.0) == pytest.approx(greater[1])
    assert p_inside(found, -np.inf, np.inf).tolist() == [0, 0]
    assert p_outside(found, -np.inf, np.inf).tolist() == [1, 1]


def test_without_any_error_a_mean_is_where_it_is_and_ends_are_outside():
    same = estimate([1.0, 1.0, 1.0])
    assert [float(p_inside(same, *ends)) for ends in ((0, 2), (1, 2), (0, 1), (2, 3))] == [0, 1, 1, 1]
    assert [float(p_outside(same, *ends)) for ends in ((0, 2), (1, 2), (0, 1), (2, 3))] == [1, 0, 0, 0]


def test_numbers_that_are_none_show_nothing():
    with np.errstate(all="ignore"):
        found = estimate([[1.0, 1.0], [math.nan, math.inf], [1.0, 1.0]])
        assert p_inside(found, 0, np.inf).tolist() == [1, 1]
        assert p_outside(found, 0, np.inf).tolist() == [1, 1]


@pytest.mark.parametrize("examples", [1e-6, 0.1, 5.0])
@pytest.mark.parametrize("end", [-3.0, -0.1, 0.2, 1.5])
def test_with_test_examples_p_is_where_the_reach_ends(examples, end):
    values = [0.1, 0.9, 0.4]
    found = estimate(values, examples)
    p = float(p_above(found, end))
    apart = float(found.mean) - end
    level = p if apart > 0 else 1 - p
    by_hand = math.sqrt(t.isf(level, 2) ** 2 * np.var(values, ddof=1) / 3 + norm.isf(level) ** 2 * examples)
    assert by_hand == pytest.approx(abs(apart), rel=1e-6)
    assert float(reach(found, level)) == pytest.approx(by_hand)
    # More chance is never more certainty.
    alone = float(p_above(estimate(values), end))
    assert abs(p - 0.5) <= abs(alone - 0.5) + 1e-9


def test_the_variance_of_examples_by_plain_loops():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(4, 30)) + rng.normal(size=(4, 1)) + 2 * rng.normal(size=(1, 30))
    rows, columns, grand = table.mean(1), table.mean(0), table.mean()
    residual = sum(
        (table[s, e] - rows[s] - columns[e] + grand) ** 2 for s, e in itertools.product(range(4), range(30))
    ) / (3 * 29)
    examples = 4 * sum((value - grand) ** 2 for value in columns) / 29
    assert examples_variance(table) == pytest.approx((examples - residual) / 120)
    # The mean square of examples is the one of an analysis of variance.
    within = sum(table[:, e].var(ddof=1) for e in range(30)) / 30
    assert f_oneway(*table.T).statistic == pytest.approx(examples / within)


def test_the_variance_of_examples_is_found_in_the_mean():
    rng = np.random.default_rng(1)
    found = [
        examples_variance(rng.normal(size=(5, 1)) + 3 * rng.normal(size=(1, 50)) + rng.normal(size=(5, 50)))
        for _ in range(400)
    ]
    assert np.mean(found) == pytest.approx(9 / 50, rel=0.05)
    assert examples_variance(rng.normal(size=(5, 1)) + np.zeros((5, 50))) == pytest.approx(0, abs=1e-12)
    assert examples_variance(np.tile([[1.0, -1.0], [-1.0, 1.0]], (1, 5))) == 0


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (5,)])
def test_too_small_a_table_is_refused(shape):
    with pytest.raises(ValueError, match=r"at least 2 seeds by 2 examples; got the shape"):
        examples_variance(np.zeros(shape))


def test_holm_step_by_step():
    p = [0.012, 0.2, 0.011, 0.6, 0.03]
    order = sorted(range(5), key=lambda place: p[place])
    expected, highest = [0.0] * 5, 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min((5 - rank) * p[place], 1.0))
        expected[place] = highest
    assert holm(p) == pytest.approx(expected)
    assert holm([p, p[::-1]]) == pytest.approx(np.array([expected, expected[::-1]]))


def test_questions_that_are_not_asked_do_not_count():
    found = holm([[0.01, math.nan, 0.04], [math.nan, math.nan, 0.03], [math.nan] * 3])
    assert found == pytest.approx(np.array([[0.02, 1, 0.04], [1, 1, 0.03], [1, 1, 1]]))


def test_cells_together():
    p = [[0.01, 0.02, 0.9], [0.001, 0.002, 0.003]]
    assert for_every(p) == pytest.approx([0.9, 0.003])
    assert for_some(p) == pytest.approx([0.03, 0.003])
    assert for_some([[0.9, 0.8]]) == pytest.approx([1.0])


def test_a_zone_goes_first_and_holm_is_over_each_verdict_by_itself():
    def said(*p):
        return [VERDICTS[place] for place in decide(*p)]

    assert said([0.001], [1.0], [0.001]) == ["no effect"]
    assert said([0.03, 0.9], [1.0, 0.03], [1.0, 1.0]) == ["inconclusive", "inconclusive"]
    assert said([0.02, 0.9], [1.0, 0.02], [1.0, 1.0]) == ["reproduced", "contradicted"]
