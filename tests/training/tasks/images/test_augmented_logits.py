from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from softtargets.exceptions import RecipeError
from softtargets.information import mixture_information
from softtargets.models import Classifier
from softtargets.randomness import key_words
from softtargets.recipes import Brightness, Calibration, Crop, Flip, Information, Shift
from softtargets.runs import RunStore
from softtargets.training import Watcher, train
from softtargets.training.building import build_model
from softtargets.training.probing import probed
from softtargets.training.tasks import Moment, prepare
from softtargets.training.tasks.images import ImageTask, Split
from softtargets.training.tasks.images.augmented_logits import (
    augmented_differences,
    chosen_examples,
    stands_still,
)

from ...making import CPU, advanced, finished, same, started, states

EVERY_3 = Information(every=3, classes=(3, 8), examples=10)
NATS = "information.train_3_8_nats"


class Stub(Classifier):
    """Class 0 gets what `says` makes of each image, all others get 0."""

    def __init__(self, says):
        super().__init__()
        self.says = says
        self.head = nn.Linear(1, 3, bias=False)
        self.head.weight.data = torch.tensor([[1.0], [0.0], [0.0]])

    def features(self, images):
        return self.says(images).reshape(-1, 1)


def grey(count=40):
    """Images of one grey each, 5 apart, classes 0 and 1 in turn; a net is shown values from 0 to 255."""
    images = (5 * torch.arange(count, dtype=torch.uint8)).reshape(-1, 1, 1, 1).expand(-1, 1, 2, 2)
    labels = torch.arange(count) % 2
    return ImageTask({"train": Split(images, labels, labels)}, ("a", "b", "c"), lambda shown: shown.float())


def found(recipe, says, prepared, augmentation, examples=20, draws=5):
    probe = Information(classes=(0, 1), examples=examples, draws=draws)
    watched = recipe.replace({"augmentation": augmentation, "probes": [probe]})
    row = probed(Moment(watched, 4000, Stub(says).eval(), prepared), at_the_end=False)
    assert row.keys() == {f"information.train_0_1_{name}" for name in ("nats", "standard_error", "bound")}
    return [row[f"information.train_0_1_{name}"] for name in ("nats", "standard_error", "bound")]


def brightness(images):
    return images.mean((1, 2, 3))


def test_logits_that_ignore_the_input_say_nothing(recipe):
    nats, error, bound = found(recipe, lambda images: 0 * brightness(images), grey(), [Brightness(delta=9)])
    assert (nats, error, bound) == (0, 0, math.log(40))


def test_logits_that_only_follow_the_augmentation_say_nothing(recipe):
    black = grey()
    split = Split(torch.zeros_like(black.splits["train"].images), *[black.splits["train"].labels] * 2)
    black = ImageTask({"train": split}, black.classes, black.standardise)
    nats, error, _ = found(recipe, brightness, black, [Brightness(delta=9)])
    assert 0 < error < 0.1
    assert abs(nats) < 0.15


def test_logits_that_tell_all_examples_apart_say_all_there_is(recipe):
    nats, error, bound = found(recipe, brightness, grey(), [Brightness(delta=0.1)])
    assert nats == pytest.approx(math.log(40), abs=1e-9)
    assert error < 1e-6
    assert bound == math.log(40)


def test_logits_that_collapse_to_two_clusters_say_log_2(recipe):
    def parity(images):  # of the nearest multiple of 5, with a trace of the noise
        shown = brightness(images)
        return 10 * ((shown / 5).round() % 2) + 0.1 * (shown - 5 * (shown / 5).round())

    nats, _, bound = found(recipe, parity, grey(), [Brightness(delta=0.1)])
    assert nats == pytest.approx(math.log(2), abs=0.03)
    assert bound == math.log(40)


def test_what_lies_between_is_what_a_mixture_of_bells_has(recipe):
    # Many small steps of brightness make nearly normal noise: 12 uniform numbers of variance delta^2 / 3 each.
    delta = 2.0
    nats, error, _ = found(recipe, brightness, grey(), [Brightness(delta=delta)] * 12, draws=12)
    truth = mixture_information(5.0 * torch.arange(40), math.sqrt(12 * delta**2 / 3))
    assert 0.5 < truth < math.log(40) - 0.5
    assert abs(nats - truth) < max(4 * error, 0.1)


def test_a_net_that_says_no_numbers_of_some_image_finds_nothing_and_goes_on(recipe):
    nats, error, bound = found(recipe, lambda images: brightness(images).log(), grey(), [Brightness(delta=9)])
    assert (nats, error, bound) == (None, None, math.log(40))


