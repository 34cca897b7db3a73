"""Results asked by label, by seed and for rows, on outcomes written down by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.claims import Sample, examples_variance
from softtargets.exceptions import StudyError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import Run, RunStore
from softtargets.studies import Outcome, Results, Trial
from softtargets.studies.results import matching, mean, over

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)


def outcome(seed: int, value: float, tmp_path, **labels) -> Outcome:
    return Outcome(Trial(BASE.replace({"seed": seed}), labels), Run(tmp_path), {"m": value})


def test_samples_come_in_the_order_of_the_seeds(tmp_path):
    results = Results(tuple(outcome(seed, 10.0 + seed, tmp_path, a=1) for seed in (2, 0, 1)))
    assert results.sample("m", a=1).values == (10.0, 11.0, 12.0)
    assert results.first(a=1).measures["m"] == 10.0


def test_differences_pair_the_seeds_that_both_sides_have(tmp_path):
    left = [outcome(seed, 5.0 + seed, tmp_path, side="l") for seed in (0, 1, 3)]
    right = [outcome(seed, 1.0 * seed, tmp_path, side="r") for seed in (3, 1, 2)]
    assert Results((*left, *right)).difference("m", {"side": "l"}, {"side": "r"}).values == (5.0, 5.0)


def test_runs_that_failed_are_known_by_label_and_seed_and_no_part_of_a_sample(tmp_path):
    there = outcome(0, 1.0, tmp_path, a=1)
    failed = [Trial(BASE.replace({"seed": seed}), {"a": a}) for seed, a in ((0, 2), (1, 1), (1, 2))]
    results = Results((there,), failed=tuple(failed))
    assert results.sample("m", a=1).values == (1.0,)
    assert [results.lacks(a=a) for a in (1, 2, 3)] == [False, False, True]
    first, _ = Results((there, outcome(1, 2.0, tmp_path, a=3)), failed=tuple(failed)).split()
    assert first.failed == (failed[0],)
    assert first.where(a=1).failed == ()
    assert [first.lacks(a=a) for a in (1, 2, 3)] == [False, False, True]


def test_asking_for_what_no_run_gave_is_an_error(tmp_path):
    with pytest.raises(StudyError, match="no finished run with"):
        Results((outcome(0, 1.0, tmp_path, a=1),)).first(a=2)


def plane(tmp_path) -> Results:
    """Two seeds over a and p, m = 10 a + p + seed; p = 1 was not measured on seed 1."""
    outcomes = [
        outcome(seed, 10 * a + p + seed, tmp_path, a=a, p=p)
        for seed in (1, 0)
        for a in (3, 2)
        for p in (0.5, 1.0)
    ]
    gone = [o for o in outcomes if o.seed == 1 and o.trial.labels["p"] == 1.0]
    return Results(
        tuple(Outcome(o.trial, o.run, {}) if o in gone else o for o in outcomes),
    )


def test_labels_come_in_the_order_of_the_grid_and_seeds_rising(tmp_path):
    assert plane(tmp_path).values("a") == [3, 2]
    assert plane(tmp_path).seeds == [0, 1]


def test_runs_that_a_measure_was_not_made_on_are_no_part_of_its_sample(tmp_path):
    assert plane(tmp_path).sample("m", a=2, p=1.0).values == (21.0,)
    assert plane(tmp_path).sample("other").n == 0


def test_rows_have_their_labels_and_each_measure_over_seeds(tmp_path):
    rows = plane(tmp_path).rows(over(a=(2, 3), p=(0.5, 1.0)), "m")
    assert rows == (
        {"a": 2, "p": 0.5, "m": Sample.of([20.5, 21.5])},
        {"a": 2, "p": 1.0, "m": Sample.of([21.0])},
        {"a": 3, "p": 0.5, "m": Sample.of([30.5, 31.5])},
        {"a": 3, "p": 1.0, "m": Sample.of([31.0])},
    )
    assert matching(rows, a=3, p=1.0) == [rows[3]]


def test_one_number_for_each_seed_that_has_all_it_needs(tmp_path):
    def spread(own: Results) -> float:
        cells = own.cells("a", "p")
        return cells[3, 1.0]["m"] - cells[2, 0.5]["m"]

    assert plane(tmp_path).each_seed(spread).values == (10.5,)  # seed 1 was not measured at p = 1
    assert plane(tmp_path).each_seed(lambda own: mean(own.sample("m", a=3).values)).values == (30.75, 31.5)


@pytest.mark.parametrize("hidden", [KeyError, ValueError, ZeroDivisionError])
def test_only_what_a_missing_run_leads_to_is_left_out(tmp_path, hidden):
    def fails(own: Results) -> float:
        raise hidden

    assert plane(tmp_path).each_seed(fails).n == 0
    with pytest.raises(AttributeError):
        plane(tmp_path).each_seed(lambda own: own.no_such_thing)


def test_means_in_sentences(tmp_path):
    results = plane(tmp_path)
    assert results.shown("m", ".2f", {"a": 2, "p": 0.5}) == "21.00"
    assert results.then("m", ".1f", {"a": 2}, {"a": 3}) == "21.0, then 31.0"


def said(tmp_path, seed: int, right: list[bool], **labels) -> Outcome:
    """A finished run with test predictions that are right where told."""
    recipe = BASE.replace({"seed": seed, "batch": 1 + sum(map(ord, str(labels)))})
    logits = torch.tensor([[1.0, 0.0] if one else [0.0, 1.0] for one in right])
    kept = {"logits": logits, "labels": torch.zeros(len(right), dtype=torch.long), "features": logits.clone()}
    with RunStore(tmp_path).claim(recipe) as writer:
        run = writer.finish({}, {"test": kept}, [{"epoch": 1}], {})
    accuracy = sum(right) / len(right)
    return Outcome(Trial(recipe, labels), run, {"accuracy": accuracy, "error": 1 - accuracy, "m": 1.0})


def test_what_is_gained_knows_the_chance_of_the_test_examples(tmp_path):
    one = [[True, True, False, True], [True, False, False, True]]
    other = [[True, False, False, False], [True, False, True, False]]
    outcomes = [
        said(tmp_path, s, rows[s], side=side) for side, rows in (("l", one), ("r", other)) for s in (0, 1)
    ]
    results, pair = Results(tuple(outcomes)), ({"side": "l"}, {"side": "r"})
    table = np.array(one, float) - np.array(other, float)
    found = results.difference("accuracy", *pair)
    assert found.values == pytest.approx(tuple(table.mean(1)))
    assert found.examples == pytest.approx(examples_variance(table))
    points = results.gain("error", [pair], scale=100)
    assert points.values == pytest.approx(tuple(-100 * table.mean(1)))
    assert points.examples == pytest.approx(1e4 * examples_variance(table))
    assert results.gain("accuracy", [pair, pair]).examples == pytest.approx(examples_variance(table))
    # Of what is not counted example by example, of one seed, and without predictions it is not known.
    assert results.difference("m", *pair).examples is None
    assert Results(tuple(o for o in outcomes if o.seed == 0)).difference("accuracy", *pair).examples is None
    with RunStore(tmp_path / "other").claim(BASE) as writer:
        bare = writer.finish({}, {}, [{"epoch": 1}], {})
    without = Outcome(outcomes[0].trial, bare, outcomes[0].measures)
    assert Results((without, *outcomes[1:])).difference("accuracy", *pair).examples is None


def test_gains_are_means_over_pairs_of_the_seeds_that_have_all(tmp_path):
    results = plane(tmp_path)
    pairs = [({"a": a, "p": 0.5}, {"a": a, "p": 1.0}) for a in (3, 2)]
    assert results.gain("m", pairs).values == (-0.5,)
    assert results.gain("m", []).n == 0


def test_the_lowest_seed_chooses_and_the_others_judge(tmp_path):
    choosing, judging = plane(tmp_path).split()
    assert (choosing.seeds, judging.seeds) == ([0], [1])


def test_what_nothing_was_measured_of_is_a_dash(tmp_path):
    assert plane(tmp_path).shown("other", ".3f", {}) == "–"


def two_measures(tmp_path, values) -> Results:
    """By (side, seed): two measures, and what four groups of sentences contribute to each."""
    found = []
    for (side, seed), (a, b, first, second) in values.items():
        kept = {"pseudo_values": {"a": first, "b": second}}
        trial = Trial(BASE.replace({"seed": seed}), {"side": side})
        found.append(Outcome(trial, Run(tmp_path), {"a": a, "b": b}, kept))
    return Results(tuple(found))


def test_a_contrast_has_a_measure_of_its_own_on_each_side_and_the_chance_of_both(tmp_path):
    draw = np.random.default_rng(1)
    values = {
        (side, seed): (seed + 1.0, 10.0 * seed, draw.normal(size=4), draw.normal(size=4))
        for side in ("l", "r")
        for seed in (0, 1, 2)
    }
    del values["r", 1]
    results = two_measures(tmp_path, values)
    left, right = ({"side": side} for side in ("l", "r"))
    found = results.contrast((("a", left), ("b", right)), scale=2.0)
    assert found.values == (2.0, 2 * (3.0 - 20.0))
    rows = np.stack([values["l", seed][2] - values["r", seed][3] for seed in (0, 2)])
    assert found.examples == pytest.approx(4 * examples_variance(rows))
    alone = results.contrast((("b", left), None))
    assert alone.values == (0.0, 10.0, 20.0)
    assert alone.examples == pytest.approx(
        examples_variance(np.stack([values["l", seed][3] for seed in range(3)]))
    )
    both = results.contrast((("a", left), ("b", left)), (("b", left), None))
    assert both.values == (0.5, 1.0, 1.5), "the mean of a - b and b"


def test_the_chance_of_a_contrast_is_kept_for_pages_without_predictions(tmp_path):
    draw = np.random.default_rng(2)
    values = {("l", seed): (1.0, 2.0, draw.normal(size=4), draw.normal(size=4)) for seed in (0, 1)}
    results = two_measures(tmp_path, values)
    pair = (("a", {"side": "l"}), ("b", {"side": "l"}))
    found = results.contrast(pair)
    bare = Results(tuple(Outcome(o.trial, o.run, o.measures) for o in results.outcomes), results.chances)
    assert bare.contrast(pair).examples == found.examples
    assert Results(bare.outcomes).contrast(pair).examples is None
