"""Batch norms over all ranks are those of one process on the whole batch."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from softtargets.exceptions import RecipeError
from softtargets.training.distributed.norms import share_norms
from softtargets.training.distributed.whole_batch import WholeBatch

from .fakes import in_threads


def together(layer, batch, upstream, ranks, forgetting=0.1):
    """(outputs, gradients of inputs, of weights and biases, averages) of one process, and of several put together."""
    layer.momentum = forgetting

    def own(crew):
        whole = WholeBatch(crew)
        rows = whole.is_of(len(batch), len(batch))
        mine = deepcopy(layer)
        share_norms(mine, whole)
        rows = slice(0, 1) if whole.idle else rows
        maps = batch[rows].clone().requires_grad_()
        out = mine(maps)
        up = torch.zeros_like(out) if whole.idle else upstream[rows]
        found = torch.autograd.grad(out, [maps, mine.weight, mine.bias], up)
        part = slice(0, 0) if whole.idle else slice(None)
        return out.detach()[part], found[0][part], *found[1:], mine.running_mean, mine.running_var, found[0]

    whole = batch.clone().requires_grad_()
    alone = deepcopy(layer)
    out = alone(whole)
    grads = torch.autograd.grad(out, [whole, alone.weight, alone.bias], upstream)
    return (out.detach(), *grads, alone.running_mean, alone.running_var), in_threads(ranks, own)


def layer_and_batch(shape, kind=nn.BatchNorm2d):
    torch.manual_seed(len(shape) + shape[0])
    layer = kind(shape[1]).double()
    with torch.no_grad():
        layer.weight.uniform_(0.5, 2)
        layer.bias.normal_()
    return layer, 3 + torch.randn(shape, dtype=torch.float64), torch.randn(shape, dtype=torch.float64)


@pytest.mark.parametrize(
    ("shape", "ranks", "kind"),
    [
        ((7, 3, 4, 4), 2, nn.BatchNorm2d),
        ((7, 3, 2, 5), 4, nn.BatchNorm2d),
        ((3, 2, 4, 4), 5, nn.BatchNorm2d),
        ((9, 6), 4, nn.BatchNorm1d),
        ((8, 3, 4, 4), 1, nn.BatchNorm2d),
    ],
    ids=str,
)
@pytest.mark.parametrize("forgetting", [0.1, None])
def test_outputs_gradients_and_averages_are_those_of_the_whole_batch(shape, ranks, kind, forgetting):
    layer, batch, upstream = layer_and_batch(shape, kind)
    (out, of_maps, of_weight, of_bias, mean, variance), parts = together(
        layer, batch, upstream, ranks, forgetting
    )
    close = {"rtol": 1e-11, "atol": 1e-12}
    torch.testing.assert_close(torch.cat([part[0] for part in parts]), out, **close)
    torch.testing.assert_close(torch.cat([part[1] for part in parts]), of_maps, **close)
    torch.testing.assert_close(sum(part[2] for part in parts), of_weight, **close)
    torch.testing.assert_close(sum(part[3] for part in parts), of_bias, **close)
    for part in parts:
        torch.testing.assert_close(part[4], mean, **close)
        torch.testing.assert_close(part[5], variance, **close)


def test_a_row_that_does_not_count_gets_no_gradient_through_the_mean_of_the_others():
    layer, batch, upstream = layer_and_batch((3, 2, 4, 4))
    _, parts = together(layer, batch, upstream, 5)
    assert float(parts[4][6].abs().max()) == 0


def test_large_means_do_not_cancel():
    layer, batch, upstream = layer_and_batch((6, 3, 4, 4))
    batch += 1e6
    (out, *_), parts = together(layer, batch, upstream, 3)
    torch.testing.assert_close(torch.cat([part[0] for part in parts]), out, rtol=0, atol=1e-7)


def test_layers_that_normalise_in_a_way_of_their_own_are_refused():
    class Own(nn.BatchNorm2d):
        pass

    with pytest.raises(
        RecipeError, match=r"model: the layer 0 \(Own\) normalises over the batch in a way that several"
    ):
        share_norms(nn.Sequential(Own(3)), WholeBatch(None))
    with pytest.raises(RecipeError, match="several ranks cannot share"):
        share_norms(nn.Sequential(nn.BatchNorm2d(3, affine=False)), WholeBatch(None))


def test_timms_layers_that_act_too_are_shared():
    class BatchNormAct2d(nn.BatchNorm2d):
        def __init__(self, channels):
            super().__init__(channels)
            self.drop, self.act = nn.Identity(), nn.ReLU()

        def forward(self, maps):
            return self.act(self.drop(super().forward(maps)))

    layer, batch, upstream = layer_and_batch((7, 3, 4, 4), BatchNormAct2d)
    (out, of_maps, *_), parts = together(layer, batch, upstream, 2)
    torch.testing.assert_close(torch.cat([part[0] for part in parts]), out, rtol=1e-11, atol=1e-12)
    torch.testing.assert_close(torch.cat([part[1] for part in parts]), of_maps, rtol=1e-11, atol=1e-12)
