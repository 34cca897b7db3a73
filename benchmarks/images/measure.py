"""Images a second: of the input alone, and of training a ResNet with it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.images.contestants import Photographs, Setting
from softtargets.data import Decoding, Tries, decode_file
from softtargets.data.augment import ResizedCrop
from softtargets.models import ResNet
from softtargets.randomness import key_words, words
from softtargets.recipes import SGD, Flip, ImageFolder, Recipe
from softtargets.recipes import ResizedCrop as ResizedCropPart
from softtargets.recipes import ResNet as ResNetPart
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Start
from softtargets.training.precision import float32_products
from softtargets.training.tasks.images import ImageTask
from softtargets.training.tasks.images.streaming import Waiting


@dataclass(frozen=True)
class Measured:
    """A rate, and which share of the time the device had nothing to look at; None where it does nothing else."""

    images_per_second: float
    waited: float | None = None


def input_alone(batches: Iterator[tuple[Tensor, Tensor]], device: torch.device) -> Measured:
    """How fast batches come; the first two are not counted, in which processes start and crops are compiled."""
    for _ in range(2):
        next(batches)
    _finish(device)
    begun, count = time.perf_counter(), 0
    for images, _ in batches:
        count += len(images)
    _finish(device)
    return Measured(count / (time.perf_counter() - begun))


def host_milliseconds(setting: Setting, images: int = 64, turns: int = 5) -> dict[str, float]:
    """Processor time for each image on the host, by one thread: what decides how many cores a GPU needs.

    Ours ends with the pixels that are kept, since crops are made on the device, or, where that is a CPU, with those of
    the crop; theirs with a tensor of the crop.
    """
    photographs = Photographs(setting)
    torch.set_num_threads(1)  # others would spin, and their time would count
    places = range(min(images, len(photographs)))
    paths = [photographs.path(place) for place in places]

    def spent(one: Callable[[int], object]) -> float:
        best = math.inf
        for _ in range(turns):
            begun = time.process_time()
            for place in places:
                one(place)
            best = min(best, 1000 * (time.process_time() - begun) / len(places))
        return best

    tries = ResizedCrop(size=setting.crop).tries(
        words(key_words(0, "host"), torch.arange(len(paths))[:, None], 0, torch.arange(10)).flatten(-2)
    )
    ways = {f"ours, in {size} x {size}": Decoding(size, keep="picture") for size in (256, setting.size)}
    ways["ours, drafts in 144 x 144"] = Decoding(144, keep="picture", draft=True)
    ways["ours, crops"] = Decoding(setting.size, keep="picture", cut=setting.crop)
    found = {name: spent(partial(_decoded, paths, tries, how)) for name, how in ways.items()}
    return found | {"torchvision": spent(photographs.__getitem__)}


def _decoded(paths: Sequence[Path], tries: Sequence[Tries], how: Decoding, place: int) -> object:
    return decode_file(paths[place], how, tries[place])


def plain_training(batches: Iterator[tuple[Tensor, Tensor]], setting: Setting, classes: int) -> Measured:
    """The usual loop: a ResNet in bf16, channels last, compiled on a GPU."""
    device = setting.device
    first, _ = next(batches)
    height, width = first.shape[2:]
    model: torch.nn.Module = ResNet((3, height, width), classes, setting.depth).to(device)
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    forward = torch.compile(model) if device.type == "cuda" else model
    waiting, count, begun = Waiting(device), 0, 0.0
    for step in range(1 << 30):
        if step == 5:  # it is compiled and warm
            _finish(device)
            waiting.taken()
            begun, count = time.perf_counter(), 0
        waiting.begin()
        found = next(batches, None)
        if found is None:
            break
        images, labels = found
        waiting.end()
        with torch.autocast(device.type, torch.bfloat16):
            said = forward(images.contiguous(memory_format=torch.channels_last))
            loss = torch.nn.functional.cross_entropy(said.float(), labels)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        count += len(images)
    _finish(device)
    seconds = time.perf_counter() - begun
    return Measured(count / seconds, min(1.0, waiting.taken() / seconds))


def our_training(setting: Setting, kind: str, epochs: int) -> Measured:
    """The engine, as its loop trains a run, without its files.

    An epoch more than is counted comes first: in it the network is compiled, steps and measurements are recorded, and
    decoders start. Test images, of which there are few, are measured in every epoch, as always.
    """
    os.environ |= {"SOFTTARGETS_DECODERS": str(setting.workers), "SOFTTARGETS_DECODE_IN": kind}
    recipe = Recipe(
        data=ImageFolder(folder=setting.root.name, size=setting.size, keep="picture", draft=setting.draft),
        model=ResNetPart(depth=setting.depth),
        augmentation=(ResizedCropPart(size=setting.crop), Flip()),
        optimiser=SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
        epochs=1 + epochs,
        batch=setting.batch,
        precision="bf16",
    )
    task = ImageTask.prepare(recipe.data, setting.device, setting.root.parent)
    with float32_products(recipe.precision):
        fleet = Fleet([Start(recipe, task)], Machinery(recipe, task, setting.device, stacked=False))
        (slot,) = fleet.slots
        before, begun = 0, 0.0
        while not slot.done:
            if due := fleet.advance():
                fleet.measure(due)
                if not before:
                    _finish(setting.device)
                    fleet.waited()
                    before, begun = slot.units, time.perf_counter()
        _finish(setting.device)
    if slot.failure is not None:
        raise RuntimeError(f"the run diverged: {slot.failure}")
    seconds = time.perf_counter() - begun
    return Measured((slot.units - before) / seconds, min(1.0, (fleet.waited() or 0.0) / seconds))


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
