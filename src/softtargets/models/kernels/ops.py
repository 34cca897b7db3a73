"""The kernels as PyTorch operators, so that autograd, torch.compile and torch.vmap know what they do.

Maps have the channels last and the runs first, (runs, images, height, width, channels), and lie in memory in that
order; under vmap the runs of a stack become the first dimension. `softtargets.models.kernels.layers` puts these in the
place of a net's own layers.
"""

from __future__ import annotations

from typing import Any, List  # noqa: UP035 - of signatures of operators torch 2.6 knows no other lists

import torch
from torch import Tensor

from softtargets.models.kernels import launch, products


@torch.library.custom_op("softtargets::convolution", mutates_args=())
def convolution(
    maps: Tensor, weights: Tensor, stride: int, padding: int, bias: Tensor | None = None
) -> Tensor:
    """Maps convolved with float32 weights (runs, new channels, channels, k, k), in the precision of the maps.

    A bias is float32 (runs, new channels).
    """
    return launch.convolve(maps, weights, stride, padding, None, bias)


@torch.library.custom_op("softtargets::convolution_map_gradient", mutates_args=())
def map_gradient(
    upstream: Tensor, weights: Tensor, height: int, width: int, stride: int, padding: int
) -> Tensor:
    """The gradient with respect to maps of this height and width."""
    return launch.gradient_of_maps(upstream, weights, height, width, stride, padding)


