"""Batch normalisation over all rows of a batch, of which every process has some."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import Function

from softtargets.exceptions import RecipeError
from softtargets.training.distributed.whole_batch import WholeBatch


class _Normalise(Function):
    """Maps normalised by the mean and variance of all processes' maps, which are given back too.

    The variance of all is put together from those of each (Chan et al. 1983), which does not cancel as a difference of
    sums of squares would.
    """

    @staticmethod
    def forward(
        ctx: Any, maps: Tensor, weight: Tensor, bias: Tensor, eps: float, whole: WholeBatch
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        over = [dim for dim in range(maps.dim()) if dim != 1]
        values = maps if maps.dtype == torch.float64 else maps.float()
        variance, mean = torch.var_mean(values, dim=over, correction=0)
        count = values.new_full((1,), 0 if whole.idle else values.numel() // values.shape[1])
        told = whole.crew.gathered(torch.cat((mean, variance, count)).double())
        means, variances, counts = told.split((len(mean), len(mean), 1), dim=1)
        total = counts.sum()
        centre = (counts * means).sum(0) / total
        spread = (counts * (variances + (means - centre).square())).sum(0) / total
        scale = torch.rsqrt(spread + eps)
        shape = [1, -1] + [1] * (maps.dim() - 2)
        ctx.shape, ctx.over, ctx.whole = shape, over, whole
        centre, spread, scale = (each.to(values.dtype) for each in (centre, spread, scale))
        ctx.save_for_backward(maps, weight, centre, scale, total)
        normal = (values - centre.view(shape)) * scale.view(shape)
        result = torch.addcmul(bias.view(shape), normal, weight.view(shape)).to(maps.dtype)
        ctx.mark_non_differentiable(centre, spread, total)
        return result, centre, spread, total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        maps, weight, centre, scale, total = ctx.saved_tensors
        whole: WholeBatch = ctx.whole
        shape, over = ctx.shape, ctx.over
        normal = (maps.to(centre.dtype) - centre.view(shape)) * scale.view(shape)
        upstream = upstream.to(centre.dtype)
        of_bias, of_weight = upstream.sum(over), (upstream * normal).sum(over)
        found = None
        if ctx.needs_input_grad[0]:
            everyones = whole.added_up(torch.cat((of_bias, of_weight)))
            mean_up, mean_normal = (
                (each / total).to(centre.dtype).view(shape) for each in everyones.split(len(of_bias))
            )
            # What is not counted has no part in the mean, and so none in its gradient.
            rest = 0.0 if whole.idle else mean_up + normal * mean_normal
            found = ((upstream - rest) * (weight * scale).view(shape)).to(maps.dtype)
        return found, of_weight, of_bias, None, None


class _OverRanks:
    """What batch norms become: the same names, weights and averages; training looks at all rows of the batch."""

    whole: WholeBatch

    def normalise(self, maps: Tensor) -> Tensor:
        """Normalised maps; the averages move as those of one process would."""
        layer: Any = self
        result, mean, variance, count = _Normalise.apply(
            maps, layer.weight, layer.bias, layer.eps, self.whole
        )  # type: ignore[no-untyped-call]
        with torch.no_grad():
            layer.num_batches_tracked.add_(1)
            share = 1 / layer.num_batches_tracked.float() if layer.momentum is None else layer.momentum
            unbiased = variance * (count / (count - 1).clamp_min(1)).to(variance.dtype)
            for average, now in ((layer.running_mean, mean), (layer.running_var, unbiased)):
                average.mul_(1 - share).add_((now * share).to(average.dtype))
        found: Tensor = result
        return found


class BatchNorm(_OverRanks, nn.BatchNorm2d):
    """Batch normalisation of one kind of layer after another: of maps, or of rows."""

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, maps: Tensor) -> Tensor:
        """As the layer that it stands for."""
        return self.normalise(maps) if self.training else nn.BatchNorm2d.forward(self, maps)


class RowNorm(_OverRanks, nn.BatchNorm1d):
    """The same for rows of numbers."""

    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def forward(self, rows: Tensor) -> Tensor:
        """As the layer that it stands for."""
        return self.normalise(rows) if self.training else nn.BatchNorm1d.forward(self, rows)


# By the very type of a layer. Those of timm's nets that act as well are found by their name.
KINDS: dict[type[nn.Module], type[nn.Module]] = {nn.BatchNorm2d: BatchNorm, nn.BatchNorm1d: RowNorm}
_ACTING = "BatchNormAct2d"


def share_norms(model: nn.Module, whole: WholeBatch) -> None:
    """Let the batch norms of a net look at all rows of a batch; refuses those of which we do not know how they work."""
    for name, module in model.named_modules():
        if not isinstance(module, nn.modules.batchnorm._BatchNorm):
            continue
        kind = KINDS.get(type(module))
        if kind is None and type(module).__name__ == _ACTING:
            kind = _acting(type(module))
        if kind is None or not (module.affine and module.track_running_stats):
            raise RecipeError(
                f"the layer {name} ({type(module).__name__}) normalises over the batch in a way that several ranks "
                "cannot share; train this network in one process",
                "model",
            )
        shared: Any = module
        shared.__class__ = kind
        shared.whole = whole


def _acting(theirs: type[nn.Module]) -> type[nn.Module]:
    """Of timm's layers that normalise and then act: the same with the norm over all ranks."""

    def forward(self: Any, maps: Tensor) -> Tensor:
        if not self.training:
            return theirs.forward(self, maps)  # type: ignore[no-any-return]
        found: Tensor = self.act(self.drop(self.normalise(maps)))
        return found

    return type(_ACTING, (_OverRanks, theirs), {"forward": forward})
