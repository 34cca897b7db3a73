"""Label noise as trainings see it: which splits, whose labels, and what is measured on which."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.exceptions import RecipeError
from softtargets.noise import CORRUPTIONS, observed_transitions, symmetric
from softtargets.predictions import open_predictions
from softtargets.randomness import derive
from softtargets.recipes import MLP, ClassConditional, Digits, Instance, Pair, Recipe, Symmetric
from softtargets.runs import RunStore
from softtargets.training import train
from softtargets.training.building import build_loss
from softtargets.training.tasks import prepare

CPU = torch.device("cpu")
FLIPS = tuple(
    tuple(0.7 if i == j else 0.3 if (i, j) in {(3, 8), (8, 3)} else 0.0 for j in range(10)) for i in range(10)
)
FLIPS = tuple(row if i in (3, 8) else tuple(float(i == j) for j in range(10)) for i, row in enumerate(FLIPS))
KINDS = [Symmetric(rate=0.4), Pair(rate=0.4), ClassConditional(matrix=FLIPS), Instance(rate=0.4)]


@pytest.fixture(scope="module")
def digits():
    return prepare(Digits(validation=297), CPU)


def noisy_recipe(noise, seed):
    return Recipe(data=Digits(), model=MLP(), epochs=1, noise=noise, seed=seed)


def of_type(noise, kind):
    return type(noise)(**(vars(noise) | {"type": kind}))


@pytest.mark.parametrize("noise", KINDS, ids=lambda noise: noise.name)
def test_alpha_type_touches_training_labels_only(digits, noise):
    noisy = digits.with_noise(noisy_recipe(noise, 0))
    assert (noisy.splits["train"].labels != digits.splits["train"].labels).any()
    for name in ("validation", "test"):
        assert noisy.splits[name] is digits.splits[name]


@pytest.mark.parametrize("noise", KINDS, ids=lambda noise: noise.name)
def test_beta_type_touches_all_splits_and_keeps_the_clean_labels(digits, noise):
    noisy = digits.with_noise(noisy_recipe(of_type(noise, "beta"), 0))
    for name, split in noisy.splits.items():
        before = digits.splits[name]
        assert torch.equal(split.clean_labels, before.labels)
        assert torch.equal(split.images, before.images)
        changed = (split.labels != before.labels).double().mean().item()
        expected = 0.06 if isinstance(noise, ClassConditional) else 0.4  # two classes of ten, each with 0.3
        assert changed == pytest.approx(expected, abs=5 * (expected * (1 - expected) / len(split)) ** 0.5)
    # Training labels are those of alpha type: test labels have draws of their own.
    alpha = digits.with_noise(noisy_recipe(noise, 0))
    assert torch.equal(noisy.splits["train"].labels, alpha.splits["train"].labels)


def test_splits_are_corrupted_independently(digits):
    noisy = digits.with_noise(noisy_recipe(Symmetric(rate=0.5, type="beta"), 0))
    moved = [(split.labels != split.clean_labels)[:297].double() for split in noisy.splits.values()]
    table = torch.corrcoef(torch.stack(moved))
    assert (table - torch.eye(3)).abs().max() < 4 / 297**0.5
    own = derive(0, "noise", "test")
    clean = digits.splits["test"].labels.numpy()
    assert noisy.splits["test"].labels.tolist() == symmetric(clean, 0.5, 10, own).tolist()


def test_the_same_seed_makes_the_same_noise_and_another_seed_another(digits):
    for noise in (of_type(each, "beta") for each in KINDS):
        first, again, other = (
            digits.with_noise(noisy_recipe(noise, seed)).splits["test"].labels for seed in (1, 1, 2)
        )
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


def test_a_matrix_says_what_becomes_of_labels(digits):
    split = digits.with_noise(noisy_recipe(ClassConditional(matrix=FLIPS), 0)).splits["train"]
    found = observed_transitions(split.clean_labels, split.labels, 10)
    assert np.abs(found - np.array(FLIPS)).max() < 0.2
    assert not found[np.array(FLIPS) == 0].any()


def test_instance_noise_does_not_depend_on_what_the_net_is_shown():
    shown = [prepare(Digits(standardise=kind), CPU) for kind in ("unit", "channel", "image")]
    labels = [each.with_noise(noisy_recipe(Instance(rate=0.5), 0)).splits["train"].labels for each in shown]
    assert torch.equal(labels[0], labels[1])
    assert torch.equal(labels[0], labels[2])


def test_instance_noise_against_the_noise_room(digits):
    images = digits.splits["train"].images.double()
    inputs = ((images - images.mean()) / images.std(correction=0)).flatten(1)
    test = digits.splits["test"]
    seen = ((test.images.double() - images.mean()) / images.std(correction=0)).flatten(1)
    noisy = digits.with_noise(noisy_recipe(Instance(rate=0.5, type="beta"), 4))
    own = derive(4, "noise")
    expected = CORRUPTIONS["instance"](digits.splits["train"].labels, inputs, 0.5, 10, own)
    assert (
        noisy.splits["train"].labels.numpy() != expected
    ).sum() <= 2  # inputs there are in single precision
    expected = CORRUPTIONS["instance"](test.labels, seen, 0.5, 10, own, stream=2)
    assert (noisy.splits["test"].labels.numpy() != expected).sum() <= 2


def test_forward_correction_takes_the_matrix_of_the_recipe(recipe):
    corrected = recipe.replace(
        {"regulariser": "forward_correction", "noise": ClassConditional(matrix=FLIPS).to_dict()}
    )
    loss = build_loss(corrected, 10)
    torch.testing.assert_close(loss.matrix, torch.tensor(FLIPS))


def test_a_matrix_for_other_classes_is_refused_before_training(recipe, tmp_path):
    wrong = recipe.replace({"noise": {"name": "class_conditional", "matrix": [[0.9, 0.1], [0.1, 0.9]]}})
    with pytest.raises(RecipeError) as caught:
        train([wrong], RunStore(tmp_path), device="cpu")
    assert str(caught.value) == "noise.matrix: is for 2 classes, but digits has 10"


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).double().mean().item()


def test_each_run_of_a_pack_is_measured_on_its_own_labels(recipe, tmp_path):
    """Alpha and beta types side by side, and what each of them would show alone."""
    beta = {"noise": {"name": "symmetric", "rate": 0.5, "type": "beta"}}
    recipes = [recipe, recipe.replace(beta), recipe.replace({**beta, "seed": 1})]
    runs = train(recipes, RunStore(tmp_path / "pack"), device="cpu", keep=["test", "validation"])
    for one, run in zip(recipes, runs, strict=True):
        prepared = prepare(one.data, CPU).with_noise(one)
        for split in ("test", "validation"):
            said = run.predictions(split)
            assert torch.equal(said.labels, prepared.splits[split].labels)
            assert run.summary[f"{split}_accuracy"] == pytest.approx(accuracy(said.logits, said.labels))
            clean = prepared.splits[split].clean_labels
            if one.noise.on_held_out:
                assert torch.equal(said.clean_labels, clean)
                assert run.summary[f"{split}_clean_accuracy"] == pytest.approx(accuracy(said.logits, clean))
                expected = torch.nn.functional.cross_entropy(said.logits.double(), clean).item()
                assert run.summary[f"{split}_clean_loss"] == pytest.approx(expected, rel=1e-5)
            else:
                assert said.clean_labels is None
                assert not any("clean" in key for key in run.summary)
        (alone,) = train([one], RunStore(tmp_path / one.id), device="cpu")
        assert alone.history() == run.history()


def test_noise_on_test_labels_leaves_the_training_as_it_was(recipe, tmp_path):
    other = recipe.replace({"noise.type": "beta"})
    assert isinstance(other, Recipe)
    assert other.id != recipe.id
    first, second = train([recipe, other], RunStore(tmp_path), device="cpu")
    for name, value in first.weights().items():
        assert torch.equal(value, second.weights()[name])
    assert first.summary["test_accuracy"] == second.summary["test_clean_accuracy"]


def test_clean_labels_lie_beside_noisy_ones_in_files_that_calibrate_reads(recipe, tmp_path):
    (run,) = train([recipe], RunStore(tmp_path), device="cpu", keep=["train", "test"])
    said = run.predictions("train")
    assert 0 < (said.labels != said.clean_labels).sum() < len(said.labels)
    found = open_predictions(run.directory / "predictions" / "train.safetensors")
    assert torch.equal(torch.cat([labels for _, labels in found.chunks()]), said.labels)
