from __future__ import annotations

import numpy as np
import pytest

from softtargets.selection import risk_coverage, simulate


@pytest.mark.parametrize("case", simulate.CASES.values(), ids=list(simulate.CASES))
def test_the_true_areas_are_those_of_very_many_examples(case):
    assert case.rate * (case.sharpness + 1) <= 1
    curve = risk_coverage(*case.draw(np.random.default_rng(5), 400_000))
    for name, value in case.truth().items():
        found = getattr(curve, name) if name in simulate.AREAS else curve.accuracy_at(float(name))
        assert found == pytest.approx(value, rel=0.05, abs=2e-4), name


def test_an_interval_of_half_the_level_holds_about_half_of_the_time():
    held = simulate.coverage(simulate.Case(0.2, 1.0), 500, repetitions=200, seed=0, level=0.5)
    assert all(0.38 < share < 0.62 for share in held.values()), held


def test_the_table_has_a_line_for_each_case(capsys):
    simulate.main(["--repetitions", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + 2 + len(simulate.CASES) * len(simulate.EXAMPLES)
    assert all(line.count("|") == 10 for line in lines[2:])
