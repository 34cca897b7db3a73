"""The verdict rule on drawn pages: seldom wrong, and right with enough seeds."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from softtargets.claims import simulate
from softtargets.claims.rule import CONTRADICTED, NO_EFFECT, REPRODUCED

PAGES = 1500
# Of 1,500 pages 5 % are 75, give or take 8.4: three of these.
MOST = 0.05 + 3 * 0.0056


def rng():
    return np.random.default_rng(7)


def pages_with(found, verdict):
    return (found == verdict).any(-1).mean()


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("claims", [4, 20])
def test_without_effect_few_pages_call_anything_reproduced_or_contradicted(claims, seeds):
    found = simulate.no_effect(rng(), PAGES, claims, seeds)
    assert pages_with(found, REPRODUCED) <= MOST
    assert pages_with(found, CONTRADICTED) <= MOST


def test_without_effect_more_seeds_say_so():
    shares = [(simulate.no_effect(rng(), 200, 10, seeds) == NO_EFFECT).mean() for seeds in (3, 10, 20)]
    assert shares[0] < 0.1 < shares[1] < 0.9 < shares[2]


def test_the_printed_effect_is_found_the_sooner_the_larger_it_is():
    def power(seeds, effect):
        return (simulate.printed_effect(rng(), 300, 10, seeds, effect) == REPRODUCED).mean()

    assert power(3, 2.0) < 0.3 < power(5, 2.0)
    assert power(5, 4.0) > 0.95
    assert power(3, 8.0) > 0.95


@pytest.mark.parametrize("seeds", [3, 5])
def test_hard_cases_stay_below_the_level_too(seeds):
    assert pages_with(simulate.some_effects(rng(), PAGES, 10, seeds), REPRODUCED) <= MOST
    assert pages_with(simulate.chosen_cells(rng(), PAGES, 10, seeds), REPRODUCED) <= MOST
    assert pages_with(simulate.every_cell(rng(), PAGES, 10, seeds, 8.0), REPRODUCED) <= MOST
    on_the_margin = simulate.numbers(rng(), PAGES, 10, seeds, 4.0, 2.0)
    assert pages_with(on_the_margin, REPRODUCED) <= MOST


def test_cells_chosen_on_the_seeds_that_judge_would_not():
    found = simulate.chosen_cells(rng(), 300, 10, 5, elsewhere=False)
    assert pages_with(found, REPRODUCED) > 0.2


def test_the_chance_of_the_test_set_is_seen_only_with_predictions():
    seen, not_seen = (
        simulate.shared_examples(rng(), 200, 5, 5, two_way=known, examples=60) for known in (True, False)
    )
    assert pages_with(seen, REPRODUCED) <= 0.05 + 3 * 0.0154
    assert pages_with(not_seen, REPRODUCED) > 0.2


def test_the_same_seed_gives_the_same_tables(capsys):
    simulate.main(["--pages", "20", "--seed", "3"])
    first = capsys.readouterr().out
    assert first == simulate.tables(20, 3) + "\n"
    assert first != simulate.tables(20, 4) + "\n"
    assert first.count("|---|") >= 4


def test_pages_must_be_some(capsys):
    with pytest.raises(SystemExit):
        simulate.main(["--pages", "0"])
    assert "--pages must be at least 1; got 0" in capsys.readouterr().err


def test_the_documentation_has_these_tables_and_they_keep_the_level():
    text = (Path(__file__).parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert "python -m softtargets.claims.simulate" in text
    drawn = simulate.tables(2, 0).splitlines()
    heads = [line for line, after in pairwise(drawn) if line.startswith("**") or after.startswith("|---")]
    assert len(heads) == 8
    assert all(line in text for line in heads)
    null = text.split("**No effect at all")[1].split("**Power")[0]
    rates = re.findall(r"^\| \d+ \| \d+ \| ([\d.]+) % \| ([\d.]+) %", null, re.MULTILINE)
    assert len(rates) == 12
    assert max(float(rate) for row in rates for rate in row) <= 5.0
