from __future__ import annotations

import random
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from softtargets.models.kernels import launch, ops

from .running import DTYPES, TILES, by_kernels, check_convolution, example, interpreted, near, numbers

pytestmark = interpreted

CHANNELS = [1, 3, 4, 16, 17, 32, 64, 130]
SIDES = [(7, 7), (8, 8), (5, 8), (9, 4), (1, 6), (6, 3), (8, 9)]


def drawn():
    """Every kernel with every stride, and each with every padding; the rest goes round."""
    generator = random.Random(1)
    pairs = [(before, after) for before in CHANNELS for after in CHANNELS]
    for place, (more, stride, kernel) in enumerate(product((0, 2), (1, 2, 3), (1, 3, 5, 7))):
        padding = (kernel // 2 + stride + more) % 4
        sides = generator.choice([s for s in SIDES if min(s) + 2 * padding >= kernel])
        runs, images = generator.choice([(1, 1), (1, 3), (2, 1), (3, 1)])
        cheap = [pair for pair in pairs if pair[0] * pair[1] * kernel**2 * runs <= 4000]
        shape = (runs, images, sides, *generator.choice(cheap), kernel, stride, padding)
        yield pytest.param(shape, DTYPES[(place + place // 4) % 2], id=str(shape))


@pytest.mark.parametrize(("shape", "dtype"), list(drawn()))
def test_a_convolution_and_its_gradients_against_double_precision(shape, dtype):
    check_convolution(*example(*shape, dtype), TILES["large"])


@pytest.mark.parametrize("channels", CHANNELS)
def test_every_number_of_channels_in_and_out(channels):
    for before, after, kernel in ((channels, 5, 3), (5, channels, 1)):
        shape = (1, 1, (4, 5), before, after, kernel, 1, kernel // 2)
        check_convolution(*example(*shape, torch.float32), TILES["large"])


@pytest.mark.parametrize(
    ("channels", "new_channels", "kernel", "stride"),
    [(32, 48, 1, 2), (32, 16, 3, 1), (32, 16, 3, 2), (16, 32, 3, 3)],
)
def test_one_tap_at_a_time(channels, new_channels, kernel, stride):
    """As for all channels that are multiples of 16: whether a tap is inside is asked once for all of them."""
    shape = (2, 1, (5, 4), channels, new_channels, kernel, stride, kernel // 2)
    check_convolution(*example(*shape, torch.float16), launch.Tiles(32, 64, 16, 1, 1, part=32))


# Layers of our nets, on smaller maps: images, sides, channels, new channels, kernel, stride, padding.
LAYERS = [
    (2, (8, 8), 1, 32, 3, 1, 1),  # CNN
    (3, (24, 24), 4, 16, 3, 1, 1),  # a stem, whose three colours are four: rows of more than one part
    (1, (4, 4), 16, 16, 3, 1, 1),
    (1, (9, 7), 16, 32, 3, 2, 1),
    (1, (4, 4), 64, 64, 3, 1, 1),
    (2, (7, 7), 3, 32, 1, 1, 1),  # MobileNetV2's stem, with a border that only bias and norm see
    (1, (2, 2), 512, 16, 1, 1, 0),
]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_layers_of_our_nets_with_the_blocks_that_are_chosen_for_them(layer):
    check_convolution(*example(1, *layer, torch.float16))


@pytest.mark.parametrize("rows", [31, 32, 33, 8 * 32, 9 * 32 + 1])
def test_parts_of_the_rows_are_summed_up(rows):
    """Eight at a time: parts of 32 rows, of which none, one or many are left over."""
    maps, upstream = numbers(2, 1, 1, rows, 3), numbers(2, 1, 1, rows, 5)
    found = launch.gradient_of_weights(maps, upstream, 1, 1, 0, TILES["small"])
    expected = torch.einsum("rc,rn->nc", maps[1, 0, 0].double(), upstream[1, 0, 0].double())
    near(found[1, :, :, 0, 0], expected, 1e-5)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    runs=st.integers(1, 2),
    images=st.integers(1, 2),
    sides=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    channels=st.integers(1, 20),
    new_channels=st.integers(1, 20),
    kernel=st.sampled_from([1, 2, 3, 4, 5]),
    stride=st.integers(1, 4),
    padding=st.integers(0, 4),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)
def test_everything_at_once(
    runs, images, sides, channels, new_channels, kernel, stride, padding, dtype, seed
):
    sides = tuple(max(side, kernel - 2 * padding) for side in sides)
    shape = (runs, images, sides, channels, new_channels, kernel, stride, padding)
    check_convolution(*example(*shape, dtype, seed=seed), TILES["large"])


@given(
    rows=st.integers(1, 10**7),
    channels=st.integers(1, 4096),
    new_channels=st.integers(1, 4096),
    kernel=st.integers(1, 11),
)
def test_blocks_are_what_the_kernels_take(rows, channels, new_channels, kernel):
    product = launch.product_tiles(channels, new_channels, kernel**2)
    summed = launch.gradient_tiles(rows, channels, new_channels, kernel**2)
    for tiles in (product, summed):
        for size in tiles[:3]:
            assert size >= 16
            assert size.bit_count() == 1
    assert summed.part % summed.rows == 0
    # Read in blocks of one tap, not number by number.
    assert channels % 16 or channels % 64 == 0 or channels % product.depth == 0


# --- runs do not know of each other ---

STACKED = [
    ((1, (5, 4), 16, 16, 3, 1, 1), torch.float16),
    ((1, (6, 5), 3, 17, 3, 2, 1), torch.float32),
    ((2, (4, 6), 32, 5, 1, 1, 0), torch.float16),
]


@pytest.mark.parametrize(("layer", "dtype"), STACKED, ids=str)
def test_a_run_is_the_same_alone_and_in_a_stack_of_any_size(layer, dtype):
    tiles = launch.Tiles(32, 32, 128, 1, 1, part=32)
    maps, weights, upstream, *rest = example(4, *layer, dtype)
    for begin, end in ((0, 4), (1, 3), (2, 3)):
        stack = [each[begin:end] for each in (maps, weights, upstream)]
        together = by_kernels(*stack, *rest, tiles)
        for run in {begin, end - 1}:
            own = [each[run : run + 1].clone() for each in (maps, weights, upstream)]
            for alone, all_of_them in zip(by_kernels(*own, *rest, tiles), together, strict=True):
                assert torch.equal(all_of_them[run - begin], alone[0])


def test_the_chosen_blocks_do_not_depend_on_how_many_runs_there_are():
    given = example(3, 1, (4, 4), 16, 16, 1, 1, 0, torch.float32)
    together = by_kernels(*given)
    alone = by_kernels(*(each[2:] for each in given[:3]), *given[3:])
    assert all(torch.equal(one[2], other[0]) for one, other in zip(together, alone, strict=True))


def test_what_the_others_hold_stays_with_them():
    maps, weights, upstream, *rest = example(3, 1, (5, 4), 5, 6, 3, 1, 1, torch.float32)
    wanted = by_kernels(maps, weights, upstream, *rest, TILES["large"])
    for each in (maps, weights, upstream):
        each[0], each[2] = torch.nan, 1e15
    found = by_kernels(maps, weights, upstream, *rest, TILES["large"])
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one[1], other[1])
        assert not one[0].isfinite().any()


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("channels", [5, 16])
def test_nothing_is_read_before_or_after_the_tensors(channels, kernel):
    """Around them lies NaN, which would spoil every sum."""
    maps, weights, upstream, *rest = example(1, 1, (5, 5), channels, 6, kernel, 2, kernel, torch.float32)
    given = [guarded(each) for each in (maps, weights, upstream)]
    found = by_kernels(*given, *rest, TILES["large"])
    wanted = by_kernels(maps, weights, upstream, *rest, TILES["large"])
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


def guarded(values):
    size = values.numel()
    around = torch.full((3 * size,), torch.nan)
    around[size : 2 * size] = values.flatten()
    return around[size : 2 * size].view_as(values)


def test_what_is_no_number_is_seen_where_a_window_sees_it():
    maps, weights, *_ = example(1, 1, (5, 5), 2, 3, 3, 1, 1, torch.float32)
    maps[0, 0, 0, 4, 1] = torch.nan
    found = launch.convolve(maps, weights, 1, 1, TILES["large"])
    seen = torch.zeros(5, 5, dtype=torch.bool)
    seen[:2, 3:] = True
    assert torch.equal(found[0, 0].isnan().all(-1), seen)
    assert torch.equal(found[0, 0].isnan().any(-1), seen)


# --- torch around the kernels ---


def test_autograd_gives_what_the_kernels_do():
    maps, weights, upstream, *rest = example(2, 1, (5, 4), 4, 6, 3, 2, 1, torch.float16)
    result, *gradients = by_kernels(maps, weights, upstream, *rest)
    leaves = maps.requires_grad_(), weights.requires_grad_()
    found = ops.convolution(*leaves, *rest)
    assert torch.equal(found, result)
    for one, other in zip(torch.autograd.grad(found, leaves, upstream), gradients, strict=True):
        assert torch.equal(one, other)
        assert one.dtype == other.dtype


def test_an_upstream_gradient_may_lie_in_memory_as_it_likes():
    maps, weights, _, *rest = example(1, 1, (5, 4), 4, 6, 3, 2, 1, torch.float32)
    leaves = maps.requires_grad_(), weights.requires_grad_()
    found = ops.convolution(*leaves, *rest)
    wanted = torch.autograd.grad(found, leaves, torch.ones_like(found), retain_graph=True)
    for one, other in zip(torch.autograd.grad(found.sum(), leaves), wanted, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("needed", ["maps", "weights"])
def test_only_what_is_needed_is_computed(needed, monkeypatch):
    """Images have no gradient."""
    computed = []

    def note(name, original):
        return lambda *given: computed.append(name) or original(*given)

    for name in ("gradient_of_maps", "gradients_of_layer"):
        monkeypatch.setattr(launch, name, note(name, getattr(launch, name)))
    maps, weights, _, *rest = example(1, 1, (4, 4), 1, 2, 1, 1, 0, torch.float32)
    leaf = maps if needed == "maps" else weights
    leaf.requires_grad_()
    ops.convolution(maps, weights, *rest).sum().backward()
    assert computed == ["gradient_of_maps" if needed == "maps" else "gradients_of_layer"]
    assert leaf.grad.abs().sum() > 0


def test_the_operators_keep_to_the_rules_of_torch():
    maps, weights, upstream, *rest = example(1, 1, (3, 4), 1, 2, 1, 2, 0, torch.float32)
    torch.library.opcheck(ops.map_gradient, (upstream, weights, 3, 4, *rest))
    torch.library.opcheck(ops.weight_gradient, (maps, upstream, 1, *rest))
    torch.library.opcheck(ops.convolution, (maps.requires_grad_(), weights.requires_grad_(), *rest))


@pytest.mark.parametrize(
    "dims", [(0, 0), (None, 0), (0, None), (2, -1)], ids=["both", "weights", "maps", "elsewhere"]
)
def test_under_vmap_every_net_gets_what_it_gets_alone(dims):
    """A net has one run; maps or weights may be the same for all, and the dimension of the nets may be anywhere."""
    maps, weights, upstream, *rest = example(3, 1, (4, 5), 4, 6, 1, 2, 1, torch.float16)
    upstream = upstream.unsqueeze(1)
    leaves = [
        each[0].unsqueeze(0) if dim is None else each.unsqueeze(1).movedim(0, dim).contiguous()
        for each, dim in zip((maps, weights), dims, strict=True)
    ]
    for leaf in leaves:
        leaf.requires_grad_()
    found = torch.vmap(lambda *own: ops.convolution(*own, *rest), in_dims=dims)(*leaves)
    gradients = torch.autograd.grad(found, leaves, upstream)
    own = [
        [
            leaf if dim is None else leaf.select(dim, run).contiguous()
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        for run in range(3)
    ]
    alone = torch.stack([ops.convolution(*each, *rest) for each in own])
    assert torch.equal(found, alone)
    for one, other in zip(gradients, torch.autograd.grad(alone, leaves, upstream), strict=True):
        # What is shared gets the sum of what the nets say, in the order that autograd likes.
        torch.testing.assert_close(one, other, rtol=2e-3, atol=1e-2)
        assert None in dims or torch.equal(one, other)
