from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from softtargets.models.kernels import launch, ops

from .running import DTYPES, interpreted, near, numbers

pytestmark = interpreted

# Those of AlexNet; and some under which a channel's neighbours weigh more.
CONSTANTS = [(4, 1.0, 0.001 / 9, 0.75), (1, 2.0, 0.5, 0.3), (2, 0.5, 1.5, 1.0)]


def plainly(maps, radius, bias, alpha, beta):
    """x (bias + alpha * sum of the squares of the channels around)^-beta, a channel at a time."""
    channels = maps.shape[-1]
    found = []
    for channel in range(channels):
        around = maps[..., max(0, channel - radius) : channel + radius + 1]
        total = sum(around[..., place] ** 2 for place in range(around.shape[-1]))
        found.append(maps[..., channel] / (bias + alpha * total) ** beta)
    return torch.stack(found, -1)


def check(maps, upstream, constants):
    exact = maps.double().requires_grad_()
    wanted = plainly(exact, *constants)
    (gradient,) = torch.autograd.grad(wanted, exact, upstream.double())
    found, pulled = launch.normalise(maps, *constants), launch.gradient_of_norm(maps, upstream, *constants)
    assert found.dtype == pulled.dtype == maps.dtype
    # A power multiplies the relative error of its base.
    near(found, wanted.detach(), 2e-6 * max(1.0, constants[3]) * wanted.detach().abs())
    # A gradient is the difference of two terms that may cancel.
    near(pulled, gradient, 5e-6 * gradient.abs().amax())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", [1, 3, 9, 16, 20, 64, 100, 130])
def test_the_norm_and_its_gradient_against_double_precision(channels, dtype):
    for place, constants in enumerate(CONSTANTS):
        scale = 1.0 if place else 30.0
        maps = (scale * numbers(2, 3, 2, channels)).to(dtype)
        check(maps, numbers(*maps.shape, dtype=dtype, seed=1), constants)


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 200])
def test_any_number_of_places(rows):
    maps = numbers(rows, 5)
    check(maps, numbers(rows, 5, seed=1), CONSTANTS[1])


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    places=st.integers(1, 70),
    channels=st.integers(1, 40),
    radius=st.integers(0, 50),
    bias=st.floats(0.1, 10),
    alpha=st.floats(0, 3),
    beta=st.floats(0, 2),
    scale=st.sampled_from([0.01, 1.0, 30.0]),
    seed=st.integers(0, 99),
)
def test_everything_at_once(places, channels, radius, bias, alpha, beta, scale, seed):
    """Windows may be wider than there are channels."""
    maps = scale * numbers(places, channels, seed=seed)
    check(maps, numbers(places, channels, seed=seed + 1), (radius, bias, alpha, beta))


def test_what_is_no_number_spoils_its_own_place_only():
    maps, upstream = numbers(70, 12), numbers(70, 12, seed=1)
    wanted = launch.normalise(maps, *CONSTANTS[0]), launch.gradient_of_norm(maps, upstream, *CONSTANTS[0])
    maps[66, 3] = torch.nan
    found = launch.normalise(maps, *CONSTANTS[0]), launch.gradient_of_norm(maps, upstream, *CONSTANTS[0])
    for one, other in zip(found, wanted, strict=True):
        assert one[66, :8].isnan().all()  # the window of channel 3, at least
        one[66] = other[66]
        assert torch.equal(one, other)


def test_nothing_is_read_before_or_after_the_maps():
    maps, upstream = numbers(5, 12), numbers(5, 12, seed=1)
    given = []
    for each in (maps, upstream):
        around = torch.full((3 * each.numel(),), torch.nan)
        given.append(around[each.numel() : 2 * each.numel()].view_as(each).copy_(each))
    assert torch.equal(launch.normalise(given[0], *CONSTANTS[0]), launch.normalise(maps, *CONSTANTS[0]))
    found, wanted = (launch.gradient_of_norm(*each, *CONSTANTS[0]) for each in (given, (maps, upstream)))
    assert torch.equal(found, wanted)


# --- torch around the kernels ---


def test_autograd_gives_what_the_kernels_do():
    maps, upstream = (
        numbers(2, 3, 4, 6, dtype=torch.float16),
        numbers(2, 6, 3, 4, dtype=torch.float16, seed=1),
    )
    upstream = upstream.permute(0, 2, 3, 1)  # of another layout
    leaf = maps.clone().requires_grad_()
    found = ops.response_norm(leaf, *CONSTANTS[2])
    assert torch.equal(found, launch.normalise(maps, *CONSTANTS[2]))
    (gradient,) = torch.autograd.grad(found, leaf, upstream)
    assert torch.equal(gradient, launch.gradient_of_norm(maps, upstream.contiguous(), *CONSTANTS[2]))


def test_the_operators_keep_to_the_rules_of_torch():
    maps, upstream = numbers(2, 3, 4, 6), numbers(2, 3, 4, 6, seed=1)
    torch.library.opcheck(ops.response_norm_gradient, (maps, upstream, *CONSTANTS[0]))
    torch.library.opcheck(ops.response_norm, (maps.requires_grad_(), *CONSTANTS[0]))


@pytest.mark.parametrize("dim", [0, 2, -1])
def test_under_vmap_every_net_gets_what_it_gets_alone(dim):
    # A program for each net: where in a block a row lies changes the last bit of the interpreter's products.
    maps = numbers(3, 1, 8, launch.NORM_ROWS // 8, 6).movedim(0, dim).contiguous().requires_grad_()
    found = torch.vmap(lambda own: ops.response_norm(own, *CONSTANTS[1]), in_dims=dim)(maps)
    own = [maps.select(dim, run).contiguous() for run in range(3)]
    alone = torch.stack([ops.response_norm(each, *CONSTANTS[1]) for each in own])
    assert torch.equal(found, alone)
    upstream = numbers(*found.shape, seed=1)
    one, other = (torch.autograd.grad(each, maps, upstream)[0] for each in (found, alone))
    assert torch.equal(one, other)