@pytest.mark.parametrize(
    "augmentation", [[Shift(pixels=2)], [Crop(padding=1, size=7), Flip(), Crop(padding=0, size=5)]]
)
def test_samples_made_one_by_one(recipe, augmentation):
    """Every image by itself, and the definition of which are looked at with a loop over labels."""
    recipe = recipe.replace({"augmentation": augmentation, "model.dropout": 0.5})
    prepared = prepare(recipe.data, CPU).with_noise(recipe)
    view = prepared.view(recipe)
    model = build_model(recipe, prepared).train()
    samples = augmented_differences(Moment(recipe, 7, model, prepared), "train", (3, 8), examples=6, draws=4)
    assert model.training, "left as it was"
    split = prepared.splits["train"]
    places = []
    for label in (3, 8):
        places += [place for place, read in enumerate(split.clean_labels.tolist()) if read == label][:6]
    assert samples.shape == (12, 4)
    model.eval()
    for row, place in enumerate(places):
        for draw in range(4):
            key = key_words(recipe.seed, f"information/train/{draw}")
            drawn = view.draw(key, torch.tensor([place]), epoch=7)
            shown = prepared.standardise(view.apply(split.images[place : place + 1], drawn))
            logits = model(shown)[0].detach()
            assert float(samples[row, draw]) == pytest.approx(float(logits[3] - logits[8]), abs=1e-5)


def test_blocks_give_what_one_block_gives(recipe, monkeypatch):
    from softtargets.training.tasks.images import augmented_logits

    prepared = prepare(recipe.data, CPU)
    model = build_model(recipe, prepared)
    ask = (Moment(recipe, 3, model, prepared), "train", (3, 8), 10, 5)
    whole = augmented_differences(*ask)
    for size in (1, 7, 23):
        monkeypatch.setattr(augmented_logits, "BATCH", size)
        assert torch.allclose(augmented_differences(*ask), whole, atol=1e-5)


def test_draws_are_other_ones_for_other_steps_seeds_and_splits_and_the_same_ones_again(recipe):
    prepared = prepare(recipe.data, CPU)
    splits = prepared.splits | {"test": prepared.splits["train"]}
    prepared = ImageTask(splits, prepared.classes, prepared.standardise)
    model = build_model(recipe, prepared)

    def samples(recipe=recipe, step=3, split="train", draws=5):
        return augmented_differences(Moment(recipe, step, model, prepared), split, (3, 8), 10, draws)

    assert torch.equal(samples(), samples())
    assert torch.allclose(samples(draws=9)[:, :5], samples(), atol=1e-5), (
        "more draws leave the others as they are"
    )
    for other in (samples(step=4), samples(recipe.replace({"seed": 1})), samples(split="test")):
        assert float((other == samples()).double().mean()) < 0.5


def test_the_same_examples_whatever_the_label_noise(recipe):
    prepared = prepare(recipe.data, CPU)
    noisy = prepared.with_noise(recipe.replace({"noise.rate": 0.9, "seed": 1}))
    chosen = chosen_examples(noisy.splits["train"], (3, 8), 10)
    assert torch.equal(chosen, chosen_examples(prepared.splits["train"], (3, 8), 10))
    assert prepared.splits["train"].labels[chosen].tolist() == [3] * 10 + [8] * 10


@pytest.mark.parametrize("others", [0, 2])
def test_the_probe_leaves_the_trajectory_as_it_is_bit_for_bit(recipe, others):
    beside = [recipe.replace({"seed": 1 + number}) for number in range(others)]
    looked = finished(started(recipe.replace({"probes": [EVERY_3]}), *beside))
    bare = finished(started(recipe, *beside))
    assert same(states(looked), states(bare))
    measured = {row["step"]: row for row in looked.slots[0].history}
    for row in bare.slots[0].history:
        for key in ("test_loss", "test_accuracy", "validation_loss"):
            assert measured[row["step"]][key] == row[key]
    assert [step for step, row in measured.items() if NATS in row] == [3, 6, 9, 12, 15, 18, 20]


