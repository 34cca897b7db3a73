from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.information import Evolution, EvolutionBand, band, evolution

LOG_600 = math.log(600)


def row(step, nats=None, error=0.1, bound=LOG_600, of="train_0_5"):
    """A row of metrics, with a look at the information or without."""
    found = {"epoch": 1, "step": step, "test_loss": 0.5}
    if nats is not None:
        prefix = f"information.{of}"
        found |= {f"{prefix}_nats": nats, f"{prefix}_standard_error": error, f"{prefix}_bound": bound}
    return found


def test_rows_of_metrics_by_hand():
    rows = [row(1), row(4000, 2.5, 0.25), row(5000), row(8000, 1.5, 0.125)]
    assert evolution(rows) == Evolution((4000, 8000), (2.5, 1.5), (0.25, 0.125), LOG_600)


def test_rows_as_they_come_back_from_a_file():
    rows = [row(4000, 2.5, 0.25), row(8000, -0.01, 0.125)]
    lines = "\n".join(json.dumps(each) for each in rows)
    assert evolution(json.loads(line) for line in lines.splitlines()) == evolution(rows)
    assert evolution(rows).nats == (2.5, -0.01), "not clipped"


def test_the_split_and_the_classes_asked_for():
    rows = [row(1, 2.0) | row(1, 3.0, of="test_3_8"), row(2, 1.0)]
    assert evolution(rows, split="test", classes=(3, 8)).nats == (3.0,)
    assert evolution(rows).nats == (2.0, 1.0)


def test_a_look_that_found_no_number_is_passed_over():
    nothing = row(2, 1.0) | {"information.train_0_5_nats": None, "information.train_0_5_standard_error": None}
    assert evolution([row(1, 2.0), nothing, row(3, 1.5)]).steps == (1, 3)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no row has a number for information.train_0_5_nats; train with the probe"),
        ([row(1)], "train with the probe `information` in the recipe"),
        ([row(1, 2.0, of="test_3_8")], "there are information.test_3_8_nats: choose split and classes"),
        ([row(1, 2.0), row(1, 2.0)], "step 1 appears twice"),
        ([row(1, math.nan)], "must be finite, but at step 1"),
        (
            [row(1, 2.0), row(2, 2.0, bound=math.log(60))],
            "information of 60 examples and of 600 cannot be compared",
        ),
    ],
)
def test_rows_without_a_curve_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        evolution(rows)


def test_a_band_by_hand():
    one = Evolution((1, 2), (0.5, 1.0), (0.1, 0.1), LOG_600)
    other = Evolution((2, 3), (2.0, 4.0), (0.1, 0.1), LOG_600)
    assert band([one, other]) == EvolutionBand(
        steps=(1, 2, 3), counts=(1, 2, 1), lowest=(0.5, 1.0, 4.0), mean=(0.5, 1.5, 4.0), highest=(0.5, 2.0, 4.0),
        bound=LOG_600,
    )  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(
    seeds=st.lists(
        st.dictionaries(st.integers(1, 5), st.floats(-1, 6), min_size=1, max_size=5), min_size=1, max_size=4
    ),
    data=st.data(),
)
def test_the_definition_with_loops_in_any_order(seeds, data):
    curves = []
    for seed in seeds:
        rows = data.draw(st.permutations([row(step, nats) for step, nats in seed.items()]))
        curves.append(evolution(rows))
        assert dict(zip(curves[-1].steps, curves[-1].nats, strict=True)) == seed
    found = band(data.draw(st.permutations(curves)))
    assert list(found.steps) == sorted({step for seed in seeds for step in seed})
    for place, step in enumerate(found.steps):
        there = [seed[step] for seed in seeds if step in seed]
        assert (found.counts[place], found.lowest[place], found.highest[place]) == (
            len(there),
            min(there),
            max(there),
        )
        assert found.mean[place] == pytest.approx(sum(there) / len(there))


def test_bands_of_nothing_or_of_different_examples_are_refused():
    with pytest.raises(ValueError, match="a band needs at least one evolution"):
        band([])
    one = Evolution((1,), (0.5,), (0.1,), LOG_600)
    with pytest.raises(ValueError, match="information of 20 examples and of 600 cannot be compared"):
        band([one, dataclasses.replace(one, bound=math.log(20))])
    with pytest.raises(ValueError, match="information of 600 examples and of 601 cannot be compared"):
        band([one, dataclasses.replace(one, bound=math.log(601))])


def test_a_bound_that_was_rounded_in_a_file_is_the_same():
    one = Evolution((1,), (0.5,), (0.1,), LOG_600)
    assert band([one, dataclasses.replace(one, bound=LOG_600 + 1e-12)]).counts == (2,)


def test_curves_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        evolution([row(1, 2.0)]).steps = ()
