"""Mirror images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape
from softtargets.randomness import uniforms


@dataclass(frozen=True)
class Flip(Augmentation):
    """Mirrors each image left to right with the given probability (torchvision's ``RandomHorizontalFlip``).

    >>> Flip().apply(torch.tensor([[[[1, 2, 3]]]] * 2), {"mirrored": torch.tensor([True, False])}).flatten(1)
    tensor([[3, 2, 1],
            [1, 2, 3]])
    """

    probability: float = 0.5

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """Whether to mirror; u < probability with u from 0 to just below 1, so that 0 is never and 1 is always."""
        return {"mirrored": uniforms(words[..., 0]) < self.probability}

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The images, those drawn mirrored."""
        columns = torch.arange(images.shape[-1], device=images.device)
        columns = torch.where(drawn["mirrored"][:, None], columns.flip(0), columns)
        return images.gather(3, columns[:, None, None].expand(images.shape))
