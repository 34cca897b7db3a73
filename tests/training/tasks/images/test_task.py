from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.data import Examples, load
from softtargets.exceptions import RecipeError
from softtargets.noise import symmetric
from softtargets.randomness import derive
from softtargets.recipes import (
    CIFAR100,
    CNN,
    MNIST,
    Clean,
    Crop,
    Digits,
    Flip,
    Pair,
    Recipe,
    Shift,
    Symmetric,
)
from softtargets.training.tasks import prepare
from softtargets.training.tasks.images import task as image_task
from softtargets.training.tasks.images.split import Split

CPU = torch.device("cpu")


@pytest.fixture
def coloured(monkeypatch):
    """Eleven training and four test images of 3 x 5 x 4 in place of any dataset."""
    random = np.random.default_rng(0)

    def images(count):
        low = np.array([0, 50, 100])[:, None, None]
        return random.integers(low, low + 100, (count, 3, 5, 4)).astype(np.uint8)

    classes = ("a", "b", "c")
    made = {
        "train": Examples(images(11), np.arange(11, dtype=np.int64) % 3, classes),
        "test": Examples(images(4), np.array([2, 0, 1, 2]), classes),
    }
    asked = []

    def fake_load(name, split, data_dir=None, **options):
        asked.append((name, split, data_dir, options))
        return made[split]

    monkeypatch.setattr(image_task, "load", fake_load)
    made["asked"] = asked
    return made


def split_of(examples, start, stop):
    return examples.images[start:stop].tolist(), examples.labels[start:stop].tolist()


def held(split):
    assert split.images.dtype == torch.uint8
    assert split.labels.dtype == torch.int64
    return split.images.tolist(), split.labels.tolist()


@pytest.mark.parametrize(
    ("validation", "limit", "trained"),
    [(0, None, 11), (3, None, 8), (3, 5, 5), (0, 4, 4), (3, 8, 8), (10, None, 1), (10, 1, 1)],
)
def test_training_is_the_beginning_and_validation_the_end(coloured, validation, limit, trained):
    prepared = prepare(MNIST(validation=validation, limit=limit), CPU)
    assert held(prepared.splits["train"]) == split_of(coloured["train"], 0, trained)
    assert held(prepared.splits["test"]) == split_of(coloured["test"], 0, 4)
    assert list(prepared.splits) == (["train", "validation", "test"] if validation else ["train", "test"])
    if validation:
        assert held(prepared.splits["validation"]) == split_of(coloured["train"], 11 - validation, 11)
    assert prepared.classes == ("a", "b", "c")
    assert prepared.shape == (3, 5, 4)
    assert {name: len(split) for name, split in prepared.splits.items()} == {
        name: len(split.labels) for name, split in prepared.splits.items()
    }


def test_a_limit_beyond_the_data_is_refused(coloured):
    with pytest.raises(RecipeError, match=r"data\.limit: 9 is more than the 8 training examples"):
        prepare(MNIST(validation=3, limit=9), CPU)


def test_without_noise_the_labels_are_the_clean_ones(coloured):
    for split in prepare(MNIST(validation=2), CPU).splits.values():
        assert torch.equal(split.labels, split.clean_labels)


@pytest.mark.parametrize("validation", [11, 12, 1000])
def test_a_validation_set_that_leaves_nothing_to_train_on_is_refused(coloured, validation):
    with pytest.raises(RecipeError) as caught:
        prepare(MNIST(validation=validation), CPU)
    assert str(caught.value) == (
        f"data.validation: {validation} leaves nothing to train on: mnist has 11 training examples"
    )


def test_the_reader_is_told_the_directory_and_the_options(coloured, tmp_path):
    prepare(CIFAR100(coarse=True, labels="noisy"), CPU, tmp_path)
    options = {"coarse": True, "labels": "noisy"}
    assert coloured["asked"] == [("cifar100", split, tmp_path, options) for split in ("train", "test")]


def test_unit_standardisation_divides_by_255(coloured):
    prepared = prepare(MNIST(), CPU)
    images = prepared.splits["test"].images
    found = prepared.standardise(images)
    assert found.dtype == torch.float32
    expected = [value / 255 for value in images.flatten().tolist()]
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-6)


