"""From tensors to launches: batch norms with their ReLU, and convolutions that leave sums for the norm behind them.

Everything is of one net: maps are (images, height, width, channels), dense.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from softtargets.models.kernels import launch, library
from softtargets.models.kernels.batch_norm import (
    apply_kernel,
    end_gradient_kernel,
    gradient_sum_kernel,
    lay_kernel,
    map_gradient_kernel,
    norm_gradient_kernel,
    norm_kernel,
    tile_sum_kernel,
)
from softtargets.models.kernels.convolution import folded_part_sum_kernel, weight_gradient_kernel
from softtargets.models.kernels.launch import Ending, Shape, Tiles, on_device, power_of_2

# Rows of which whoever writes maps leaves sums behind.
ROWS = 128
# Numbers that one program of a pass over maps holds, tiles that are put together at a time, and channels.
HELD = 4096
TOGETHER, WIDE = 1024, 8
LAID = 1024
# Convolutions of fewer channels are computed for squares of places: their rows are too narrow for tensor cores.
NARROW = 32
# Weights' gradients of wider ones are faster in NVIDIA's library.
WIDEST = 64


class Norm(NamedTuple):
    """What a batch norm has learnt, what it keeps, and how fast that moves on."""

    gains: Tensor
    biases: Tensor
    mean: Tensor
    variance: Tensor
    batches: Tensor
    share: float
    eps: float


class Layer(NamedTuple):
    """A convolution that keeps the size of maps but for its stride, its weights laid for both products."""

    forwards: Tensor
    backwards: Tensor
    channels: int
    new_channels: int
    kernel: int
    stride: int
    fold: int

    def shape(self, maps: Tensor) -> Shape:
        """Of maps that go in, as the products see it."""
        _, height, width, _ = maps.shape
        fold = self.fold
        step, new = self.stride * fold, fold * fold * self.new_channels
        new_height, new_width = -(-height // step), -(-width // step)
        kernel = self.kernel + fold - 1
        return Shape(height, width, self.channels, new_height, new_width, new, kernel, step, self.kernel // 2)

    def shape_backwards(self, upstream: Tensor, maps: Tensor) -> Shape:
        """Of the gradient that comes back to maps: what is read is the upstream gradient."""
        if self.fold > 1:  # of squares: a convolution like any other
            return self._replace(channels=self.new_channels, new_channels=self.channels).shape(upstream)
        (_, height, width, channels), kernel = upstream.shape, self.kernel
        _, new_height, new_width, new = maps.shape
        return Shape(height, width, channels, new_height, new_width, new, kernel, self.stride, kernel // 2)


@lru_cache(maxsize=1024)
def product_tiles(channels: int, columns: int, backwards: bool) -> Tiles:
    """For products over so many channels at a tap, of so many columns: what measured best on an H200.

    Results are cut into ROWS, of which they leave sums for whoever comes next.
    """
    wide = max(16, min(128, power_of_2(columns)))
    depth = next(depth for depth in (64, 32, 16) if channels % depth == 0)
    return Tiles(64 if backwards and wide == 128 else ROWS, wide, depth, 4, 3 if depth == 64 else 4)


@lru_cache(maxsize=1024)
def gradient_tiles(rows: int, channels: int, new_channels: int, kernel: int, fold: int) -> Tiles:
    """For the gradients of weights."""
    if fold > 1:
        return Tiles(64, min(128, fold * fold * new_channels), 128, 4, 3, 1024)
    return launch.gradient_tiles(rows, channels, new_channels, kernel**2)


def fold_of(channels: int, height: int, width: int) -> int:
    """How many places side by side a 3 x 3 convolution that keeps such maps as they are takes for one."""
    return 2 if channels <= NARROW and height % 2 == width % 2 == 0 else 1


def lay(weights: Tensor, dtype: torch.dtype, stride: int = 1, fold: int = 1) -> Layer:
    """Weights (new channels, channels, k, k) of a convolution, in the order and precision of both products."""
    new, channels, kernel, _ = weights.shape
    side = kernel + fold - 1
    weights = weights.contiguous()
    both = torch.empty(2, side * side * channels * fold * fold * new, dtype=dtype, device=weights.device)
    with on_device(weights):
        lay_kernel[(-(-both.shape[1] // LAID), 2)](
            weights, both[0], both[1],
            CHANNELS=channels, NEW_CHANNELS=new, KERNEL=kernel, FOLD=fold, BLOCK=LAID, num_warps=4,
        )  # fmt: skip
    return Layer(both[0], both[1], channels, new, kernel, stride, fold)


# --- norms ---


def sums_of(maps: Tensor) -> Tensor:
    """Sums of each tile of maps, (tiles, 2, channels)."""
    found = _room(maps)
    grid, numbers = _by_tiles(maps)
    with on_device(maps):
        tile_sum_kernel[grid](maps, found, *_size(maps), **numbers)
    return found


def norm_of(sums: Tensor, maps: Tensor, norm: Norm, fold: int = 1) -> Tensor:
    """The norm (4, channels) of maps, of their sums by tiles, perhaps of squares; moving averages move on.

    Maps may have more channels than the norm has learnt about, all of them zeros: they stay so.
    """
    tiles, _, channels = sums.shape
    found = torch.empty(4, channels, device=sums.device)
    wide = min(WIDE, power_of_2(channels))
    with on_device(found):
        norm_kernel[(-(-channels // wide),)](
            sums, norm.gains, norm.biases, norm.mean, norm.variance, norm.batches, found,
            maps.shape[:-1].numel(), tiles, norm.share, norm.eps,
            channels, len(norm.gains),
            ROWS=ROWS, PLACES=fold * fold, TILES=min(TOGETHER, power_of_2(tiles)), WIDE=wide,
            num_warps=8,
        )  # fmt: skip
    return found


def known_norm(norm: Norm, channels: int) -> Tensor:
    """The norm of evaluation, by moving averages, for maps of so many channels, of which the last may be zeros."""
    inverse = torch.rsqrt(norm.variance + norm.eps)
    scale = norm.gains * inverse
    found = torch.stack((norm.mean, inverse, scale, norm.biases - norm.mean * scale))
    missing = channels - found.shape[1]
    return functional.pad(found, (0, missing)) if missing else found


def activated(
    maps: Tensor, norm: Tensor, added: Tensor | None = None, added_norm: Tensor | None = None
) -> Tensor:
    """relu(norm(maps)), or relu(norm(maps) + added), where what is added may have a norm of its own."""
    results = torch.empty_like(maps)
    grid, numbers = _pass(maps)
    with on_device(maps):
        apply_kernel[grid](maps, norm, added, added_norm, results, *_size(maps), **numbers)
    return results


def gradient_sums_of(upstream: Tensor, maps: Tensor, norm: Tensor, masked: bool = False) -> Tensor:
    """What the gradient of a norm needs of the gradient behind it, where nobody has left it.

    With `masked` of the one behind its ReLU.
    """
    found = _room(maps)
    grid, numbers = _by_tiles(maps)
    with on_device(maps):
        gradient_sum_kernel[grid](upstream, maps, norm, found, *_size(maps), MASKED=masked, **numbers)
    return found


def gradient_before_end(
    upstream: Tensor,
    more: Tensor | None,
    results: Tensor,
    maps: Tensor,
    norm: Tensor,
    side: Tensor | None = None,
    side_norm: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """The gradient of what `activated` adds up, of that of its results, of which two parts may come apart.

    With the sums that the norms' gradients need.
    """
    behind, sums = torch.empty_like(maps), _room(maps)
    side_sums = None if side is None else torch.empty_like(sums)
    grid, numbers = _by_tiles(maps)
    with on_device(maps):
        end_gradient_kernel[grid](
            upstream, more, results, maps, norm, side, side_norm, behind, sums, side_sums, *_size(maps), **numbers
        )  # fmt: skip
    return behind, sums, side_sums


def gradient_before(
    upstream: Tensor,
    sums: Tensor,
    maps: Tensor,
    norm: Tensor,
    added: Tensor | None = None,
    masked: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of a norm's maps, plus what is `added`, of its gains and of its biases, of the one behind it.

    With `masked` of the one behind its ReLU; the sums are the same.
    """
    tiles, _, channels = sums.shape
    rows = maps.shape[:-1].numel()
    found = torch.empty(5, channels, device=maps.device)
    parts, gains, biases = found[:3], found[3], found[4]
    wide = min(WIDE, power_of_2(channels))
    results = torch.empty_like(maps)
    grid, numbers = _pass(maps)
    with on_device(maps):
        norm_gradient_kernel[(-(-channels // wide),)](
            sums, norm, parts, gains, biases, rows, tiles,
            channels, TILES=min(TOGETHER, power_of_2(tiles)), WIDE=wide, num_warps=8,
        )  # fmt: skip
        map_gradient_kernel[grid](
            upstream, maps, added, norm if masked else None, parts, results, rows, channels, **numbers
        )
    return results, gains, biases


# --- convolutions ---


def convolve(
    maps: Tensor, layer: Layer, added: Tensor | None = None, added_norm: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The convolution of maps, plus what is `added`, perhaps after a norm; and the sums for a norm of the result."""
    shape, fold = layer.shape(maps), layer.fold
    size = shape.new_height * fold, shape.new_width * fold
    results = maps.new_empty(len(maps), *size, layer.new_channels)
    tiles, sums = product_tiles(shape.channels, shape.new_channels, False), _room(results, fold)
    ending = Ending(added=added, added_norm=added_norm, sums=sums)
    launch.product(maps.unsqueeze(0), layer.forwards, None, results, shape, False, tiles, ending, fold)
    return results, sums


def gradient_behind(
    upstream: Tensor, layer: Layer, before: Tensor, norm: Tensor, added: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The gradient behind the norm of a convolution of relu(norm(before)), and its sums.

    What comes to the ReLU another way is `added`.
    """
    results, shape, tiles = _backwards(upstream, layer, before)
    sums = _room(results, layer.fold, tiles.rows)
    ending = Ending(added=added, before=before, norm=norm, sums=sums)
    _multiply_back(upstream, layer, results, shape, tiles, ending)
    return results, sums


def gradient_of_maps(upstream: Tensor, layer: Layer, maps: Tensor, added: Tensor | None = None) -> Tensor:
    """The gradient of what a convolution sees, plus what is `added`."""
    results, shape, tiles = _backwards(upstream, layer, maps)
    _multiply_back(upstream, layer, results, shape, tiles, Ending(added=added))
    return results


def _backwards(upstream: Tensor, layer: Layer, maps: Tensor) -> tuple[Tensor, Shape, Tiles]:
    shape = layer.shape_backwards(upstream, maps)
    return torch.empty_like(maps), shape, product_tiles(shape.channels, shape.new_channels, True)


def _multiply_back(
    upstream: Tensor, layer: Layer, results: Tensor, shape: Shape, tiles: Tiles, ending: Ending
) -> None:
    plain = layer.fold == 1
    launch.product(
        upstream.unsqueeze(0), layer.backwards, None, results, shape, plain, tiles, ending, layer.fold
    )


def gradient_of_weights(maps: Tensor, upstream: Tensor, layer: Layer) -> Tensor:
    """Of a convolution of maps, in single precision (new channels, channels, k, k)."""
    kernel, stride, channels, new = layer.kernel, layer.stride, layer.channels, layer.new_channels
    if maps.is_cuda and kernel == 3 and max(channels, new) > WIDEST:
        # Only the shape of weights matters, and that their channels come last too.
        like = maps.new_empty(new, kernel, kernel, channels).permute(0, 3, 1, 2)
        return library.gradient_of_weights(maps, upstream, like, stride)
    tiles = gradient_tiles(upstream.shape[:-1].numel(), channels, new, kernel, layer.fold)
    if layer.fold == 1:
        given = maps.unsqueeze(0), upstream.unsqueeze(0), kernel, stride, kernel // 2, tiles
        return launch.gradient_of_weights(*given).squeeze(0)
    shape = layer.shape(maps)
    rows, deep = len(maps) * shape.new_height * shape.new_width, shape.kernel**2 * channels
    parts = -(-rows // tiles.part)
    partials = torch.empty(parts, deep, shape.new_channels, device=maps.device)
    gradients = torch.empty(new, channels, kernel, kernel, device=maps.device)
    numbers = launch.numbers_of(shape, tiles, maps)
    block = 128
    with on_device(maps):
        weight_gradient_kernel[(parts, -(-deep // tiles.depth), -(-shape.new_channels // tiles.columns))](
            maps, upstream, partials, None, rows, parts, PART=tiles.part, FOLD=layer.fold, **numbers
        )
        folded_part_sum_kernel[(-(-gradients.numel() // block),)](
            partials, gradients, parts,
            CHANNELS=channels, NEW_CHANNELS=new, KERNEL=kernel, FOLD=layer.fold, BLOCK=block, AT_A_TIME=8, num_warps=4,
        )  # fmt: skip
    return gradients


def _room(maps: Tensor, fold: int = 1, rows: int = ROWS) -> Tensor:
    """For sums of tiles of maps."""
    squares = maps.shape[:-1].numel() // fold**2
    return maps.new_empty(-(-squares // rows) * fold**2, 2, maps.shape[-1], dtype=torch.float32)


def _size(maps: Tensor) -> tuple[int, int]:
    return maps.shape[:-1].numel(), maps.shape[-1]


def _by_tiles(maps: Tensor) -> tuple[tuple[int, int], dict[str, int]]:
    rows, channels = _size(maps)
    wide = min(32, power_of_2(channels))
    return (-(-rows // ROWS), -(-channels // wide)), {"ROWS": ROWS, "WIDE": wide, "num_warps": 4}


def _pass(maps: Tensor) -> tuple[tuple[int, int], dict[str, int]]:
    rows, channels = _size(maps)
    wide = min(128, power_of_2(channels))
    held = HELD // wide
    return (-(-rows // held), -(-channels // wide)), {"ROWS": held, "WIDE": wide, "num_warps": 4}
