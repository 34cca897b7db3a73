"""What test examples add to the chance of a comparison: pseudo-values against plain loops, and other measures."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.claims import examples_variance
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import CompactPredictions, Run, RunStore, environment, merge_runs, pack_runs
from softtargets.studies.examples import (
    PER_EXAMPLE,
    chance_of_contrast,
    chance_of_examples,
    pseudo_values,
)

MADE = environment("cpu") | {"seconds": 1.0}

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)


def logits_and_labels(seed: int, scale: float = 2.0, examples: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(examples) % 3
    # Which examples are hard is the same for all seeds.
    hard = np.random.default_rng(99).normal(size=examples)
    logits = rng.normal(size=(examples, 3)) + (1.5 + hard)[:, None] * np.eye(3)[labels]
    return scale * logits, labels


def predicted(seed: int, scale: float = 2.0) -> CompactPredictions:
    return CompactPredictions.of(*logits_and_labels(seed, scale))


def kept(store: RunStore, seed: int, scale: float) -> Run:
    logits, labels = map(torch.tensor, logits_and_labels(seed, scale))
    with store.claim(BASE.replace({"seed": seed, "batch": int(10 * scale)})) as writer:
        return writer.finish({}, {"test": {"logits": logits, "labels": labels}}, [{"epoch": 1}], MADE)


def exactly(measure: str, seed: int, scale: float) -> np.ndarray:
    """The same from the logits themselves, in double precision."""
    logits, labels = map(torch.tensor, logits_and_labels(seed, scale))
    if measure in ("accuracy", "error"):
        return (logits.argmax(-1) == labels).double().numpy()
    if measure in ("loss", "nll"):
        return F.cross_entropy(logits, labels, reduction="none").numpy()
    place = np.arange(len(labels)) % 50

    def ece(chosen) -> float:
        return expected_calibration_error(logits[chosen].softmax(-1), labels[chosen])

    without = [ece(torch.tensor(place != group)) for group in range(50)]
    return 50 * ece(torch.ones(len(labels), dtype=torch.bool)) - 49 * np.array(without)


def test_pseudo_values_of_a_mean_are_the_means_of_the_groups():
    test = predicted(0)

    def accuracy(chosen):
        return float(test.right[chosen].mean())

    assert pseudo_values(accuracy, len(test)) == pytest.approx(
        [test.right[group::50].mean() for group in range(50)]
    )
    assert pseudo_values(accuracy, 7) == pytest.approx(test.right[:7].astype(float))


def test_groups_of_neighbours_see_that_neighbours_belong_together():
    """Sentences in families that are right or wrong together: the chance of a mean is that of families."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 800)
    families = np.repeat(np.arange(len(sizes)), sizes)

    def chance(neighbours, scores):
        pseudo = pseudo_values(
            lambda chosen: float(scores[chosen].mean()), len(scores), neighbours=neighbours
        )
        return pseudo.var(ddof=1) / len(pseudo)

    drawn = [rng.normal(size=len(sizes))[families] for _ in range(300)]
    truth = np.var([scores.mean() for scores in drawn])
    together, dealt_out = (np.mean([chance(kind, scores) for scores in drawn]) for kind in (True, False))
    assert together == pytest.approx(truth, rel=0.2)
    assert dealt_out < 0.5 * truth
    # Every sentence is in one group, also where groups are not of one size.
    seen = []
    pseudo_values(lambda chosen: seen.append(set(range(103)) - set(chosen)) or 0.0, 103, neighbours=True)
    groups = seen[:50]
    assert sorted(place for group in groups for place in group) == list(range(103))
    assert all(max(group) - min(group) == len(group) - 1 for group in groups)


def outcome(run, pseudo=None):
    return SimpleNamespace(run=run, details={"pseudo_values": pseudo} if pseudo else {})


def outcomes(seeds):
    return [[tuple(map(outcome, pair)) for pair in pairs] for pairs in seeds]


@pytest.mark.parametrize("measure", PER_EXAMPLE)
def test_the_chance_of_a_difference(measure, tmp_path):
    """Of whole runs and of light ones exactly the same, and that of the logits up to the rounding of the codes."""
    store, light = RunStore(tmp_path / "whole"), RunStore(tmp_path / "light")
    seeds = [[(kept(store, seed, 3.0), kept(store, seed, 1.0))] for seed in range(4)]
    rows = [exactly(measure, seed, 3.0) - exactly(measure, seed, 1.0) for seed in range(4)]
    found = chance_of_examples(measure, outcomes(seeds))
    assert found == pytest.approx(examples_variance(np.stack(rows)), rel=2e-3)
    pack_runs([run for (pair,) in seeds for run in pair], tmp_path / "runs.zip")
    merge_runs(tmp_path / "runs.zip", light)
    without_logits = [[tuple(Run(light.root / run.id) for run in pair)] for (pair,) in seeds]
    assert chance_of_examples(measure, outcomes(without_logits)) == found
    assert chance_of_examples("spread", outcomes(seeds)) is None
    assert chance_of_examples(measure, outcomes(seeds[:1])) is None
    assert chance_of_examples(measure, outcomes([[(None, None)]] * 3)) is None