def test_channel_standardisation_makes_the_training_mean_0_and_deviation_1(coloured):
    prepared = prepare(MNIST(standardise="channel"), CPU)
    found = prepared.standardise(prepared.splits["train"].images).double()
    for channel in range(3):
        values = found[:, channel].flatten().tolist()
        mean = math.fsum(values) / len(values)
        assert mean == pytest.approx(0, abs=1e-6)
        assert math.fsum((v - mean) ** 2 for v in values) / len(values) == pytest.approx(1, rel=1e-5)


def test_channel_standardisation_uses_what_is_trained_on_and_nothing_else(coloured):
    prepared = prepare(MNIST(standardise="channel", validation=3, limit=4), CPU)
    seen = coloured["train"].images[:4].astype(np.float64)
    test = coloured["test"].images.astype(np.float64)
    found = prepared.standardise(prepared.splits["test"].images)
    for channel in range(3):
        values = seen[:, channel].ravel().tolist()
        mean = math.fsum(values) / len(values)
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
        expected = [(v - mean) / deviation for v in test[:, channel].ravel().tolist()]
        assert found[:, channel].flatten().tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_channel_standardisation_of_many_images_is_exact():
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (5000, 2, 3, 3), generator=generator, dtype=torch.uint8)
    labels = torch.zeros(len(images), dtype=torch.int64)
    found = image_task.standardiser("channel", Split(images, labels, labels))(images).double()
    assert found.mean((0, 2, 3)).abs().max().item() < 1e-6
    assert found.var((0, 2, 3), correction=0).tolist() == pytest.approx([1, 1], rel=1e-6)


def test_a_channel_that_is_the_same_everywhere_becomes_zero():
    images = torch.full((4, 1, 2, 2), 37, dtype=torch.uint8)
    labels = torch.zeros(len(images), dtype=torch.int64)
    assert image_task.standardiser("channel", Split(images, labels, labels))(images).abs().max().item() == 0


def test_image_standardisation_is_tensorflows(coloured):
    prepared = prepare(MNIST(standardise="image"), CPU)
    images = prepared.splits["test"].images
    for after, before in zip(prepared.standardise(images), images, strict=True):
        values = [value / 255 for value in before.flatten().tolist()]
        mean = math.fsum(values) / len(values)
        deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
        adjusted = max(deviation, 1 / math.sqrt(len(values)))
        assert after.flatten().tolist() == pytest.approx([(v - mean) / adjusted for v in values], abs=1e-5)


def test_a_flat_image_does_not_blow_up():
    images = torch.full((1, 3, 4, 4), 200, dtype=torch.uint8)
    images[0, 0, 0, 0] = 201
    values = [float(value) for value in images.flatten().tolist()]
    mean = sum(values) / 48
    labels = torch.zeros(len(images), dtype=torch.int64)
    found = image_task.standardiser("image", Split(images, labels, labels))(images)
    assert found.flatten().tolist() == pytest.approx([(v - mean) * math.sqrt(48) for v in values], abs=1e-4)


def test_each_image_is_standardised_on_its_own(coloured):
    prepared = prepare(MNIST(standardise="image"), CPU)
    images = prepared.splits["test"].images
    together = prepared.standardise(images)
    for position in range(len(images)):
        alone = prepared.standardise(images[position : position + 1])
        torch.testing.assert_close(together[position : position + 1], alone)


def test_noise_touches_training_labels_only(coloured):
    clean = prepare(MNIST(validation=4), CPU)
    noisy = clean.with_noise(noisy_recipe(Symmetric(rate=1), 0))
    before, after = clean.splits["train"], noisy.splits["train"]
    assert not (after.labels == before.labels).any()
    assert torch.equal(after.clean_labels, before.labels)
    assert torch.equal(after.images, before.images)
    for name in ("validation", "test"):
        assert noisy.splits[name] is clean.splits[name]
    assert (noisy.classes, noisy.standardise) == (clean.classes, clean.standardise)
    assert torch.equal(clean.splits["train"].labels, clean.splits["train"].clean_labels)


