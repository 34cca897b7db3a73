"""Which runs may train together, and how many at a time."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from softtargets.losses import REGULARISERS, BetaSmoothing, DisturbLabel
from softtargets.recipes import Recipe
from softtargets.training.pack_loss import ALONE
from softtargets.training.teaching import asked_through

# Numbers of an optimiser that each run of a pack may have its own of.
_FREE = ("lr", "momentum", "dampening", "weight_decay", "betas", "eps")
# On a CPU a pack saves the time between small operations; nets larger than this keep the cores busy by themselves. And
# only products of matrices are the same, bit for bit, however many there are: convolutions are not stacked there.
CPU_MODELS = ("mlp",)
CPU_WEIGHTS = 300_000
CPU_RUNS = 32
# On a GPU nets of a few layers are computed as one, where `softtargets bench training` found that faster on an H200
# (benchmarks/training). Those with convolutions only in bf16, for which we have kernels that take many nets at a time.
# Deep nets are not: a stack of 16 ResNet-56 was about as fast as 16 streams, took longer to compile, and its batch
# norms would not keep their bits in other company.
GPU_MODELS = ("mlp", "cnn", "alexnet")
GPU_CONVOLVING = ("cnn", "alexnet")
GPU_RUNS = 128
# Larger nets run side by side, each on a stream of its own; beyond so many nothing more is gained.
GPU_STREAMS = 16
# Nets for photographs fill a GPU by themselves; side by side they would only share its memory and the decoders.
GPU_ALONE = ("resnet", "inception_v4")


class Arrangement(NamedTuple):
    """How many runs train together at most, and whether they are stacked or only share the device."""

    runs: int
    stacked: bool


def kind_of_run(recipe: Recipe) -> tuple[Any, ...]:
    """Runs of the same kind may train as one: same net, data and batches; seeds, rates, labels and losses may differ.

    >>> from softtargets.recipes import Digits, LabelSmoothing, MLP
    >>> one = Recipe(data=Digits(), model=MLP(), epochs=3)
    >>> other = one.replace({"seed": 5, "regulariser": LabelSmoothing(alpha=0.3), "epochs": 7})
    >>> kind_of_run(one) == kind_of_run(other), kind_of_run(one) == kind_of_run(one.replace({"batch": 64}))
    (True, False)
    """
    optimiser = recipe.optimiser
    choices = tuple((name, value) for name, value in vars(optimiser).items() if name not in _FREE)
    kind: tuple[Any, ...] = (
        recipe.data, recipe.model, recipe.batch, recipe.augmentation, recipe.precision, optimiser.name, choices,
        recipe.clip, recipe.average, recipe.average_last, recipe.best_by,
    )  # fmt: skip
    loss = REGULARISERS[recipe.regulariser.name]
    if issubclass(loss, ALONE):
        return (*kind, recipe.regulariser.name)
    if recipe.model.name == "transformer":
        # Losses that keep tables want logits, for others the net gives states: they do not share what computes it.
        kind += (loss.shares_state,)
    through, teacher = asked_through(recipe), recipe.teacher
    if through is None or teacher is None:
        return kind
    # Teachers are asked about augmented images in every step, all of them as one.
    theirs = through is not recipe and through.augmentation
    return (*kind, teacher.data, teacher.model, teacher.precision, theirs)


def arrangement(recipe: Recipe, weights: int, device: torch.device, fused: bool = False) -> Arrangement:
    """How runs of this kind, of nets with so many weights, train well together; `sizing` says if there is memory.

    `fused` are losses that have the last layer in them: they take one net at a time.
    """
    loss, net = REGULARISERS[recipe.regulariser.name], recipe.model.name
    on_cpu = device.type == "cpu"
    if not (fused or issubclass(loss, ALONE)) and stacks(net, weights, recipe.precision, on_cpu):
        return Arrangement(CPU_RUNS if on_cpu else GPU_RUNS, True)
    # Draws from torch's generator are of one stream at a time.
    draws = issubclass(loss, (BetaSmoothing, DisturbLabel)) or net in ("timm", "own")
    return Arrangement(1 if on_cpu or draws or net in GPU_ALONE else GPU_STREAMS, False)


def most_together(recipe: Recipe, device: torch.device) -> int:
    """How many runs of this kind train well together at most, where memory is no concern and its network small."""
    return arrangement(recipe, 0, device).runs


def stacks(net: str, weights: int, precision: str, on_cpu: bool) -> bool:
    """Whether such nets are computed as one, and a run is what it would be alone."""
    if on_cpu:
        return net in CPU_MODELS and weights <= CPU_WEIGHTS
    return net in GPU_MODELS and (net not in GPU_CONVOLVING or precision == "bf16")
