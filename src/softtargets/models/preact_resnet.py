"""Pre-activation ResNet for small images, as its inventors and as tensor2tensor have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.classifier import ResidualNet, check_size, normalised

# The standard deviation of a standard normal variable cut at -2 and 2.
_CUT_STD = 0.8796256610342398


class PreActResNet(ResidualNet):
    """Three stages of n blocks x + F(x) with batch norm and ReLU in front of each convolution; 6n + 2 layers.

    ``variant="he"`` is ResNet-56 and its siblings as of He et al., "Identity mappings in deep residual networks",
    2016 (appendix). The activation after the stem is shared by both paths of the first block; batch norm and ReLU come
    before the pooling, so features are not negative. Shortcuts and initialisation follow their code, which has them for
    bottleneck blocks (KaimingHe/resnet-1k-layers): a shortcut is the identity, or a 1 x 1 convolution of the activated
    input where the shape changes; convolutions from N(0, 2 / fan_out).

    ``variant="tensor2tensor"`` is ``resnet.py`` of tensorflow/tensor2tensor (``residual_block``, ``resnet_cifar_15``),
    which Müller et al. 2019 (appendix A.2) use with nine blocks per stage and a stem kernel of 3 instead of 7. Batch
    norm and ReLU follow the stem, and again begin the first block; the first block of every stage, the first stage
    included, has as shortcut a 1 x 1 convolution with batch norm of the activated input; nothing comes between the
    last block and the pooling, so features may be negative. Convolutions from a normal distribution of variance
    1 / fan_in, the last layer from one of 2 / (mean of fan_in and fan_out), both cut at two standard deviations. Its
    stages are twice as wide as He's: their net is ``PreActResNet(shape, classes, stages=(32, 64, 128),
    variant="tensor2tensor")``. The 2023 replication kept a stem of 7 for CIFAR-100 (``stem=7``).

    ``init="fan_out"`` starts convolutions of either variant from N(0, 2 / fan_out), as the replication's code does. In
    both, the bias of the last layer starts at zero and batch norm has torch's constants (0.1 and 1e-5), which are
    tensor2tensor's too.

    >>> import torch
    >>> net = PreActResNet(shape=(3, 32, 32), classes=10, depth=8)
    >>> net.features(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    >>> PreActResNet(shape=(3, 32, 32), classes=10, depth=18)
    Traceback (most recent call last):
    ValueError: depth 18 is not 6n + 2; the nearest are 14 and 20
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        depth: int = 56,
        stages: tuple[int, int, int] = (16, 32, 64),
        stem_channels: int = 16,
        stem: int = 3,
        variant: Literal["he", "tensor2tensor"] = "he",
        init: Literal["variant", "fan_out"] = "variant",
    ) -> None:
        super().__init__()
        check_size(shape, 4, "two halvings")
        count, rest = divmod(depth - 2, 6)
        if rest or count < 1:
            below = 6 * max(count, 1) + 2
            raise ValueError(f"depth {depth} is not 6n + 2; the nearest are {below} and {below + 6}")
        if stem % 2 == 0:
            raise ValueError(
                f"a stem of {stem} x {stem} has no middle; the size of its kernel must be odd, such as 3 or 7"
            )
        if variant not in _SHORTCUTS:
            raise ValueError(f"there is no variant {variant!r}; allowed: {', '.join(_SHORTCUTS)}")
        if init not in ("variant", "fan_out"):
            raise ValueError(f"there is no init {init!r}; allowed: variant, fan_out")
        original, final = variant == "he", stages[-1]
        blocks = _blocks(stem_channels, stages, count, _SHORTCUTS[variant])
        first = nn.Conv2d(shape[0], stem_channels, stem, padding=stem // 2, bias=False)
        self.stem = nn.Sequential(first, *([] if original else _activation(stem_channels)))
        self.body = nn.Sequential(*blocks)
        self.last = nn.Sequential(*(_activation(final) if original else []))
        self.head = nn.Linear(final, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                _initialise(module.weight, original or init == "fan_out")
        if not original:
            _cut_normal(self.head.weight, 2 / ((final + classes) / 2))
        nn.init.zeros_(self.head.bias)


class PreActBlock(nn.Module):
    """x + conv(relu(bn(conv(a)))) with a = relu(bn(x)); a `shortcut` puts its own function of a in the place of x.

    >>> import torch
    >>> PreActBlock(4, 8, 2, nn.Conv2d(4, 8, 1, stride=2))(torch.zeros(1, 4, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    def __init__(self, before: int, after: int, stride: int, shortcut: nn.Module | None) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(before)
        self.conv1, self.norm2 = normalised(before, after, 3, stride)
        self.conv2 = nn.Conv2d(after, after, kernel_size=3, padding=1, bias=False)
        self.shortcut = shortcut

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of `after` channels, smaller by `stride`."""
        activated = functional.relu(self.norm1(maps))
        branch: Tensor = self.conv2(functional.relu(self.norm2(self.conv1(activated))))
        return branch + (maps if self.shortcut is None else self.shortcut(activated))


Shortcut = Callable[[int, int, int, int], nn.Module | None]


def _blocks(before: int, stages: Sequence[int], count: int, shortcut: Shortcut) -> list[PreActBlock]:
    """`count` blocks of each stage; the first of every stage but the first halves the maps."""
    blocks = []
    for stage, after in enumerate(stages):
        for position in range(count):
            stride = 2 if stage > 0 and position == 0 else 1
            blocks.append(PreActBlock(before, after, stride, shortcut(before, after, stage, position)))
            before = after
    return blocks


def _he_shortcut(before: int, after: int, stage: int, position: int) -> nn.Module | None:
    if before != after or (stage > 0 and position == 0):
        return nn.Conv2d(before, after, kernel_size=1, stride=2 if stage > 0 else 1, bias=False)
    # The very first activation is not the branch's own: it comes before the paths part.
    return nn.Identity() if stage == position == 0 else None


def _tensor2tensor_shortcut(before: int, after: int, stage: int, position: int) -> nn.Module | None:
    return None if position else nn.Sequential(*normalised(before, after, 1, 2 if stage > 0 else 1))


def _activation(channels: int) -> list[nn.Module]:
    return [nn.BatchNorm2d(channels), nn.ReLU()]


def _initialise(weight: Tensor, by_fan_out: bool) -> None:
    if by_fan_out:
        nn.init.kaiming_normal_(weight, mode="fan_out", nonlinearity="relu")
    else:
        _cut_normal(weight, 1 / weight[0].numel())


def _cut_normal(weight: Tensor, variance: float) -> None:
    """From a normal distribution cut at two standard deviations, wide enough to have `variance` after the cut."""
    std = sqrt(variance) / _CUT_STD
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


_SHORTCUTS: dict[str, Shortcut] = {"he": _he_shortcut, "tensor2tensor": _tensor2tensor_shortcut}
