"""ResNeXt-29 for small images."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.classifier import ResidualNet, check_size, normalised


class ResNeXt29(ResidualNet):
    """Three stages of three bottleneck blocks with grouped convolutions: 256, 512 and 1024 channels.

    Xie et al. 2017, section 5.3 and appendix A. The grouped 3 x 3 convolution of the first stage has `cardinality`
    groups of `base_width` channels, and twice as many with each stage. The default, 8 x 64d, is the ResNeXt-29 of
    yuanli2333/Teacher-free-Knowledge-Distillation (``main.py`` asks for cardinality 8 at a widening of 4, which is a
    width of 64 in ``model/resnext.py``) and so, most likely, LABO's (2023, section 4.2) teacher; 32 x 4d is a seventh
    of it. Initialisation as in that code: convolutions from N(0, 2 / fan_out), the last layer from N(0, 2 / fan_in)
    with biases of zero.

    >>> import torch
    >>> net = ResNeXt29(shape=(3, 32, 32), classes=10, cardinality=32, base_width=4)
    >>> sum(weight.numel() for weight in net.parameters())
    4775754
    >>> net.features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 1024])
    """

    def __init__(
        self, shape: tuple[int, int, int], classes: int, cardinality: int = 8, base_width: int = 64
    ) -> None:
        super().__init__()
        check_size(shape, 4, "two halvings")
        self.stem = nn.Sequential(*normalised(shape[0], 64, 3), nn.ReLU())
        blocks: list[nn.Module] = []
        before = 64
        for stage, after in enumerate((256, 512, 1024)):
            inner = cardinality * base_width * 2**stage
            for position in range(3):
                stride = 2 if stage > 0 and position == 0 else 1
                blocks.append(GroupedBottleneck(before, inner, after, cardinality, stride))
                before = after
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(before, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.kaiming_normal_(self.head.weight, nonlinearity="relu")
        nn.init.zeros_(self.head.bias)


class GroupedBottleneck(nn.Module):
    """relu(x + F(x)), where F is 1 x 1, grouped 3 x 3 and 1 x 1 with batch norms (Xie et al. 2017, figure 3c).

    >>> import torch
    >>> GroupedBottleneck(4, 6, 8, groups=3, stride=2)(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, before: int, inner: int, after: int, groups: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *normalised(before, inner, 1),
            nn.ReLU(),
            *normalised(inner, inner, 3, stride, groups),
            nn.ReLU(),
            *normalised(inner, after, 1),
        )
        self.shortcut = nn.Sequential(*(normalised(before, after, 1, stride) if before != after else []))

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of `after` channels, smaller by `stride`."""
        return functional.relu(self.shortcut(maps) + self.residual(maps))
