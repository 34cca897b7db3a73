"""Folders of small pictures of several sizes and kinds, as real decoders meet them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from softtargets.recipes import CNN, SGD, Flip, ImageFolder, Recipe, ResizedCrop
from softtargets.recipes.augmentation import Colour

CLASSES = ("ant", "bee", "cow")


def picture(path: Path, draw: np.random.Generator, label: int = 0, least=12, most=40) -> Path:
    height, width = draw.integers(least, most, 2)
    shades = draw.integers(0, 120, (height, width, 3)) + 45 * label
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(shades.astype(np.uint8)).save(path)
    return path


def folder(root: Path, train=14, test=5) -> Path:
    """`root`/own with so many pictures of each class."""
    draw = np.random.default_rng(8)
    for split, count in (("train", train), ("test", test)):
        for label, name in enumerate(CLASSES):
            for place in range(count):
                ending = ("png", "jpg", "bmp")[place % 3]
                picture(root / "own" / split / name / f"{place}.{ending}", draw, label)
    return root


def recipe(**changes) -> Recipe:
    base = Recipe(
        data=ImageFolder(folder="own", size=16, keep="picture", standardise="channel", validation=7),
        model=CNN(channels=(4, 6), hidden=8),
        augmentation=(ResizedCrop(size=12), Flip(), Colour()),
        optimiser=SGD(lr=0.05, momentum=0.9),
        epochs=2,
        batch=8,
    )
    return base.replace({name.replace("__", "."): value for name, value in changes.items()})
