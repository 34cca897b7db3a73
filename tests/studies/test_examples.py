"""What test examples add to the chance of a comparison: pseudo-values against plain loops, and other measures."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.calibration import expected_calibration_error
from softtargets.claims import examples_variance
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import Predictions, Run, RunStore
from softtargets.studies.examples import PER_EXAMPLE, chance_of_examples, pseudo_values

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)


def predicted(seed: int, scale: float = 2.0, examples: int = 300) -> Predictions:
    rng = np.random.default_rng(seed)
    labels = np.arange(examples) % 3
    # Which examples are hard is the same for all seeds.
    hard = np.random.default_rng(99).normal(size=examples)
    logits = rng.normal(size=(examples, 3)) + (1.5 + hard)[:, None] * np.eye(3)[labels]
    return Predictions(torch.tensor(scale * logits), torch.tensor(labels), torch.zeros(examples, 1))


def kept(store: RunStore, seed: int, scale: float) -> Run:
    test = {key: value for key, value in vars(predicted(seed, scale)).items() if value is not None}
    with store.claim(BASE.replace({"seed": seed, "batch": int(10 * scale)})) as writer:
        return writer.finish({}, {"test": test}, [{"epoch": 1}], {})


def test_pseudo_values_of_a_mean_are_the_means_of_the_groups():
    test = predicted(0)

    def accuracy(part):
        return float((part.logits.argmax(-1) == part.labels).double().mean())

    right = (test.logits.argmax(-1) == test.labels).double().numpy()
    assert pseudo_values(accuracy, test) == pytest.approx([right[group::50].mean() for group in range(50)])
    few = Predictions(test.logits[:7], test.labels[:7], test.features[:7])
    assert pseudo_values(accuracy, few) == pytest.approx(right[:7])


@pytest.mark.parametrize("measure", PER_EXAMPLE)
def test_the_chance_of_a_difference(measure, tmp_path):
    store = RunStore(tmp_path)
    seeds = [[(kept(store, seed, 3.0), kept(store, seed, 1.0))] for seed in range(4)]
    rows = []
    for seed in range(4):
        this, that = (PER_EXAMPLE[measure](predicted(seed, scale)) for scale in (3.0, 1.0))
        rows.append(this - that)
    assert chance_of_examples(measure, seeds) == pytest.approx(examples_variance(np.stack(rows)))
    assert chance_of_examples("spread", seeds) is None
    assert chance_of_examples(measure, seeds[:1]) is None
    assert chance_of_examples(measure, [[(None, None)]] * 3) is None


def test_costs_are_losses_by_hand():
    test = predicted(1)
    p = torch.softmax(test.logits, -1).numpy()
    by_hand = [-np.log(p[i, label]) for i, label in enumerate(test.labels.tolist())]
    assert PER_EXAMPLE["loss"](test) == pytest.approx(by_hand)


def test_the_chance_of_a_calibration_error_is_that_of_drawing_test_sets_anew():
    """One network, many test sets: the deviation of its ECE over them, beside what one of them tells."""
    rng = np.random.default_rng(5)

    def drawn(examples: int = 400) -> Predictions:
        sure = rng.uniform(0.4, 0.99, size=examples)
        logits = torch.tensor(np.stack([np.log(sure / (1 - sure)), np.zeros(examples)], -1))
        labels = torch.tensor((rng.uniform(size=examples) > 0.7 * sure).astype(int))
        return Predictions(logits, labels, torch.zeros(examples, 1))

    def ece(test):
        return expected_calibration_error(test.logits.softmax(-1), test.labels)

    anew = np.std([ece(drawn()) for _ in range(300)])
    told = [np.sqrt(pseudo_values(ece, drawn()).var(ddof=1) / 50) for _ in range(20)]
    # Absolute values bend where a bin is nearly calibrated, which makes it a little too large: on the safe side.
    assert 0.95 < np.mean(told) / anew < 1.35