@torch.library.custom_op("softtargets::convolution_weight_gradient", mutates_args=())
def weight_gradient(
    maps: Tensor, upstream: Tensor, kernel: int, stride: int, padding: int, biased: bool = False
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to the weights and the bias, in single precision; without a bias, of no numbers."""
    return launch.gradients_of_layer(maps, upstream, kernel, stride, padding, biased)


@torch.library.custom_op("softtargets::response_norm", mutates_args=())
def response_norm(maps: Tensor, radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    """Local response normalisation over the last dimension."""
    return launch.normalise(maps, radius, bias, alpha, beta)


@torch.library.custom_op("softtargets::response_norm_gradient", mutates_args=())
def response_norm_gradient(
    maps: Tensor, upstream: Tensor, radius: int, bias: float, alpha: float, beta: float
) -> Tensor:
    """The gradient of `response_norm`."""
    return launch.gradient_of_norm(maps, upstream, radius, bias, alpha, beta)


@torch.library.custom_op("softtargets::max_pool", mutates_args=())
def max_pool(maps: Tensor, pooling: List[int]) -> tuple[Tensor, Tensor]:  # noqa: UP006
    """Maxima over windows, and which place of each window won; `pooling` is a `launch.Pooling`."""
    return launch.pool(maps, launch.Pooling(*pooling))


@torch.library.custom_op("softtargets::max_pool_gradient", mutates_args=())
def max_pool_gradient(
    upstream: Tensor,
    winners: Tensor,
    height: int,
    width: int,
    pooling: List[int],  # noqa: UP006
) -> Tensor:
    """The gradient with respect to maps of this height and width."""
    return launch.gradient_of_pool(upstream, winners, height, width, launch.Pooling(*pooling))


@torch.library.custom_op("softtargets::drop", mutates_args=())
def drop(activations: Tensor, place: Tensor, position: Tensor, p: float) -> Tensor:
    """Dropout of dense activations by place; its gradient is the same of what comes from above, and keeps no mask."""
    return launch.drop(activations, place, position, p)


@drop.register_fake
def _(activations: Tensor, place: Tensor, position: Tensor, p: float) -> Tensor:
    return torch.empty_like(activations)


def _keep_place(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, place, position, ctx.p = inputs
    ctx.save_for_backward(place, position)


def _drop_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    return drop(upstream.contiguous(), *ctx.saved_tensors, ctx.p), None, None, None


drop.register_autograd(_drop_backward, setup_context=_keep_place)


@max_pool.register_fake
def _(maps: Tensor, pooling: list[int]) -> tuple[Tensor, Tensor]:
    shape = (*maps.shape[:-3], *pooling[-2:], maps.shape[-1])
    return maps.new_empty(shape), maps.new_empty(shape, dtype=torch.uint8)


@max_pool_gradient.register_fake
def _(upstream: Tensor, winners: Tensor, height: int, width: int, pooling: list[int]) -> Tensor:
    return upstream.new_empty(*upstream.shape[:-3], height, width, upstream.shape[-1])


@convolution.register_fake
def _(maps: Tensor, weights: Tensor, stride: int, padding: int, bias: Tensor | None = None) -> Tensor:
    shape = launch.Shape.of(maps, weights, stride, padding)
    return maps.new_empty(*maps.shape[:2], shape.new_height, shape.new_width, shape.new_channels)


@map_gradient.register_fake
def _(upstream: Tensor, weights: Tensor, height: int, width: int, stride: int, padding: int) -> Tensor:
    return upstream.new_empty(*upstream.shape[:2], height, width, weights.shape[2])


@weight_gradient.register_fake
def _(
    maps: Tensor, upstream: Tensor, kernel: int, stride: int, padding: int, biased: bool = False
) -> tuple[Tensor, Tensor]:
    runs, new_channels = maps.shape[0], upstream.shape[-1]
    shape = (runs, new_channels, maps.shape[-1], kernel, kernel)
    of_bias = (runs, new_channels if biased else 0)
    return maps.new_empty(shape, dtype=torch.float32), maps.new_empty(of_bias, dtype=torch.float32)


@response_norm.register_fake
@response_norm_gradient.register_fake
def _(maps: Tensor, *_rest: Any) -> Tensor:
    return torch.empty_like(maps)


def _keep_convolution(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    maps, weights, ctx.stride, ctx.padding, _ = inputs
    ctx.save_for_backward(maps, weights)


def _convolution_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    maps, weights = ctx.saved_tensors
    upstream = upstream.contiguous()
    of_maps = of_weights = of_bias = None
    learns, biased = ctx.needs_input_grad[1], ctx.needs_input_grad[-1]
    if ctx.needs_input_grad[0]:
        of_maps = map_gradient(upstream, weights, *maps.shape[2:4], ctx.stride, ctx.padding)
    if learns or biased:
        rest = weights.shape[-1], ctx.stride, ctx.padding
        of_weights, of_bias = weight_gradient(maps, upstream, *rest, biased)
    return of_maps, of_weights if learns else None, None, None, of_bias if biased else None


convolution.register_autograd(_convolution_backward, setup_context=_keep_convolution)


def _keep_norm(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    maps, *ctx.numbers = inputs
    ctx.save_for_backward(maps)


def _norm_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    (maps,) = ctx.saved_tensors
    return response_norm_gradient(maps, upstream.contiguous(), *ctx.numbers), *(None,) * 4


response_norm.register_autograd(_norm_backward, setup_context=_keep_norm)


def _keep_pool(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    maps, ctx.pooling = inputs
    ctx.height, ctx.width = maps.shape[-3:-1]
    ctx.save_for_backward(output[1])


def _pool_backward(ctx: Any, upstream: Tensor, _: Any) -> tuple[Tensor, None]:
    (winners,) = ctx.saved_tensors
    return max_pool_gradient(upstream.contiguous(), winners, ctx.height, ctx.width, ctx.pooling), None


max_pool.register_autograd(_pool_backward, setup_context=_keep_pool)


@convolution.register_vmap
def _(
    info: Any,
    dims: tuple[int | None, ...],
    maps: Tensor,
    weights: Tensor,
    stride: int,
    padding: int,
    bias: Tensor | None = None,
) -> tuple[Tensor, int]:
    """A stack of nets, each of which had one run as the first dimension."""
    stacked = [
        None if values is None else _stacked(values, dim, info.batch_size).flatten(0, 1)
        for values, dim in zip((maps, weights, bias), (*dims[:2], *dims[4:], None), strict=False)
    ]
    found: Tensor = convolution(*stacked[:2], stride, padding, stacked[2])
    return found.unflatten(0, (info.batch_size, -1)), 0


@response_norm.register_vmap
def _(info: Any, dims: tuple[int | None, ...], maps: Tensor, *numbers: Any) -> tuple[Tensor, int]:
    found: Tensor = response_norm(_stacked(maps, dims[0], info.batch_size), *numbers)
    return found, 0


@max_pool.register_vmap
def _(
    info: Any, dims: tuple[int | None, ...], maps: Tensor, pooling: list[int]
) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
    found: tuple[Tensor, Tensor] = max_pool(_stacked(maps, dims[0], info.batch_size), pooling)
    return found, (0, 0)


def _stacked(values: Tensor, dim: int | None, runs: int) -> Tensor:
    """With the runs first, in memory as well."""
    return _moved(values, dim, runs).contiguous()


def _moved(values: Tensor, dim: int | None, runs: int) -> Tensor:
    """With the runs first."""
    return values.expand(runs, *values.shape) if dim is None else values.movedim(dim, 0)


# --- linear layers ---


@torch.library.custom_op("softtargets::linear", mutates_args=())
def linear(rows: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    """Rows (runs, rows, inputs) times weights (runs, outputs, inputs), plus a bias (runs, outputs)."""
    return products.linear(rows, weights, bias)


@torch.library.custom_op("softtargets::linear_row_gradient", mutates_args=())
def linear_row_gradient(upstream: Tensor, weights: Tensor) -> Tensor:
    """The gradient with respect to the rows."""
    return products.gradient_of_rows(upstream, weights)


@torch.library.custom_op("softtargets::linear_weight_gradient", mutates_args=())
def linear_weight_gradient(
    rows: Tensor, upstream: Tensor, weights: Tensor, biased: bool
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to the weights, as these lie in memory, and to the bias, in single precision."""
    return products.gradients_of_weights(rows, upstream, weights, biased)


@torch.library.custom_op("softtargets::sums", mutates_args=())
def sums(values: Tensor, squared: bool) -> Tensor:
    """Of all numbers of each run, (runs, count) to (runs,), or of their squares; in single precision at least."""
    return products.sums(values, squared)


@torch.library.custom_op("softtargets::apart", mutates_args=())
def apart(values: Tensor) -> Tensor:
    """A copy, made where torch's compiler cannot look: it computes the values first, and what needs them after that.

    Otherwise it computes them once or again for every number that needs them, by how many runs there are. Of a sum of
    two products only one is rounded, and which one depends on what else stands in the kernel.
    """
    return values.clone()


@linear.register_fake
def _(rows: Tensor, weights: Tensor, bias: Tensor | None) -> Tensor:
    return rows.new_empty(*rows.shape[:2], weights.shape[1])


@linear_row_gradient.register_fake
def _(upstream: Tensor, weights: Tensor) -> Tensor:
    return upstream.new_empty(*upstream.shape[:2], weights.shape[2])


@linear_weight_gradient.register_fake
def _(rows: Tensor, upstream: Tensor, weights: Tensor, biased: bool) -> tuple[Tensor, Tensor]:
    of_bias = (rows.shape[0], upstream.shape[-1] if biased else 0)
    return torch.empty_like(weights), rows.new_empty(of_bias, dtype=torch.float32)


@apart.register_fake
def _(values: Tensor) -> Tensor:
    return torch.empty_like(values)


@sums.register_fake
def _(values: Tensor, squared: bool) -> Tensor:
    return values.new_empty(values.shape[0], dtype=torch.promote_types(values.dtype, torch.float32))


def _keep_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _linear_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    rows, weights = ctx.saved_tensors
    of_rows = of_weights = of_bias = None
    _, learns, biased = ctx.needs_input_grad
    if ctx.needs_input_grad[0]:
        of_rows = linear_row_gradient(upstream, weights)
    if learns or biased:
        of_weights, of_bias = linear_weight_gradient(rows, upstream, weights, biased)
    return of_rows, of_weights if learns else None, of_bias if biased else None


linear.register_autograd(_linear_backward, setup_context=_keep_linear)


@linear.register_vmap
def _(
    info: Any, dims: tuple[int | None, ...], rows: Tensor, weights: Tensor, bias: Tensor | None
) -> tuple[Tensor, int]:
    """A stack of nets, each of which had one run as the first dimension; what they share is not copied."""
    moved = [
        None if values is None else _moved(values, dim, info.batch_size).flatten(0, 1)
        for values, dim in zip((rows, weights, bias), dims, strict=True)
    ]
    found: Tensor = linear(*moved[:2], None if moved[2] is None else moved[2].contiguous())
    return found.unflatten(0, (info.batch_size, -1)), 0


def _keep_sums(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    values, ctx.squared = inputs
    ctx.shape, ctx.dtype = values.shape, values.dtype
    if ctx.squared:
        ctx.save_for_backward(values)


def _sums_backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
    each = upstream.unsqueeze(1).expand(ctx.shape)
    return (2 * each * ctx.saved_tensors[0] if ctx.squared else each).to(ctx.dtype), None


sums.register_autograd(_sums_backward, setup_context=_keep_sums)