def test_pseudo_values_that_a_study_kept_are_taken_before_predictions(tmp_path):
    """Sentences are what a test set of translations is drawn from, not their tokens."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(3, 2, 20))
    store = RunStore(tmp_path)
    runs = [(kept(store, seed, 3.0), kept(store, seed, 1.0)) for seed in range(3)]
    seeds = [
        [
            tuple(
                outcome(run, {"nll": row.tolist(), "bleu": row.tolist()})
                for run, row in zip(pair, both, strict=True)
            )
        ]
        for pair, both in zip(runs, rows, strict=True)
    ]
    expected = examples_variance(rows[:, 0] - rows[:, 1])
    assert chance_of_examples("bleu", seeds) == pytest.approx(expected)
    assert chance_of_examples("nll", seeds) == pytest.approx(expected)
    assert chance_of_examples("accuracy", seeds) == chance_of_examples(
        "accuracy", outcomes([[pair] for pair in runs])
    )


def test_the_chance_on_the_validation_split_travels_too(tmp_path):
    store, light = RunStore(tmp_path / "whole"), RunStore(tmp_path / "light")
    seeds = []
    for seed in range(3):
        pair = []
        for scale in (3.0, 1.0):
            logits, labels = map(torch.tensor, logits_and_labels(seed, scale))
            kept = {"test": {"logits": logits, "labels": labels}}
            kept["validation"] = {"logits": logits[:90].clone(), "labels": labels[:90].clone()}
            with store.claim(BASE.replace({"seed": seed, "batch": int(10 * scale)})) as writer:
                pair.append(writer.finish({}, kept, [{"epoch": 1}], MADE))
        seeds.append([tuple(pair)])
    found = chance_of_examples("nll_validation", outcomes(seeds))
    rows = [exactly("nll", seed, 3.0)[:90] - exactly("nll", seed, 1.0)[:90] for seed in range(3)]
    assert found == pytest.approx(examples_variance(np.stack(rows)), rel=2e-3)
    pack_runs([run for (pair,) in seeds for run in pair], tmp_path / "runs.zip")
    merge_runs(tmp_path / "runs.zip", light)
    without_logits = [[tuple(Run(light.root / run.id) for run in pair)] for (pair,) in seeds]
    assert chance_of_examples("nll_validation", outcomes(without_logits)) == found
    assert chance_of_examples("spread_validation", outcomes(seeds)) is None


def test_costs_are_losses_by_hand():
    logits, labels = logits_and_labels(1)
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    by_hand = [-np.log(p[i, label]) for i, label in enumerate(labels)]
    assert PER_EXAMPLE["loss"](predicted(1)) == pytest.approx(by_hand, rel=1e-3)


def test_the_chance_of_a_calibration_error_is_that_of_drawing_test_sets_anew():
    """One network, many test sets: the deviation of its ECE over them, beside what one of them tells."""
    rng = np.random.default_rng(5)

    def drawn(examples: int = 400) -> CompactPredictions:
        sure = rng.uniform(0.4, 0.99, size=examples)
        logits = np.stack([np.log(sure / (1 - sure)), np.zeros(examples)], -1)
        labels = (rng.uniform(size=examples) > 0.7 * sure).astype(int)
        return CompactPredictions.of(logits, labels)

    anew = np.std([drawn().ece for _ in range(300)])
    told = [np.sqrt(PER_EXAMPLE["ece"](drawn()).var(ddof=1) / 50) for _ in range(20)]
    # Absolute values bend where a bin is nearly calibrated, which makes it a little too large: on the safe side.
    assert 0.95 < np.mean(told) / anew < 1.35


def test_parts_of_different_size_have_no_chance_in_common():
    """Thirds of a small test set have 44 and 43 sentences: a page says what it can without their chance."""

    def contrast(*lengths):
        seeds = []
        for seed in range(3):
            kept = {f"part {n}": list(np.arange(length) * 0.1 + seed) for n, length in enumerate(lengths)}
            one = outcome(None, kept)
            seeds.append([(("part 0", one), ("part 1", one)), (("part 2", one), None)])
        return chance_of_contrast(seeds)

    assert contrast(44, 44, 44) is not None
    assert contrast(44, 43, 44) is None
    assert contrast(44, 44, 43) is None
