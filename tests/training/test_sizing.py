"""How much memory runs take, re-derived by hand and by counting what is alive."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.models import MLP, MODELS, Classifier
from softtargets.recipes import CNN, Adam, Crop, Distillation, Flip
from softtargets.training.sizing import (
    BACKWARD,
    USED,
    Footprint,
    MemoryCounter,
    activations,
    fitting,
    footprint,
)
from softtargets.training.tasks import prepare

from .making import advanced, started

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
FLOAT, LONG, BOOL = 4, 8, 1
OURS = [name for name in MODELS if name not in ("timm", "transformer", "own")]  # of images
SIDES = {"resnet": 32, "inception_v4": 75}  # the least that they are for


def images(count, shape, device="cpu"):
    return [torch.zeros(count, *shape, device=device)]


def need(recipe, device=CPU, stacked=True):
    return footprint(recipe, prepare(recipe.data, CPU), device, stacked)


# --- what layers remember ---


def test_what_a_fully_connected_net_remembers():
    """The images, and of each hidden layer what its ReLU says, which is also what the next layer is shown."""
    net = MLP(shape=(1, 8, 8), classes=10, hidden=(48, 24))
    found = activations(net, images(32, (1, 8, 8)), "fp32")
    assert found.saved == 32 * (64 + 48 + 24) * FLOAT
    assert found.shown == (64 + 48 + 48) * FLOAT, "shown an image: that, the first layer, and its ReLU"


def test_what_dropout_adds():
    """The mask, and what it leaves."""
    net = MLP(shape=(1, 8, 8), classes=10, hidden=(48,), dropout=0.5)
    assert activations(net, images(32, (1, 8, 8)), "fp32").saved == 32 * (
        64 * FLOAT + 48 * (2 * FLOAT + BOOL)
    )


def test_what_convolution_and_pooling_remember():
    """Images, what the ReLU says, which places the pooling chose, and what it says."""

    class Pooling(Classifier):
        def __init__(self):
            super().__init__()
            layers = nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
            self.body, self.head = nn.Sequential(*layers), nn.Linear(4 * 8 * 8, 10)

        def features(self, images):
            return self.body(images)

    whole, half = 16 * 16, 8 * 8
    found = activations(Pooling(), images(5, (3, 16, 16)), "fp32")
    assert found.saved == 5 * (3 * whole * FLOAT + 4 * (whole * FLOAT + half * LONG + half * FLOAT))
    assert found.shown == (3 + 4 + 4) * whole * FLOAT


@pytest.mark.parametrize("name", OURS)
def test_without_content_a_net_remembers_as_much_as_with_it(name):
    side = SIDES.get(name, 24)
    shape = (3, side, side)
    with torch.device("meta"):
        outline = MODELS[name](shape=shape, classes=10)
    without = activations(outline, images(2, shape, "meta"), "fp32")
    with_it = activations(MODELS[name](shape=shape, classes=10), images(2, shape), "fp32")
    assert without.saved == with_it.saved
    assert without.shown == pytest.approx(with_it.shown, rel=0.01)  # statistics of channels, on their way


def test_half_the_precision_is_half_the_activations():
    net = MODELS["resnet18"](shape=(3, 16, 16), classes=10, width=8)
    full = activations(net, images(4, (3, 16, 16)), "fp32")
    half = activations(net, images(4, (3, 16, 16)), "bf16")
    assert half.shown == pytest.approx(full.shown / 2, rel=0.01)
    assert half.saved == pytest.approx(full.saved / 2, rel=0.01)


@pytest.mark.parametrize("name", OURS)
def test_gradients_of_activations_take_no_more_than_is_allowed_for(name):
    """`BACKWARD` holds for all our nets: a whole step is computed here, with everything alive counted."""
    side = SIDES.get(name, 32)
    shape, batch = (3, side, side), 256
    with torch.device("meta"):
        net = MODELS[name](shape=shape, classes=10)
        images, labels = torch.zeros(batch, *shape), torch.zeros(batch, dtype=torch.int64)
    with MemoryCounter() as alive:
        gradients = torch.autograd.grad(F.cross_entropy(net(images), labels), list(net.parameters()))
    weights = sum(each.numel() for each in gradients) * FLOAT
    assert alive.most <= weights + BACKWARD * activations(net, [images], "fp32").saved


def test_a_net_that_looks_at_values_cannot_be_estimated():
    class Curious(Classifier):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)

        def features(self, images):
            return images.flatten(1) * (1 if images.mean().item() > 0 else 2)

    with torch.device("meta"):
        net = Curious()
    assert activations(net, images(2, (1, 8, 8), "meta"), "fp32") is None


# --- what a run takes ---


def test_the_footprint_of_a_small_net_by_hand(recipe):
    """64-32-10 with dropout and momentum on batches of 32 of 150 examples, shifted by up to a pixel."""
    weights = 64 * 32 + 32 + 32 * 10 + 10
    held = weights + weights  # themselves and their momentum
    copied = held  # for a checkpoint
    gradients = 2 * weights
    remembered = 32 * (64 * FLOAT + 32 * (2 * FLOAT + BOOL))
    loss = 4 * 32 * 10 * FLOAT
    tables = 150 * LONG * (3 + 12)
    by_hand = (held + copied + gradients) * FLOAT + 1.25 * (remembered + loss) + tables
    found = need(recipe)
    assert found.run == pytest.approx(by_hand, rel=0.01)
    assert found.example == (64 + 32 + 32) * FLOAT
    # The 500 images of the test set are shown to all ten; one that has ended is shown up to 1000 alone.
    assert found.of(10) == pytest.approx(10 * by_hand + (10 * 500 + 1000) * 128 * FLOAT, rel=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"model.hidden": [64, 64], "model.dropout": 0.0},
        {"optimiser": Adam(), "average": 0.99},
        {"batch": 100, "model.dropout": 0.0},
    ],
    ids=str,
)
def test_a_pack_takes_what_was_estimated(recipe, changes):
    """Of all that is alive while packs of 2 and of 6 train: between a third of the estimate and all of it."""
    varied = recipe.replace({"data.limit": 1000, "model.hidden": [256], **changes})

    def most(runs):
        recipes = [varied.replace({"seed": seed}) for seed in range(runs)]
        with MemoryCounter() as alive:
            advanced(started(*recipes, stacked=True), 1000 // varied.batch + 2)
        return alive.most

    estimate = need(varied).of(6) - need(varied).of(2)
    assert estimate / 3 < most(6) - most(2) < estimate


def test_more_of_anything_takes_more(recipe):
    def of(changes, **how):
        return need(recipe.replace(changes), **how).of(4)

    plain = of({})
    assert plain < of({"batch": 64}) < of({"batch": 128})
    assert plain < of({"model.hidden": [64]}) < of({"model.hidden": [64, 64]})
    assert plain < of({"average": 0.9})
    assert plain < of({"optimiser": Adam()}) < of({"optimiser": Adam(), "average": 0.9})
    assert plain < of({"data.limit": 1000})
    assert plain < of({"augmentation": [Crop(), Flip()]})
    assert plain < of({"regulariser": Distillation(teacher=recipe)})
    assert of({"augmentation": []}) < of(
        {"augmentation": [], "regulariser": Distillation(teacher=recipe.replace({"augmentation": []}))}
    )


def test_recorded_steps_keep_the_memory_of_the_smaller_batch_too(recipe):
    """On a GPU: 150 examples are four batches of 32 and one of 22, or five of 30."""
    uneven, even = recipe, recipe.replace({"batch": 30})
    without = need(uneven).run, need(even).run
    assert need(uneven, CUDA).run > without[0]
    assert need(even, CUDA).run == without[1]


def test_runs_side_by_side_share_less_than_a_stack(recipe):
    convolutional = recipe.replace({"model": CNN(channels=(4, 8), hidden=16)})
    stack, apart = need(convolutional, CUDA), need(convolutional, CUDA, stacked=False)
    assert stack.of(1) == apart.of(1)
    assert stack.of(32) < apart.of(32)


def test_fewer_runs_never_take_more(recipe):
    """Though a larger stack is measured on fewer images at a time."""
    found = Footprint(
        1, 1000, 10_000, lambda runs: max(100, 1000 // -(-runs // 16)), workspace=5, stacked=True
    )
    sizes = [found.of(runs) for runs in range(1, 65)]
    assert sizes == sorted(sizes)


# --- what fits ---


def test_as_many_as_fit_with_room_to_spare():
    found = Footprint(1000, 3, 9, lambda runs: 1000, workspace=50, stacked=False)
    for free in range(0, 200_000, 1111):
        runs = fitting(found, 16, free)
        assert 1 <= runs <= 16
        assert runs == 1 or found.of(runs) <= USED * free
        assert runs == 16 or found.of(runs + 1) > USED * free


def test_what_is_not_known_limits_nothing():
    found = Footprint(1000, 3, 9, lambda runs: 1000, workspace=50, stacked=False)
    assert fitting(None, 16, 10) == 16
    assert fitting(found, 16, None) == 16


# --- what is alive ---


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_is_alive_at_a_time(device):
    before = torch.ones(1000, device=device)
    with MemoryCounter() as alive:
        one = before + before
        two = one * 2
        assert alive.now == 8000
        del one
        three = two + before
        del two
        assert alive.now == 4000
        three.mul_(2)
        view = three.view(10, 100).t()
        before.add_(1)
    assert alive.now == 4000, "nothing new: changes in place, and views"
    assert alive.most == 8000
    del three
    assert alive.now == 4000, "a view keeps it"
    del view
    assert alive.now == 0


def test_what_is_kept_for_the_backward_pass_is_alive():
    weight = torch.ones(500, requires_grad=True)
    with MemoryCounter() as alive:
        total = weight.exp().exp().sum()
        held = alive.now
        total.backward()
    assert held == 2 * 500 * 4 + 4, "both results are needed again"
    assert alive.now == 500 * 4 + 4, "what is left is the gradient, and the sum"
