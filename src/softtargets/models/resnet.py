"""ResNet for photographs, as ImageNet is classified with."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.classifier import ResidualNet, check_size, normalised
from softtargets.models.resnet18 import BasicBlock

_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
_BOTTLENECK_FROM = 50
DEPTHS = tuple(_BLOCKS)


class ResNet(ResidualNet):
    """ResNet-18, 34, 50, 101 or 152 of He et al., "Deep residual learning for image recognition", 2016, table 1.

    A 7 x 7 convolution and max pooling, both with stride 2, and four stages of `width`, 2, 4 and 8 times `width`
    channels; from 50 layers on blocks are bottlenecks with four times as many channels at their ends. As in torchvision
    a bottleneck halves its maps in the 3 x 3 convolution, and convolutions start from N(0, 2 / fan_out). Has as many
    parameters as torchvision's: 25,557,032 for ResNet-50 with 1000 classes.

    >>> import torch
    >>> net = ResNet(shape=(3, 64, 64), classes=10, depth=50, width=8)
    >>> net.features(torch.zeros(2, 3, 64, 64)).shape
    torch.Size([2, 256])
    >>> ResNet(shape=(3, 64, 64), classes=10, depth=20)
    Traceback (most recent call last):
    ValueError: depth 20 is not one of 18, 34, 50, 101, 152
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, depth: int = 50, width: int = 64) -> None:
        super().__init__()
        if depth not in _BLOCKS:
            raise ValueError(f"depth {depth} is not one of {', '.join(map(str, DEPTHS))}")
        check_size(shape, 32, "five halvings")
        pool = nn.MaxPool2d(3, stride=2, padding=1)
        self.stem = nn.Sequential(*normalised(shape[0], width, 7, 2), nn.ReLU(), pool)
        blocks: list[nn.Module] = []
        before = width
        for stage, count in enumerate(_BLOCKS[depth]):
            inner = width * 2**stage
            for place in range(count):
                stride = 2 if stage and not place else 1
                block = Bottleneck if depth >= _BOTTLENECK_FROM else BasicBlock
                after = inner * (Bottleneck.expansion if block is Bottleneck else 1)
                blocks.append(block(before, after, stride))
                before = after
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(before, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


class Bottleneck(nn.Module):
    """relu(x + F(x)), where F narrows the maps to a quarter (1 x 1), convolves (3 x 3) and widens them again (1 x 1).

    >>> import torch
    >>> Bottleneck(16, 32, stride=2)(torch.zeros(1, 16, 6, 6)).shape
    torch.Size([1, 32, 3, 3])
    """

    expansion = 4

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        inner = after // self.expansion
        self.conv1, self.norm1 = normalised(before, inner, 1)
        self.conv2, self.norm2 = normalised(inner, inner, 3, stride)
        self.conv3, self.norm3 = normalised(inner, after, 1)
        same = stride == 1 and before == after
        self.shortcut = nn.Sequential(*([] if same else normalised(before, after, 1, stride)))

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of `after` channels, smaller by `stride`."""
        branch = functional.relu(self.norm1(self.conv1(maps)))
        branch = functional.relu(self.norm2(self.conv2(branch)))
        return functional.relu(self.shortcut(maps) + self.norm3(self.conv3(branch)))
