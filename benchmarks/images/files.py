"""Synthetic photographs: as large, as noisy and as hard to decode as those of ImageNet."""

from __future__ import annotations

import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

# The usual size of ImageNet's photographs, and what they weigh: 110 kB on average.
WIDTH, HEIGHT, QUALITY = 500, 375, 90
CLASSES = 10
# Different pictures; files repeat them, since drawing one takes much longer than decoding it.
DIFFERENT = 128


def photograph(seed: int, width: int = WIDTH, height: int = HEIGHT) -> Any:
    """A picture whose spectrum falls as that of natural scenes does, by about 1/f, in colours that mostly agree."""
    from PIL import Image

    draw = np.random.default_rng(seed)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    spectrum = 1 / np.maximum(np.hypot(rows, columns), 1 / width) ** 1.2
    layers = []
    for _ in range(4):
        phase = np.exp(2j * np.pi * draw.random(spectrum.shape))
        layer = np.fft.irfft2(spectrum * phase, (height, width))
        layers.append(layer / layer.std())
    light, colours = layers[0][..., None], np.stack(layers[1:], 2)
    return Image.fromarray((120 + 50 * light + 15 * colours).clip(0, 255).astype(np.uint8))


def make_folder(root: Path, train: int, test: int = CLASSES) -> Path:
    """A folder of so many JPEG files, a directory for each class; what is there already stays."""
    wanted = [
        (root / split / f"class{place % CLASSES}" / f"{place:06d}.jpg", place % DIFFERENT)
        for split, count in (("train", train), ("test", test))
        for place in range(count)
    ]
    missing = [(path, seed) for path, seed in wanted if not path.exists()]
    for folder in {path.parent for path, _ in missing}:
        folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        seeds = sorted({seed for _, seed in missing})
        made = dict(zip(seeds, pool.map(_encoded, seeds), strict=True))
        list(pool.map(lambda one: one[0].write_bytes(made[one[1]]), missing))
    return root


def _encoded(seed: int) -> bytes:
    file = io.BytesIO()
    photograph(seed).save(file, "jpeg", quality=QUALITY)
    return file.getvalue()
