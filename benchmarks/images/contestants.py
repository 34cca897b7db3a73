"""Ways from image files to augmented batches on a device: ours, and torchvision's transforms in torch's DataLoader.

Where torchvision cannot be imported, its two transforms are here as its own code has them on Pillow's images.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softtargets.calibration import one_thread
from softtargets.data import image_files
from softtargets.data.augment import Flip, ResizedCrop, View
from softtargets.randomness import key_words, permutation
from softtargets.training.tasks.images.streaming import Ahead, Room, Streamed, Wanted, put_into

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Setting:
    """What is measured: crops of `crop` from the files below `root`; ours keeps at most `size` x `size` of each."""

    root: Path
    size: int
    crop: int
    batch: int
    workers: int
    device: torch.device
    draft: bool = False
    depth: int = 50  # of the ResNet that is trained


def ours(setting: Setting, kind: str, epochs: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Decoded by threads or processes, augmented on the device; labels are not needed to take time."""
    os.environ |= {"SOFTTARGETS_DECODERS": str(setting.workers), "SOFTTARGETS_DECODE_IN": kind}
    found = image_files(
        "image-folder", "train", setting.root, size=setting.size, keep="picture", draft=setting.draft
    )
    assert found is not None
    index, how = found
    files = Streamed(index, how, setting.device)
    view = View([ResizedCrop(size=setting.crop), Flip()], (3, setting.size, setting.size))
    mean, deviation = (
        torch.tensor(each, device=setting.device).view(1, 3, 1, 1) * 255 for each in (MEAN, DEVIATION)
    )
    labels = torch.from_numpy(files.index.labels).to(setting.device)

    first, inputs = 0, None
    if setting.device.type == "cpu":  # as in the engine: decoders cut, where there is no other device
        first, files = 1, replace(files, how=replace(how, cut=setting.crop))
        inputs = torch.zeros(setting.batch, 3, setting.crop, setting.crop)

    def prepared(images: Tensor, views: list[dict[str, Tensor]]) -> Tensor:
        shown = view.apply(images, views, first)
        return standardised(shown) if inputs is None else put_into(inputs, shown, standardised)

    def standardised(images: Tensor) -> Tensor:
        return images.to(torch.float32, copy=True).sub_(mean).div_(deviation)

    if setting.device.type == "cuda":
        prepared = torch.compile(prepared, dynamic=False)
    orders = [permutation(key_words(0, "order"), len(files), epoch) for epoch in range(epochs)]
    wanted = [
        (epoch, part)
        for epoch, order in enumerate(orders)
        for part in order.split(setting.batch)
        if len(part) == setting.batch
    ]
    room, key = Room(files, setting.batch), key_words(0, "augmentation", setting.device)

    def asked() -> Iterator[Wanted]:
        for epoch, part in wanted:
            tries = view.tries(key, part, torch.tensor(epoch)) if first else None
            yield Wanted(part.tolist(), tries)

    coming = Ahead(files, asked(), room)
    for epoch, part in wanted:
        with one_thread() if first else nullcontext():
            coming.bring()
            stored, chosen = room.pictures(setting.batch, files.how), part.to(setting.device)
            drawn = view.draw(key, chosen, epoch, None if first else stored.sizes)
            shown = prepared(stored.images, drawn)
        yield shown, labels[chosen]


class Photographs(torch.utils.data.Dataset[tuple[Tensor, int]]):
    """Files of classes, each cropped, flipped and made a tensor as torchvision does it on Pillow's images."""

    def __init__(self, setting: Setting) -> None:
        found = image_files("image-folder", "train", setting.root)
        assert found is not None
        self._index, self._crop = found[0], setting.crop
        self._transform = _torchvision(setting.crop)

    def __len__(self) -> int:
        return len(self._index)

    def path(self, place: int) -> Path:
        """Where a file is."""
        return self._index.root / self._index.paths[place]

    def __getitem__(self, place: int) -> tuple[Tensor, int]:
        from PIL import Image

        with open(self.path(place), "rb") as file:
            image = Image.open(file).convert("RGB")
        make = self._transform or self._by_hand
        return make(image), int(self._index.labels[place])

    def _by_hand(self, image: Any) -> Tensor:
        """``RandomResizedCrop``, ``RandomHorizontalFlip``, ``ToTensor`` and ``Normalize``, line by line."""
        import numpy as np
        from PIL import Image

        top, left, rows, columns = _box(image.height, image.width)
        image = image.crop((left, top, left + columns, top + rows))
        image = image.resize((self._crop, self._crop), Image.Resampling.BILINEAR)
        if torch.rand(1) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image, np.uint8, copy=True)).permute((2, 0, 1)).contiguous()
        tensor = pixels.to(torch.float32).div(255)
        mean, deviation = (torch.as_tensor(each).view(-1, 1, 1) for each in (MEAN, DEVIATION))
        return tensor.sub_(mean).div_(deviation)


def _box(height: int, width: int) -> tuple[int, int, int, int]:
    for _ in range(10):
        target = height * width * torch.empty(1).uniform_(0.08, 1).item()
        ratio = math.exp(torch.empty(1).uniform_(math.log(3 / 4), math.log(4 / 3)).item())
        columns, rows = round(math.sqrt(target * ratio)), round(math.sqrt(target / ratio))
        if 0 < columns <= width and 0 < rows <= height:
            top = int(torch.randint(0, height - rows + 1, (1,)))
            return top, int(torch.randint(0, width - columns + 1, (1,))), rows, columns
    return 0, 0, height, width


@cache
def _declare_operators() -> object:
    """What a torchvision made for CUDA looks for, and fails without, on a torch for CPUs; no transform uses it.

    With a torch for CUDA it brings these operators itself, and ends the process if they are there already.
    """
    if torch.version.cuda is not None:
        return None
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        with suppress(RuntimeError):  # there already
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library  # kept by the cache: operators are gone with their library


def _torchvision(crop: int) -> Any:
    """Its own transforms; None where it cannot be imported."""
    _declare_operators()
    try:
        transforms = import_module("torchvision.transforms")
    except (ImportError, RuntimeError):  # for another torch it fails with the latter
        return None
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(crop),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize(MEAN, DEVIATION),
        ]
    )


def theirs(setting: Setting, epochs: int) -> Iterator[tuple[Tensor, Tensor]]:
    """torch's DataLoader with as many processes, pinned memory and copies that do not wait, as examples have it."""
    loader = torch.utils.data.DataLoader(
        Photographs(setting),
        setting.batch,
        shuffle=True,
        num_workers=setting.workers,
        pin_memory=setting.device.type == "cuda",
        drop_last=True,
        persistent_workers=True,
        prefetch_factor=2,
    )
    for _ in range(epochs):
        for images, labels in loader:
            yield (
                images.to(setting.device, non_blocking=True),
                labels.to(setting.device, non_blocking=True),
            )


def rival() -> str:
    """What their transforms are here."""
    return "torchvision + DataLoader" if _torchvision(8) else "torchvision's transforms by hand + DataLoader"
