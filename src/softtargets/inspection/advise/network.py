"""A small convolutional network for images of any size, quick enough for two CPU cores."""

from __future__ import annotations

from torch import Tensor, nn

SMALLEST = 4  # pixels of a side that a pooling may still halve
WORKED = 16  # pixels of a side: what is larger is pooled before the wide layers


class SmallResNet(nn.Module):
    """Convolutions and two residual stages with batch norm, after the ResNet-9 of fast CIFAR-10 training.

    `width` is the number of channels of the first layer; stages have two and four times as many. Poolings are left
    out where images are too small for them, and more come first where they are large.

    >>> SmallResNet(channels=1, side=8, classes=10, width=8)(Tensor(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    def __init__(self, channels: int, side: int, classes: int, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        while True:
            layers.append(_convolution(channels, width, pool=side > WORKED))
            channels, side = width, side // 2 if side > WORKED else side
            if side <= WORKED:
                break
        layers.append(_convolution(width, 2 * width, pool=False))
        for before, after in ((2 * width, 4 * width), (4 * width, 4 * width)):
            layers.append(_Residual(before, after, pool=side >= SMALLEST))
            side = side // 2 if side >= SMALLEST else side
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(4 * width, classes)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, K) of standardised images (N, C, H, W)."""
        logits: Tensor = self.head(
            self.features(images).amax((2, 3))
        )  # its gradient is deterministic on a GPU
        return logits


class _Residual(nn.Module):
    def __init__(self, before: int, after: int, *, pool: bool) -> None:
        super().__init__()
        self.first = _convolution(before, after, pool=pool)
        self.second = _convolution(after, after, pool=False)

    def forward(self, maps: Tensor) -> Tensor:
        maps = self.first(maps)
        changed: Tensor = maps + self.second(maps)
        return changed


def _convolution(before: int, after: int, *, pool: bool) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(before, after, 3, padding=1, bias=False)]
    if pool:
        layers.append(nn.MaxPool2d(2, ceil_mode=True))  # thin images keep a pixel
    return nn.Sequential(*layers, nn.BatchNorm2d(after), nn.ReLU(inplace=True))
