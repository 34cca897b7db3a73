"""Windows of images, random ones for training and the middle one for evaluation, and their mirror images."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape, by_hand, take
from softtargets.randomness import below, uniforms


@dataclass(frozen=True)
class Crop(Augmentation):
    """Pads with zeros and cuts one random window of `size` (default: the image's own) from each image.

    tensor2tensor's ``cifar_image_augmentation`` and the usual ``RandomCrop(32, padding=4)`` of torchvision are the
    defaults; ``padding=0, size=24`` is TensorFlow's ``random_crop`` as the CIFAR-10 tutorial uses it. What is drawn
    is where the window begins in the unpadded image, so `top` and `left` may be negative.

    >>> from softtargets.randomness import key_words, words
    >>> drawn = Crop(padding=1).draw(words(key_words(0, "example"), torch.arange(3)), (1, 2, 2))
    >>> drawn["top"].shape, Crop(padding=1).apply(torch.ones(3, 1, 2, 2), drawn).shape
    (torch.Size([3]), torch.Size([3, 1, 2, 2]))
    """

    padding: int = 4
    size: int | None = None

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """Where the window begins; every place inside the padded image is equally likely."""
        _, rows, columns = self.output_shape(shape)
        _, height, width = shape
        top = below(words[..., 0], height + 2 * self.padding - rows + 1) - self.padding
        left = below(words[..., 1], width + 2 * self.padding - columns + 1) - self.padding
        return {"top": top.int(), "left": left.int()}

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The windows, with zeros where they reach outside."""
        _, _, height, width = images.shape
        return _window(images, drawn["top"], drawn["left"], self.size or height, self.size or width)

    def output_shape(self, shape: Shape) -> Shape:
        """Channels and the size of the window; refuses a window larger than the padded image."""
        channels, height, width = shape
        rows, columns = self.size or height, self.size or width
        if rows > height + 2 * self.padding or columns > width + 2 * self.padding:
            raise ValueError(
                f"cannot cut {rows} x {columns} from {height} x {width} padded by {self.padding}"
            )
        return channels, rows, columns


@dataclass(frozen=True)
class Shift(Augmentation):
    """Moves each image by -pixels..pixels in x and y, every offset equally likely; zeros fill the gap.

    What is drawn is where the window begins, as in `Crop`: `top` = 2 moves the image up by 2.

    >>> drawn = {"top": torch.tensor([0]), "left": torch.tensor([1])}
    >>> Shift(pixels=1).apply(torch.tensor([[[[1, 2], [3, 4]]]]), drawn)
    tensor([[[[2, 0],
              [4, 0]]]])
    """

    pixels: int = 2

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """Two offsets from -pixels to pixels."""
        top, left = (below(words[..., place], 2 * self.pixels + 1) - self.pixels for place in (0, 1))
        return {"top": top.int(), "left": left.int()}

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The images, moved."""
        return _window(images, drawn["top"], drawn["left"], *images.shape[-2:])


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
        if by_hand(images):
            found = images.clone(memory_format=torch.contiguous_format)
            for place in drawn["mirrored"].nonzero().flatten().tolist():
                found[place] = found[place].flip(2)
            return found
        columns = torch.arange(images.shape[-1], device=images.device)
        columns = torch.where(drawn["mirrored"][:, None], columns.flip(0), columns)
        return images.gather(3, columns[:, None, None].expand(images.shape))


def centre(images: Tensor, size: int) -> Tensor:
    """The middle window of `size`: what evaluation sees where training sees random crops.

    >>> centre(torch.arange(9).reshape(1, 1, 3, 3), 1).item()
    4
    """
    if size > min(images.shape[-2:]):
        raise ValueError(f"cannot cut {size} x {size} from {images.shape[-2]} x {images.shape[-1]}")
    top, left = (images.shape[-2] - size) // 2, (images.shape[-1] - size) // 2
    return images[..., top : top + size, left : left + size]


def _window(images: Tensor, top: Tensor, left: Tensor, rows: int, columns: int) -> Tensor:
    y = torch.arange(rows, device=images.device)[:, None] + top[:, None, None]
    x = torch.arange(columns, device=images.device) + left[:, None, None]
    return take(images, y, x)