def test_noise_comes_from_the_seed_for_noise(coloured):
    clean = prepare(MNIST(), CPU)
    found = clean.with_noise(noisy_recipe(Symmetric(rate=0.7), 5)).splits["train"].labels
    assert found.dtype == torch.int64
    labels = coloured["train"].labels
    assert found.tolist() == symmetric(labels, 0.7, 3, derive(5, "noise")).tolist()
    assert torch.equal(found, clean.with_noise(noisy_recipe(Symmetric(rate=0.7), 5)).splits["train"].labels)
    others = [
        clean.with_noise(noisy_recipe(Symmetric(rate=0.7), seed)).splits["train"].labels
        for seed in range(6, 9)
    ]
    assert not all(torch.equal(found, other) for other in others)


def test_noise_starts_from_the_clean_labels_even_twice(coloured):
    clean = prepare(MNIST(), CPU)
    once = clean.with_noise(noisy_recipe(Pair(rate=1), 0))
    twice = once.with_noise(noisy_recipe(Pair(rate=1), 0))
    assert twice.splits["train"].labels.tolist() == [
        (label + 1) % 3 for label in coloured["train"].labels.tolist()
    ]


def test_no_noise_is_the_same_data(coloured):
    clean = prepare(MNIST(), CPU)
    assert clean.with_noise(noisy_recipe(Clean(), 0)) is clean


def noisy_recipe(noise, seed):
    return Recipe(data=MNIST(), model=CNN(), epochs=1, noise=noise, seed=seed)


def recipe(*augmentation):
    return Recipe(data=MNIST(), model=CNN(), epochs=1, augmentation=augmentation)


@pytest.mark.parametrize(
    ("augmentation", "shape"),
    [
        ((), (3, 5, 4)),
        ((Shift(), Flip()), (3, 5, 4)),
        ((Crop(padding=2),), (3, 5, 4)),
        ((Crop(size=4),), (3, 4, 4)),
        ((Crop(size=4), Crop(size=2)), (3, 2, 2)),
        ((Flip(), Crop(size=3), Shift()), (3, 3, 3)),
    ],
)
def test_the_net_and_evaluation_see_what_the_crops_leave(coloured, augmentation, shape):
    prepared = prepare(MNIST(), CPU)
    assert prepared.input_shape(recipe(*augmentation)) == shape
    assert prepared.evaluation_inputs(recipe(*augmentation), prepared.splits["test"].images).shape == (
        4,
        *shape,
    )


@pytest.mark.parametrize(
    ("augmentation", "message"),
    [
        ((Crop(size=5),), "augmentation.0.size: 5 is larger than the image of 5 x 4"),
        ((Flip(), Crop(size=6, padding=9)), "augmentation.1.size: 6 is larger than the image of 5 x 4"),
        ((Crop(size=2), Crop(size=3)), "augmentation.1.size: 3 is larger than the image of 2 x 2"),
    ],
)
def test_a_crop_larger_than_the_image_is_refused(coloured, augmentation, message):
    with pytest.raises(RecipeError) as caught:
        prepare(MNIST(), CPU).input_shape(recipe(*augmentation))
    assert str(caught.value) == message


def test_evaluation_sees_the_middle(coloured):
    prepared = prepare(MNIST(), CPU)
    images = prepared.splits["test"].images
    found = prepared.evaluation_inputs(recipe(Flip(), Crop(size=3, padding=4)), images)
    assert torch.equal(found, images[:, :, 1:4, 0:3].float() / 255)


def test_evaluation_without_crops_sees_the_images_themselves(coloured):
    prepared = prepare(MNIST(), CPU)
    images = prepared.splits["test"].images
    found = prepared.evaluation_inputs(recipe(Shift(), Crop(padding=2), Flip()), images)
    assert torch.equal(found, images.float() / 255)


def test_the_digits_as_they_are_really_cut():
    prepared = prepare(Digits(validation=297, limit=800), CPU)
    assert {name: len(split) for name, split in prepared.splits.items()} == {
        "train": 800,
        "validation": 297,
        "test": 500,
    }
    assert prepared.shape == (1, 8, 8)
    train = load("digits", "train")
    assert prepared.splits["validation"].labels.tolist() == train.labels[1000:].tolist()
    assert prepared.splits["train"].labels.tolist() == train.labels[:800].tolist()
    for split in prepared.splits.values():
        assert split.labels.unique().tolist() == list(range(10))
