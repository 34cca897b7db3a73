"""Augmentation of a batch of uint8 images on their device.

All randomness comes from the generator passed in (a CPU one, so every device sees the same draws), which the
training loop seeds for each step: any batch of any epoch can be made again.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional as F


def shift(images: Tensor, generator: Generator, pixels: int = 2) -> Tensor:
    """Move each image by up to `pixels` in x and y, every offset equally likely; zeros fill the gap."""
    return crop(images, generator, padding=pixels)


def flip(images: Tensor, generator: Generator, probability: float = 0.5) -> Tensor:
    """Mirror each image left to right with the given probability."""
    mirrored = torch.rand(len(images), generator=generator) < probability
    return torch.where(mirrored.to(images.device)[:, None, None, None], images.flip(-1), images)


def crop(images: Tensor, generator: Generator, padding: int = 4, size: int | None = None) -> Tensor:
    """Pad with zeros and cut one random window of `size` (default: the image's own) from each image."""
    count, _, height, width = images.shape
    rows, columns = size or height, size or width
    if rows > height + 2 * padding or columns > width + 2 * padding:
        raise ValueError(f"cannot cut {rows} x {columns} from {height} x {width} padded by {padding}")
    padded = F.pad(images, (padding, padding, padding, padding))
    top = torch.randint(height + 2 * padding - rows + 1, (count,), generator=generator)
    left = torch.randint(width + 2 * padding - columns + 1, (count,), generator=generator)
    y = (top[:, None] + torch.arange(rows)).to(images.device)
    x = (left[:, None] + torch.arange(columns)).to(images.device)
    picture = torch.arange(count, device=images.device)
    return padded.permute(0, 2, 3, 1)[picture[:, None, None], y[:, :, None], x[:, None, :]].permute(
        0, 3, 1, 2
    )


def centre(images: Tensor, size: int) -> Tensor:
    """The middle window of `size`: what evaluation sees where training sees random crops."""
    if size > min(images.shape[-2:]):
        raise ValueError(f"cannot cut {size} x {size} from {images.shape[-2]} x {images.shape[-1]}")
    top, left = (images.shape[-2] - size) // 2, (images.shape[-1] - size) // 2
    return images[..., top : top + size, left : left + size]


# The names by which recipes call them. Each takes (images, generator, **options).
AUGMENTATIONS = {"shift": shift, "flip": flip, "crop": crop}
