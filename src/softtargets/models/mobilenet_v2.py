"""MobileNetV2 for small images."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from softtargets.models.classifier import ResidualNet, check_size, normalised

# Expansion, channels, blocks and stride of each stage: table 2 of Sandler et al. 2018, except for a stride of 1
# instead of 2 in the stage of 160 channels (and in the stem), since small images have nothing to spare.
_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 1),
    (6, 320, 1, 1),
)


class MobileNetV2(ResidualNet):
    """Seventeen inverted residual blocks between a stem of 32 and a last layer of 1280 channels.

    Sandler et al. 2018, table 2, in the CIFAR form of ``model/mobilenetv2.py`` in
    yuanli2333/Teacher-free-Knowledge-Distillation (itself that of weiaicunzai/pytorch-cifar100), where LABO's
    (2023, section 4.2) image code most likely comes from: stride 1 in the stem and in the stage of 160 channels, so
    that images shrink by 8 and not by 32; an expanding convolution even in the first block, where it expands by 1;
    torch's own initialisation. That code has a stem of 1 x 1 with a border of one pixel (``stem="1x1"``);
    ``stem="3x3"`` is the paper's kernel. Its convolutions have biases, which the batch norm behind each takes away
    again: we leave them out.

    >>> import torch
    >>> net = MobileNetV2(shape=(3, 32, 32), classes=100)
    >>> sum(weight.numel() for weight in net.parameters())
    2352292
    >>> net.features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 1280])
    """

    def __init__(
        self, shape: tuple[int, int, int], classes: int, stem: Literal["1x1", "3x3"] = "1x1"
    ) -> None:
        super().__init__()
        check_size(shape, 8, "three halvings")
        kernels = {"1x1": 1, "3x3": 3}
        if stem not in kernels:
            raise ValueError(f"there is no stem {stem!r}; allowed: {', '.join(kernels)}")
        first = nn.Conv2d(shape[0], 32, kernel_size=kernels[stem], padding=1, bias=False)
        blocks, before = [], 32
        for expansion, channels, count, stride in _STAGES:
            for position in range(count):
                blocks.append(InvertedResidual(before, channels, expansion, stride if position == 0 else 1))
                before = channels
        last = normalised(before, 1280, 1)
        self.stem = nn.Sequential(first, nn.BatchNorm2d(32), nn.ReLU6())
        self.body = nn.Sequential(*blocks)
        self.last = nn.Sequential(*last, nn.ReLU6())
        self.head = nn.Linear(1280, classes)


class InvertedResidual(nn.Module):
    """Expand 1 x 1, filter each channel 3 x 3, project 1 x 1 without activation (Sandler et al. 2018, section 3.3).

    The input is added where it has the shape of the output.

    >>> import torch
    >>> InvertedResidual(4, 8, expansion=6, stride=2)(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, before: int, after: int, expansion: int, stride: int) -> None:
        super().__init__()
        inner = expansion * before
        self.residual = nn.Sequential(
            *normalised(before, inner, 1),
            nn.ReLU6(),
            *normalised(inner, inner, 3, stride, groups=inner),
            nn.ReLU6(),
            *normalised(inner, after, 1),
        )
        self.adds = stride == 1 and before == after

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of `after` channels, smaller by `stride`."""
        residual: Tensor = self.residual(maps)
        return maps + residual if self.adds else residual
