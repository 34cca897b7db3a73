"""Layers of a net computed by our kernels, in the place of its own.

They take effect where autocast asks for low precision, and but for linear layers and dropout are torch's own elsewhere.
Maps are (images, channels, height, width) as everywhere, but what comes out has the channels last in memory, where the
next layer wants them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.alexnet import LocalResponseNorm
from softtargets.models.dropout import Dropout
from softtargets.models.kernels import ops
from softtargets.models.kernels.basic_blocks import FusedBasicBlock
from softtargets.models.kernels.blocks import FusedPreActBlock
from softtargets.models.kernels.launch import Pooling
from softtargets.models.kernels.maps import MOST_NUMBERS, asked_for, channels_last
from softtargets.models.kernels.transformer import FusedTransformer, is_whole
from softtargets.models.pooling import SameMaxPool
from softtargets.models.preact_resnet import PreActBlock
from softtargets.models.resnet18 import BasicBlock
from softtargets.models.transformer import Transformer

# Wider layers of a net alone are faster in NVIDIA's library.
WIDEST_ALONE = 64
# The place that won is kept in a byte.
LARGEST_WINDOW = 16


class Convolution(nn.Conv2d):
    """A convolution; weights are read, and their gradient is written, in single precision."""

    def forward(self, maps: Tensor) -> Tensor:
        """As ``nn.Conv2d``."""
        dtype = asked_for(maps)
        stride, padding = self.stride[0], self.padding[0]
        assert isinstance(padding, int)
        if dtype is None or self._most_numbers(maps, padding) >= MOST_NUMBERS:
            return super().forward(maps)
        last, weight = channels_last(maps, dtype), self.weight
        if missing := -self.in_channels % 4 if self.in_channels > 1 else 0:
            # Pixels of three colours would be read number by number.
            last = functional.pad(last, (0, missing))
            weight = functional.pad(weight, (0, 0, 0, 0, 0, missing))
        bias = None if self.bias is None else self.bias.float().unsqueeze(0)
        found: Tensor = ops.convolution(last.unsqueeze(0), weight.unsqueeze(0), stride, padding, bias)
        return found.squeeze(0).permute(0, 3, 1, 2)

    def _most_numbers(self, maps: Tensor, padding: int) -> int:
        """No map has more, neither before nor after."""
        images, _, height, width = maps.shape
        channels = max(self.in_channels + 3, self.out_channels)
        return images * (height + 2 * padding) * (width + 2 * padding) * channels


class StackedLinear(nn.Linear):
    """A linear layer that sums up in the same order however many nets there are; in any precision."""

    def forward(self, rows: Tensor) -> Tensor:
        """As ``nn.Linear``."""
        dtype = asked_for(rows) or rows.dtype
        flat, weight = rows.to(dtype).reshape(-1, self.in_features), self.weight.to(dtype)
        bias = None if self.bias is None else self.bias.float().unsqueeze(0)
        found: Tensor = ops.linear(flat.unsqueeze(0), weight.unsqueeze(0), bias)
        return found.reshape(*rows.shape[:-1], self.out_features)


class StackedBatchNorm(nn.BatchNorm2d):
    """Batch normalisation in plain operations, which ``torch.vmap`` and the compiler make one kernel of."""

    def forward(self, maps: Tensor) -> Tensor:
        """As ``nn.BatchNorm2d``."""
        values = maps.float()
        mean, variance = self.running_mean, self.running_var
        assert mean is not None
        assert variance is not None
        assert self.num_batches_tracked is not None
        if self.training:
            count = maps.shape[0] * maps.shape[2] * maps.shape[3]
            new_variance, new_mean = torch.var_mean(values, dim=(0, 2, 3), correction=0)
            with torch.no_grad():
                share = self.momentum or 0.0
                mean.mul_(1 - share).add_(new_mean.detach() * share)
                unbiased = new_variance.detach() * (count / max(count - 1, 1))
                variance.mul_(1 - share).add_(unbiased * share)
                self.num_batches_tracked.add_(1)
            mean, variance = new_mean, new_variance
        scale = self.weight * torch.rsqrt(variance + self.eps)
        result = (values - mean[:, None, None]) * scale[:, None, None] + self.bias[:, None, None]
        return result.to(maps.dtype)


class ResponseNorm(LocalResponseNorm):
    """Local response normalisation."""

    def forward(self, maps: Tensor) -> Tensor:
        """As the layer it stands for."""
        dtype = asked_for(maps)
        if dtype is None:
            return super().forward(maps)
        found: Tensor = ops.response_norm(
            channels_last(maps, dtype), self.radius, self.bias, self.alpha, self.beta
        )
        return found.permute(0, 3, 1, 2)


class MaxPool(nn.MaxPool2d):
    """Maxima over windows side by side."""

    def forward(self, maps: Tensor) -> Tensor:
        """As ``nn.MaxPool2d``."""
        dtype = asked_for(maps)
        if dtype is None:
            found: Tensor = super().forward(maps)
            return found
        kernel, stride = self.kernel_size, self.stride
        assert isinstance(kernel, int)
        assert isinstance(stride, int)
        height, width = ((size - kernel) // stride + 1 for size in maps.shape[2:])
        return _pooled(maps, dtype, Pooling(kernel, stride, 0, 0, height, width))


class OverlappingMaxPool(SameMaxPool):
    """Maxima over windows that overlap."""

    def forward(self, maps: Tensor) -> Tensor:
        """As the layer it stands for."""
        dtype = asked_for(maps)
        if dtype is None:
            return super().forward(maps)
        height, width = maps.shape[2:]
        return _pooled(maps, dtype, Pooling(3, 2, height % 2, width % 2, -(-height // 2), -(-width // 2)))


class KernelDropout(Dropout):
    """Dropout by place, the same bits; a mask is drawn again in the backward pass."""

    def forward(self, activations: Tensor) -> Tensor:
        """As `Dropout`."""
        idle = not self.training or self.p == 0 or self.place is None
        if idle or not activations.is_cuda or activations.dtype == torch.float64:
            return super().forward(activations)
        assert self.place is not None
        if len(self.place) > 3 and activations.numel() // activations.shape[0] % 4:
            return super().forward(activations)  # rows that begin in the middle of a draw
        found: Tensor = ops.drop(activations.contiguous(), self.place, self.position, self.p)
        return found


def use_kernels(model: nn.Module, stacked: bool) -> None:
    """Let every layer that a kernel computes faster be computed by it; names and weights stay as they are.

    `stacked` nets are computed as one, which is where other libraries are slow.
    """
    for module in model.modules():
        if (found := OURS.get(type(module))) and found[1](module, stacked):
            module.__class__ = found[0]
    links = getattr(model, "links", [])
    for one, other in pairwise(links):
        if isinstance(one, FusedPreActBlock | FusedBasicBlock) and type(one) is type(other):
            one.hands_on = True


def _suits(layer: nn.Conv2d, stacked: bool) -> bool:
    """Whether our kernel computes this convolution: square, dense, padded by zeros, and not too wide."""
    height, width = layer.kernel_size
    return (
        height == width
        and layer.stride[0] == layer.stride[1]
        and not isinstance(layer.padding, str)
        and layer.padding[0] == layer.padding[1]
        and layer.dilation == (1, 1)
        and layer.groups == 1
        and layer.padding_mode == "zeros"
        and (stacked or max(layer.in_channels, layer.out_channels) <= WIDEST_ALONE)
    )


def _averages(layer: nn.BatchNorm2d, stacked: bool) -> bool:
    """Whether it has a scale and a shift, and keeps moving averages that forget."""
    return stacked and layer.affine and layer.track_running_stats and layer.momentum is not None


def _fuses(block: PreActBlock | BasicBlock, stacked: bool) -> bool:
    """Whether a block's shortcut is none or a convolution with a norm, and its norms are of torch's own kind."""
    norms, widths = [block.norm1, block.norm2], [block.conv1.in_channels, block.conv2.out_channels]
    if stacked:
        return False
    if not _is_identity(block.shortcut, isinstance(block, BasicBlock)):
        sides = [] if block.shortcut is None else list(block.shortcut.children())
        if len(sides) != 2 or not isinstance(sides[0], nn.Conv2d) or not isinstance(sides[1], nn.BatchNorm2d):
            return False
        norms.append(sides[1])
    plain = all(type(norm) is nn.BatchNorm2d and _averages(norm, True) for norm in norms)
    # Kernels compute with multiples of 16 channels; basic blocks fill others up, which should not double the work.
    return plain and all(not width % 16 or (type(block) is BasicBlock and width > 16) for width in widths)


def _is_identity(shortcut: nn.Module | None, is_basic: bool) -> bool:
    """Basic blocks have a shortcut of no layers then, the others, whose shortcut is of activated maps, have none."""
    return type(shortcut) is nn.Sequential and not len(shortcut) if is_basic else shortcut is None


def _is_plain(layer: nn.MaxPool2d, stacked: bool) -> bool:
    kernel, rest = layer.kernel_size, (layer.padding, layer.dilation, layer.ceil_mode, layer.return_indices)
    if not isinstance(kernel, int) or not isinstance(layer.stride, int):
        return False
    return kernel <= LARGEST_WINDOW and rest == (0, 1, False, False)


def _stacks(layer: nn.Module, stacked: bool) -> bool:
    """Whether nets are computed as one: NVIDIA's library serves a net alone."""
    return stacked


