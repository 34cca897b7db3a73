from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks.training import eager, images
from benchmarks.training.eager import EagerLoop, standardiser
from benchmarks.training.images import Images
from benchmarks.training.nets import TRAINED, TRAININGS
from softtargets.data.augment import centre
from softtargets.recipes import (
    MLP,
    SGD,
    Adam,
    Brightness,
    Cosine,
    Crop,
    CrossEntropy,
    Digits,
    Flip,
    LabelSmoothing,
    Linear,
    PreActResNet,
    Recipe,
    Shift,
    Symmetric,
)
from softtargets.training.tasks import prepare
from training.making import advanced, started

CPU = torch.device("cpu")
EASY = Recipe(
    data=Digits(),
    model=MLP(hidden=(32,)),
    regulariser=LabelSmoothing(alpha=0.1),
    optimiser=SGD(lr=0.1, momentum=0.9),
    epochs=4,
    batch=32,
)


@pytest.fixture(scope="module")
def digits() -> Images:
    return Images.read(Digits(), CPU)


def first(images: Images, count: int) -> Images:
    return replace(images, train=images.train[:count], train_labels=images.train_labels[:count])


def test_it_shares_nothing_with_what_it_is_compared_with():
    for module in (eager, images):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            name = getattr(node, "module", None) or ""
            assert not name.startswith(
                ("softtargets.training", "softtargets.losses", "softtargets.data.augment")
            )


def test_it_learns(digits):
    loop = EagerLoop(replace(EASY, augmentation=(Shift(pixels=1),)), digits)
    epochs = [loop.epoch() for _ in range(4)]
    assert epochs[-1].test_accuracy > 0.85  # chance is 0.1
    assert epochs[-1].train_loss < epochs[0].train_loss
    assert epochs[-1].test_loss < 0.8


