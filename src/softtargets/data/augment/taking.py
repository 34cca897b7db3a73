"""Taking pixels from where they were: the one gather under every kind that moves them."""

from __future__ import annotations

import torch
from torch import Tensor


def take(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Pixel (i, j) of result m is pixel (rows[m, i, j], columns[m, i, j]) of image m, and 0 if that is outside.

    rows and columns are int64 and broadcast against each other to (M, new height, new width). There is no padded
    copy: indices from outside are clamped, and what they bring is masked.

    >>> image = torch.tensor([[[[1, 2], [3, 4]]]])
    >>> take(image, torch.tensor([[[0], [1]]]), torch.tensor([[[1, 2]]]))
    tensor([[[[2, 0],
              [4, 0]]]])
    """
    count, channels, height, width = images.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    places = rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)
    # Sizes are spelt out since none can be inferred for an empty batch.
    index = places.reshape(count, 1, places.shape[1] * places.shape[2]).expand(-1, channels, -1)
    found = images.reshape(count, channels, height * width).gather(2, index)
    found = found.reshape(count, channels, *places.shape[1:])
    return torch.where(inside[:, None], found, 0)