def _is_alone(layer: nn.Module, stacked: bool) -> bool:
    """Whether a net is computed by itself; in a stack every run has a place of its own."""
    return not stacked


def _is_whole(net: Transformer, stacked: bool) -> bool:
    """Whether a net alone is made of layers that are known."""
    return not stacked and is_whole(net)


def _always(layer: nn.Module, stacked: bool) -> bool:
    return True


# By the very type of a layer: what computes it with our kernels, and whether it does.
OURS: dict[type[nn.Module], tuple[type[nn.Module], Callable[..., bool]]] = {
    nn.Conv2d: (Convolution, _suits),
    nn.Linear: (StackedLinear, _stacks),
    nn.BatchNorm2d: (StackedBatchNorm, _averages),
    LocalResponseNorm: (ResponseNorm, _always),
    SameMaxPool: (OverlappingMaxPool, _always),
    nn.MaxPool2d: (MaxPool, _is_plain),
    Dropout: (KernelDropout, _is_alone),
    PreActBlock: (FusedPreActBlock, _fuses),
    BasicBlock: (FusedBasicBlock, _fuses),
    Transformer: (FusedTransformer, _is_whole),
}


def _pooled(maps: Tensor, dtype: torch.dtype, pooling: Pooling) -> Tensor:
    found: Tensor = ops.max_pool(channels_last(maps, dtype), list(pooling))[0]
    return found.permute(0, 3, 1, 2)