class Seen(nn.Module):
    """Instead of a net: notes what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.batches: dict[bool, list[torch.Tensor]] = {True: [], False: []}

    def forward(self, inputs):
        self.batches[self.training].append((inputs * 255).round().int().flatten())
        return self.weight + torch.zeros(len(inputs), 10)


def test_it_sees_every_example_once_per_epoch_in_another_order():
    numbers = torch.arange(250, dtype=torch.uint8)[:, None, None, None]
    images = Images(
        numbers, numbers.flatten().long() % 10, numbers, numbers.flatten() % 10, tuple("0123456789")
    )
    loop = EagerLoop(EASY, images)
    loop.net = seen = Seen()
    loop.epoch()
    loop.epoch()
    batches = seen.batches[True]
    assert [len(batch) for batch in batches] == [*[32] * 7, 26] * 2
    epochs = [torch.cat(batches[:8]), torch.cat(batches[8:])]
    for epoch in epochs:
        assert epoch.sort().values.tolist() == list(range(250))
    assert not torch.equal(*epochs)
    assert torch.cat(seen.batches[False]).tolist() == [*range(250)] * 2  # the test set, once after each epoch


@pytest.mark.parametrize(
    "recipe",
    [
        replace(TRAINED["fcn"].recipe, model=MLP(hidden=(20,), init_std=0.1), schedule=Linear(), epochs=3),
        TRAINED["alexnet"].recipe,
        replace(TRAINED["resnet56"].recipe, model=PreActResNet(depth=8), clip=0.1),
        replace(TRAINED["resnet18"].recipe, model=MLP(hidden=(20,))),
    ],
    ids=["fcn", "alexnet", "resnet56", "resnet18"],
)
def test_it_takes_the_steps_that_the_engine_takes(recipe, digits):
    # The whole training set is one batch and nothing is drawn, so both must come to the same weights.
    count = 12
    data = Digits(limit=count, standardise=recipe.data.standardise)
    recipe = replace(recipe, data=data, augmentation=(), batch=count)
    decay = 0.1 if recipe.optimiser.weight_decay else 0.0  # enough to be seen after three steps
    recipe = replace(recipe, optimiser=replace(recipe.optimiser, lr=0.05, weight_decay=decay))
    pack = started(recipe)
    loop = EagerLoop(recipe, first(digits, count))
    loop.net.load_state_dict(pack.on_device.nets.state(0))
    advanced(pack, 3)
    epochs = [loop.epoch() for _ in range(3)]
    for name, wanted in pack.on_device.nets.state(0).items():
        found = loop.net.state_dict()[name]
        assert torch.allclose(found, wanted, rtol=1e-3, atol=2e-5), name
    (row,) = pack.slots[0].history[-1:]
    assert epochs[-1].test_accuracy == pytest.approx(row["test_accuracy"], abs=0.01)
    assert epochs[-1].test_loss == pytest.approx(row["test_loss"], rel=1e-3)


@pytest.mark.parametrize("kind", ["unit", "channel", "image"])
def test_pixels_are_standardised_as_the_engine_does(kind, digits):
    ours = prepare(Digits(standardise=kind), CPU).standardise
    assert torch.allclose(standardiser(kind, digits.train)(digits.test), ours(digits.test), atol=1e-5)


def test_a_flat_image_does_not_blow_up():
    flat = torch.full((1, 3, 4, 4), 7, dtype=torch.uint8)
    assert standardiser("image", flat)(flat).abs().max() == 0


def windows(image, padding, size):
    padded = torch.nn.functional.pad(image, (padding,) * 4)
    edge = padded.shape[-1] - size + 1
    return [padded[:, i : i + size, j : j + size] for i in range(edge) for j in range(edge)]


@pytest.mark.parametrize(
    ("part", "padding", "size"),
    [(Shift(pixels=1), 1, 5), (Crop(padding=2), 2, 5), (Crop(padding=0, size=3), 0, 3)],
)
def test_every_window_comes_up_and_nothing_else(part, padding, size):
    image = torch.randint(1, 256, (3, 5, 5), dtype=torch.uint8)
    images = Images.random((3, 5, 5), 4, 4, 10, CPU)
    loop = EagerLoop(replace(EASY, augmentation=(part,)), images)
    shown = loop._augment(image.expand(2000, -1, -1, -1))
    wanted = windows(image, padding, size)
    counts = [int((shown == window).flatten(1).all(1).sum()) for window in wanted]
    assert sum(counts) == 2000
    expected = 2000 / len(wanted)
    assert all(0.3 * expected < count < 2 * expected for count in counts)
    if size == 3:
        assert torch.equal(loop._centre(images.test), centre(images.test, 3))


def test_about_half_of_the_images_are_mirrored():
    images = Images.random((3, 5, 5), 400, 4, 10, CPU)
    shown = EagerLoop(replace(EASY, augmentation=(Flip(),)), images)._augment(images.train)
    mirrored = (shown == images.train.flip(-1)).flatten(1).all(1)
    kept = (shown == images.train).flatten(1).all(1)
    assert (mirrored | kept).all()
    assert 150 < mirrored.sum() < 250


def test_runs_differ_by_seed_and_not_otherwise(digits):
    one, again, other = (
        EagerLoop(replace(EASY, seed=seed, augmentation=(Shift(),)), first(digits, 100)).epoch()
        for seed in (0, 0, 1)
    )
    assert one == again != other


def test_torchs_own_generator_is_left_alone(digits):
    before = torch.get_rng_state()
    EagerLoop(EASY, first(digits, 50)).epoch()
    assert torch.equal(torch.get_rng_state(), before)


def test_bf16_computes_something_else(digits):
    plain, rounded = (EagerLoop(EASY, first(digits, 100), bf16=bf16).epoch() for bf16 in (False, True))
    assert plain != rounded
    assert plain.train_loss == pytest.approx(rounded.train_loss, rel=0.05)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"optimiser": Adam()}, "knows SGD and label smoothing only"),
        ({"regulariser": CrossEntropy()}, "knows SGD and label smoothing only"),
        ({"regulariser": LabelSmoothing(spread="others")}, "the smoothing goes to all classes"),
        ({"schedule": Cosine()}, "the schedule is constant or falls to 0"),
        ({"schedule": Linear(warmup=3)}, "the schedule is constant or falls to 0"),
        ({"optimiser": SGD(rates=(("head.*", 0.1),))}, "all layers have one rate"),
        (
            {"optimiser": SGD(weight_decay=0.1, decay_on=("head.weight",))},
            "chosen layers are decayed in the loss",
        ),
        ({"augmentation": (Brightness(),)}, "images are cropped, shifted or mirrored"),
        ({"noise": Symmetric()}, "labels are clean"),
        ({"average": 0.9}, "weights are not averaged"),
        ({"epochs": None, "steps": 5}, "the length is given in epochs"),
    ],
)
def test_what_it_does_not_do_is_refused(changes, message, digits):
    with pytest.raises(ValueError, match=message):
        EagerLoop(replace(EASY, **changes), digits)


def test_it_knows_every_training_that_accuracies_are_compared_on():
    for recipe in TRAININGS.values():
        shape = (3, 32, 32) if recipe.data.name == "cifar10" else (1, 28, 28)
        loop = EagerLoop(recipe, Images.random(shape, 2, 2, 10, CPU))
        assert sum(weight.numel() for weight in loop.net.parameters()) > 10_000
