"""ResNet-18 for small images."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.classifier import ResidualNet, check_size, normalised


class ResNet18(ResidualNet):
    """Four stages of two basic blocks with `width`, 2, 4 and 8 times `width` channels (He et al. 2016).

    The CIFAR form: a 3 x 3 convolution with stride 1 in front and no max pooling; a 1 x 1 convolution with batch norm
    as shortcut where the shape changes; torch's own initialisation. This is the ResNet-18 of ``model/resnet.py`` in
    yuanli2333/Teacher-free-Knowledge-Distillation, which LABO (2023, section 4.2) compares with and whose schedule it
    shares; LABO says no more than "ResNet18".

    11,173,962 parameters for CIFAR-10. Chen et al. 2020 (appendix C) use a "ResNet18 (1,000,000 parameters)" and do
    not say how it was made smaller; ``width=19`` comes nearest, with 988,257.

    >>> import torch
    >>> net = ResNet18(shape=(3, 32, 32), classes=10)
    >>> sum(weight.numel() for weight in net.parameters())
    11173962
    >>> net.features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 512])
    """

    def __init__(self, shape: tuple[int, int, int], classes: int, width: int = 64) -> None:
        super().__init__()
        check_size(shape, 8, "three halvings")
        self.stem = nn.Sequential(*normalised(shape[0], width, 3), nn.ReLU())
        stages = (width, 2 * width, 4 * width, 8 * width)
        blocks: list[nn.Module] = []
        for before, after in zip((width, *stages), stages, strict=False):
            blocks += [
                BasicBlock(before, after, stride=1 if before == after else 2),
                BasicBlock(after, after),
            ]
        self.body = nn.Sequential(*blocks)
        self.head = nn.Linear(stages[-1], classes)


class BasicBlock(nn.Module):
    """relu(x + F(x)), where F is two 3 x 3 convolutions with batch norm (He et al. 2016, figure 2).

    >>> import torch
    >>> BasicBlock(4, 8, stride=2)(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1, self.norm1 = normalised(before, after, 3, stride)
        self.conv2, self.norm2 = normalised(after, after, 3)
        same = stride == 1 and before == after
        self.shortcut = nn.Sequential(*([] if same else normalised(before, after, 1, stride)))

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of `after` channels, smaller by `stride`."""
        branch = functional.relu(self.norm1(self.conv1(maps)))
        return functional.relu(self.shortcut(maps) + self.norm2(self.conv2(branch)))
