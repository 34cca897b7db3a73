"""From a recipe to tensors on a device: splits, label noise, standardisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from softtargets.data import Examples, load
from softtargets.data.augment import AUGMENTATIONS, View, centre
from softtargets.exceptions import RecipeError
from softtargets.noise import CORRUPTIONS
from softtargets.randomness import derive
from softtargets.recipes import Clean, Crop, Dataset, Instance, Noise, Recipe

# Of the draws of instance noise.
_STREAMS = {"train": 0, "validation": 1, "test": 2}


@dataclass(frozen=True)
class Split:
    """Examples on the device: images as stored (uint8), labels as trained or measured on, and labels as read.

    The two kinds of label differ where a recipe asks for synthetic noise. Human labels (CIFAR-N) are read.
    """

    images: Tensor
    labels: Tensor
    clean_labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Prepared:
    """All a training needs to know of its data."""

    splits: dict[str, Split]
    classes: tuple[str, ...]
    standardise: Callable[[Tensor], Tensor]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of the stored images."""
        channels, height, width = self.splits["train"].images.shape[1:]
        return channels, height, width


def prepare(data: Dataset, device: torch.device, data_dir: Path | None = None) -> Prepared:
    """Read a dataset, cut its splits and move it to the device."""
    train = load(data.name, "train", data_dir, **data.reader_options())
    test = load(data.name, "test", data_dir, **data.reader_options())
    kept = len(train) - data.validation
    if kept < 1:
        raise RecipeError(
            f"{data.validation} leaves nothing to train on: {data.name} has {len(train)} training examples",
            "data.validation",
        )
    limit = data.limit or kept
    if limit > kept:
        raise RecipeError(f"{limit} is more than the {kept} training examples there are", "data.limit")
    splits = {"train": _to_device(train, slice(0, limit), device)}
    if data.validation:
        splits["validation"] = _to_device(train, slice(kept, None), device)
    splits["test"] = _to_device(test, slice(None), device)
    return Prepared(splits, train.classes, _standardiser(data.standardise, splits["train"].images))


def with_noise(prepared: Prepared, noise: Noise, seed: int) -> Prepared:
    """The same data with corrupted training labels, and if the noise is of beta type validation and test labels too.

    Labels as read are kept beside them.
    """
    if isinstance(noise, Clean):
        return prepared
    splits = {
        name: _corrupted(name, split, prepared, noise, seed)
        if name == "train" or noise.on_held_out
        else split
        for name, split in prepared.splits.items()
    }
    return Prepared(splits, prepared.classes, prepared.standardise)


def _corrupted(name: str, split: Split, prepared: Prepared, noise: Noise, seed: int) -> Split:
    # Every split draws on its own; training labels as they were drawn before the others could be noisy.
    options = noise.options()
    if isinstance(noise, Instance):
        # One noise for all splits: the same looks are taken for the same classes.
        inputs = _standardiser("channel", prepared.splits["train"].images)(split.images)
        options |= {"inputs": inputs, "stream": _STREAMS[name]}
        own = derive(seed, "noise")
    else:
        own = derive(seed, "noise") if name == "train" else derive(seed, "noise", name)
    noisy = CORRUPTIONS[noise.name](split.clean_labels, classes=len(prepared.classes), seed=own, **options)
    return Split(split.images, torch.from_numpy(noisy).to(split.labels.device), split.clean_labels)


def input_shape(recipe: Recipe, prepared: Prepared) -> tuple[int, int, int]:
    """The shape the net sees, which crops may have made smaller; refuses crops that cannot be cut."""
    channels, height, width = prepared.shape
    for position, part in enumerate(recipe.augmentation):
        if isinstance(part, Crop) and part.size:
            if part.size > min(height, width):
                raise RecipeError(
                    f"{part.size} is larger than the image of {height} x {width}",
                    f"augmentation.{position}.size",
                )
            height = width = part.size
    return channels, height, width


def view_of(recipe: Recipe, prepared: Prepared) -> View:
    """The recipe's augmentation, as training sees images through it."""
    kinds = [
        AUGMENTATIONS[part.name](**{key: value for key, value in vars(part).items() if key != "name"})
        for part in recipe.augmentation
    ]
    return View(kinds, prepared.shape)


def evaluation_view(recipe: Recipe, images: Tensor) -> Tensor:
    """Images as evaluation sees them: no randomness, the middle where training crops."""
    for part in recipe.augmentation:
        if isinstance(part, Crop) and part.size:
            images = centre(images, part.size)
    return images


def _to_device(examples: Examples, which: slice, device: torch.device) -> Split:
    labels = torch.from_numpy(examples.labels[which]).to(device)
    return Split(torch.from_numpy(examples.images[which]).to(device), labels, labels)


def _standardiser(kind: str, training_images: Tensor) -> Callable[[Tensor], Tensor]:
    if kind == "unit":
        return lambda images: images.float() / 255
    if kind == "image":
        return _per_image
    # Blocks keep the float64 copy small; exact sums make the result the same on every device.
    total = torch.zeros(training_images.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    for block in training_images.split(4096):
        values = block.to(torch.int64)
        total += values.sum((0, 2, 3)).cpu()
        squares += values.square().sum((0, 2, 3)).cpu()
    count = training_images[:, 0].numel()
    mean = total / count
    deviation = (squares / count - mean.square()).clamp(min=1e-12).sqrt()
    shape = (1, -1, 1, 1)
    centre_, scale = (value.float().view(shape).to(training_images.device) for value in (mean, deviation))
    return lambda images: (images.float() - centre_) / scale


def _per_image(images: Tensor) -> Tensor:
    # TensorFlow's per_image_standardization, on values from 0 to 255: the deviation is at least
    # 1/sqrt(number of values), so that a flat image does not blow up.
    values = images.float()
    flat = values.flatten(1)
    deviation = flat.std(1, correction=0).clamp(min=flat.shape[1] ** -0.5)
    return (values - flat.mean(1)[:, None, None, None]) / deviation[:, None, None, None]
