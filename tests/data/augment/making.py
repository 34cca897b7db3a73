"""Images and draws for tests of the augmentation."""

from __future__ import annotations

import torch

from softtargets.data.augment import (
    Affine,
    Brightness,
    Colour,
    Contrast,
    Crop,
    Flip,
    ResizedCrop,
    Rotation,
    Shift,
)
from softtargets.randomness import key_words, words

# Every kind, with the options that take other paths.
KINDS = [
    Shift(),
    Shift(pixels=5),
    Flip(),
    Crop(),
    Crop(padding=0),
    Crop(padding=0, size=3),
    Crop(padding=2, size=6),
    Brightness(),
    Contrast(),
    Colour(),
    ResizedCrop(),
    ResizedCrop(size=7, scale=(0.5, 1.0)),
    Affine(),
    Affine(translate=0.3),
    Affine(degrees=180, translate=0.2, scale=(0.5, 2), shear=30),
    Rotation(),
]
GEOMETRIC = [kind for kind in KINDS if not isinstance(kind, (Brightness, Contrast, Colour, ResizedCrop))]


def pictures(count=12, channels=3, height=6, width=5):
    """No two neighbourhoods alike, no pixel black."""
    generator = torch.Generator().manual_seed(9)
    return torch.randint(1, 256, (count, channels, height, width), generator=generator, dtype=torch.uint8)


def drawn_for(kind, images, seed=0):
    """The numbers of a kind for a batch of images."""
    return many(kind, len(images), tuple(images.shape[1:]), seed)


def many(kind, count, shape=(3, 6, 5), seed=0):
    places = torch.arange(count)[:, None], torch.arange(kind.blocks)
    return kind.draw(words(key_words(seed, "test"), *places).flatten(-2), shape)


def numbers(drawn, place):
    """The numbers of one sample, as Python's."""
    return {name: values[place].item() for name, values in drawn.items()}


def window(image, top, left, rows, columns):
    """The window that begins at (top, left), pixel by pixel, black outside."""
    channels, height, width = image.shape
    found = torch.zeros(channels, rows, columns, dtype=image.dtype)
    for y in range(rows):
        for x in range(columns):
            if 0 <= top + y < height and 0 <= left + x < width:
                found[:, y, x] = image[:, top + y, left + x]
    return found