def test_the_numbers_survive_a_resume(recipe, tmp_path):
    watched = recipe.replace({"probes": [EVERY_3]})
    (whole,) = train([watched], RunStore(tmp_path / "whole"), device="cpu")

    class Stop(Watcher):
        def epoch(self, recipe, row):
            if row["step"] == 9:
                raise RuntimeError("power cut")

    store = RunStore(tmp_path / "cut")
    with pytest.raises(RuntimeError):
        train([watched], store, device="cpu", watcher=Stop(), checkpoint_seconds=0)
    (resumed,) = train([watched], store, device="cpu")
    assert resumed.history() == whole.history()
    assert resumed.summary[NATS] == whole.summary[NATS]
    bound = resumed.summary["information.train_3_8_bound"]
    assert bound == math.log(20)
    assert -0.5 < resumed.summary[NATS] <= bound


def test_a_run_finds_the_same_in_any_company(recipe):
    watched = recipe.replace({"probes": [EVERY_3], "epochs": 2})
    alone = finished(started(watched, stacked=True)).slots[0].history
    beside = finished(started(watched, recipe.replace({"seed": 5, "epochs": 2}))).slots[0].history
    assert [row.get(NATS) for row in alone] == [row.get(NATS) for row in beside]


def test_it_looks_at_the_net_in_the_precision_of_the_recipe(recipe):
    low = recipe.replace({"precision": "bf16"})
    prepared = prepare(recipe.data, CPU)
    model = build_model(recipe, prepared)
    rough, fine = (
        augmented_differences(Moment(each, 3, model, prepared), "train", (3, 8), 10, 5)
        for each in (low, recipe)
    )
    assert not torch.equal(rough, fine)
    assert torch.allclose(rough, fine, atol=0.05)


def test_several_pairs_beside_another_probe(recipe):
    probes = [Calibration(every=5), EVERY_3, Information(every=5, split="test", classes=(8, 3), examples=20)]
    pack = advanced(started(recipe.replace({"probes": probes})), 5)
    names = [name for name in pack.slots[0].history[-1] if "." in name]
    assert names == [
        "calibration.test_ece", "calibration.test_confidence", "information.test_8_3_nats",
        "information.test_8_3_standard_error", "information.test_8_3_bound",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("probe", "changes", "message"),
    [
        (
            {"classes": (0, 10)},
            {},
            r"probes.0.classes.1: 10 is not a class of digits, which has classes 0 to 9",
        ),
        (
            {"examples": 99},
            {},
            r"probes.0.examples: 99 examples of class 3 are needed, but train has 1\d; give at most 1\d",
        ),
        (
            {"examples": 9},
            {"data.limit": 1, "batch": 1},
            "9 examples of class 8 are needed, but train has none; look at another class or split",
        ),
        (
            {},
            {"augmentation": [Flip(probability=0)]},
            "probes.0: the recipe's augmentation never changes an image",
        ),
        (
            {},
            {"augmentation": [Crop(padding=0)]},
            "probes.0: the recipe's augmentation never changes an image",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_refused_before_anything_is_trained(
    recipe, probe, changes, message, tmp_path
):
    store = RunStore(tmp_path)
    good = recipe.replace({"seed": 1, "probes": [EVERY_3]})
    options = {"classes": (3, 8), "examples": 10} | probe
    with pytest.raises(RecipeError, match=message.replace(".0", r"\.0")):
        train([good, recipe.replace(changes | {"probes": [Information(**options)]})], store, device="cpu")
    assert store.entries() == []


@pytest.mark.parametrize(
    ("augmentation", "still"),
    [
        ([Shift(pixels=1)], False),
        ([Flip(probability=1)], True),
        ([Flip(probability=0.01)], False),
        ([Brightness(delta=0), Crop(padding=0)], True),
        ([Brightness(delta=0), Crop(padding=0, size=7)], False),
        ([{"name": "affine"}], True),
        ([{"name": "rotation", "degrees": 0}], True),
        ([{"name": "contrast", "low": 0.5, "high": 0.5}], True),
    ],
)
def test_augmentation_that_changes_nothing_is_noticed(recipe, augmentation, still):
    recipe = recipe.replace({"augmentation": augmentation})
    assert stands_still(recipe, prepare(recipe.data, CPU)) is still


@pytest.mark.cuda
def test_a_gpu_finds_what_a_cpu_finds(recipe):
    model = build_model(recipe, prepare(recipe.data, CPU))
    found = []
    for device in (CPU, torch.device("cuda")):
        prepared = prepare(recipe.data, device)
        moment = Moment(recipe, 3, model.to(device), prepared)
        found.append(augmented_differences(moment, "train", (3, 8), 10, 5).cpu().numpy())
    np.testing.assert_allclose(found[0], found[1], atol=1e-4)
