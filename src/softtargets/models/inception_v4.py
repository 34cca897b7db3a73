"""Inception-v4, which Müller et al. 2019 train on ImageNet."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from softtargets.models.classifier import Classifier, check_size
from softtargets.models.dropout import Dropout
from softtargets.models.pooling import Average

Kernel = tuple[int, int]


class InceptionV4(Classifier):
    """Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual connections on learning", 2016.

    A stem (figure 3), four blocks A, a reduction, seven blocks B, a reduction, three blocks C (figures 4 to 8), the
    mean over all places and dropout of 0.2. Made for images of 299 x 299; any of at least 75 x 75 will do. Batch norm
    has their 0.001; convolutions start as torch's do. Without dropout it is timm's ``inception_v4``, with as many
    parameters: 42,679,816 for 1000 classes.

    >>> net = InceptionV4(shape=(3, 75, 75), classes=10)
    >>> sum(weight.numel() for weight in net.parameters())
    41158186
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, dropout: float = 0.2) -> None:
        super().__init__()
        check_size(shape, 75, "its convolutions without padding")
        self.stem = nn.Sequential(
            _convolution(shape[0], 32, 3, 2),
            _convolution(32, 32, 3),
            _convolution(32, 64, 3, padded=True),
            Branches(nn.MaxPool2d(3, stride=2), _convolution(64, 96, 3, 2)),
            Branches(
                _chain(160, (64, 1), (96, 3, False)),
                _chain(160, (64, 1), (64, (1, 7)), (64, (7, 1)), (96, 3, False)),
            ),
            Branches(_convolution(192, 192, 3, 2), nn.MaxPool2d(3, stride=2)),
        )
        self.body = nn.Sequential(
            *(_block_a() for _ in range(4)),
            _reduction_a(),
            *(_block_b() for _ in range(7)),
            _reduction_b(),
            *(_BlockC() for _ in range(3)),
        )
        self.pool = Average()
        self.dropout = Dropout(dropout)
        self.head = nn.Linear(1536, classes)
        self.number_dropouts()

    @property
    def links(self) -> list[nn.Module]:
        """The blocks, and what is before and after them."""
        return [*self.stem, *self.body, self.pool, self.dropout, self.head]

    def features(self, images: Tensor) -> Tensor:
        """What comes after the blocks, averaged over all places."""
        activations: Tensor = self.dropout(self.pool(self.body(self.stem(images))))
        return activations


class Branches(nn.Module):
    """Several ways from the same maps, side by side.

    >>> Branches(nn.Identity(), nn.Identity())(torch.zeros(1, 2, 3, 3)).shape
    torch.Size([1, 4, 3, 3])
    """

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, maps: Tensor) -> Tensor:
        """The maps of all branches, one after another."""
        return torch.cat([branch(maps) for branch in self.branches], dim=1)


def _convolution(
    before: int, after: int, kernel: int | Kernel, stride: int = 1, padded: bool = False
) -> nn.Sequential:
    """With batch norm and ReLU; `padded` keeps the size of maps."""
    height, width = (kernel, kernel) if isinstance(kernel, int) else kernel
    padding = (height // 2, width // 2) if padded else 0
    convolution = nn.Conv2d(before, after, (height, width), stride, padding, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(after, eps=1e-3), nn.ReLU())


def _chain(before: int, *layers: Sequence[int | Kernel | bool], stride: int = 1) -> nn.Sequential:
    """Convolutions, each (channels, kernel) that keeps the size of maps, or (channels, kernel, False) without padding.

    The last one has the stride, and no padding if that is 2.
    """
    made: list[nn.Module] = []
    for place, (after, kernel, *padded) in enumerate(layers):
        last = stride if place == len(layers) - 1 else 1
        assert not isinstance(after, tuple)
        made.append(_convolution(before, after, kernel, last, last == 1 and not padded))
        before = after
    return nn.Sequential(*made)


def _pooled(before: int, after: int) -> nn.Sequential:
    pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
    return nn.Sequential(pool, _convolution(before, after, 1))


def _block_a() -> Branches:
    return Branches(
        _chain(384, (96, 1)),
        _chain(384, (64, 1), (96, 3)),
        _chain(384, (64, 1), (96, 3), (96, 3)),
        _pooled(384, 96),
    )


def _reduction_a() -> Branches:
    return Branches(
        _convolution(384, 384, 3, 2),
        _chain(384, (192, 1), (224, 3), (256, 3), stride=2),
        nn.MaxPool2d(3, stride=2),
    )


def _block_b() -> Branches:
    return Branches(
        _chain(1024, (384, 1)),
        _chain(1024, (192, 1), (224, (1, 7)), (256, (7, 1))),
        _chain(1024, (192, 1), (192, (7, 1)), (224, (1, 7)), (224, (7, 1)), (256, (1, 7))),
        _pooled(1024, 128),
    )


def _reduction_b() -> Branches:
    return Branches(
        _chain(1024, (192, 1), (192, 3), stride=2),
        _chain(1024, (256, 1), (256, (1, 7)), (320, (7, 1)), (320, 3), stride=2),
        nn.MaxPool2d(3, stride=2),
    )


class _BlockC(Branches):
    def __init__(self) -> None:
        def forked(before: int) -> Branches:
            return Branches(_chain(before, (256, (1, 3))), _chain(before, (256, (3, 1))))

        super().__init__(
            _chain(1536, (256, 1)),
            nn.Sequential(_chain(1536, (384, 1)), forked(384)),
            nn.Sequential(_chain(1536, (384, 1), (448, (3, 1)), (512, (1, 3))), forked(512)),
            _pooled(1536, 256),
        )
