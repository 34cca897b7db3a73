"""Every kernel is compiled for a GPU, though none need be there: the interpreter takes more than the compiler does."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from tests.compiling import in_a_process

PROGRAM = r"""
import sys
import torch
from softtargets.models.kernels import launch
from softtargets.models.kernels.batch_norm import apply_kernel, end_gradient_kernel, gradient_sum_kernel, lay_kernel
from softtargets.models.kernels.batch_norm import map_gradient_kernel, norm_gradient_kernel, tile_sum_kernel
from softtargets.models.kernels.batch_norm import norm_kernel as batch_norm_kernel
from softtargets.models.kernels.convolution import convolution_kernel, part_sum_kernel, weight_gradient_kernel
from softtargets.models.kernels.convolution import folded_part_sum_kernel
from softtargets.models.kernels import norms
from softtargets.models.kernels.launch import Pooling, Shape
from softtargets.models.kernels.linear import product_kernel
from softtargets.models.kernels import products
from softtargets.models.kernels.attending import blocks as attention_blocks
from softtargets.models.kernels.attention import attention_gradient_kernel, attention_kernel
from softtargets.models.kernels.dropout import dropout_kernel
from softtargets.models.kernels.look_up import order_kernel, table_gradient_kernel
from softtargets.models.kernels import joining
from softtargets.models.kernels import residual
from softtargets.models.kernels.sums import sum_kernel
from softtargets.models.kernels.turning import turn_kernel
from softtargets.models.kernels.pooling import max_pool_gradient_kernel, max_pool_kernel
from softtargets.models.kernels.response_norm import norm_kernel
from tests import compiling

capability, most_spilled = (int(argument) for argument in sys.argv[1:])
TYPES = {"winners": "*u8", "partials": "*fp32", "rows": "i32", "parts": "i32"}
TYPES |= dict.fromkeys(("alpha", "beta"), "fp32") | dict(bias_partials="*fp32")


def compiled(kernel, constants, warps=4, stages=3, made=None, **types):
    types = TYPES | types
    # As at a launch: tensors begin at even addresses, and there are multiples of 16 rows.
    even = [param.name for param in kernel.params if types.get(param.name) != "fp32" and not param.do_not_specialize]
    found = compiling.compiled(kernel, constants, types, "*bf16", even, warps, stages, capability)
    if made is not None:
        made["shared"] = found.metadata.shared
    compiling.refuse_detours(found, constants)
    if most_spilled is not None:
        compiling.refuse_spills(found, most_spilled)
    return found.asm["ptx"]


def blocks(shape, tiles, **more):
    names = "HEIGHT WIDTH CHANNELS NEW_HEIGHT NEW_WIDTH NEW_CHANNELS KERNEL STRIDE PADDING".split()
    sizes = {"ROWS": tiles.rows, "COLUMNS": tiles.columns, "DEPTH": tiles.depth, "PRECISION": "tf32"}
    return dict(zip(names, shape, strict=True)) | sizes | more


def check_product(shape, backwards, **none):
    tiles = launch.product_tiles(shape.channels, shape.new_channels, shape.kernel**2)
    ptx = compiled(
        convolution_kernel,
        blocks(shape, tiles, BACKWARDS=backwards, **dict.fromkeys(launch.Ending._fields), FOLD=1, **none),
        tiles.warps, tiles.stages, bias="*fp32"
    )
    if capability >= 90:
        assert "wgmma" in ptx, (shape, "does without tensor cores")
    assert "mma" in ptx, (shape, "does without tensor cores")
    if shape.channels % 16 == 0:
        once = tiles.depth >= shape.kernel**2 * shape.channels
        assert ("cp.async" in ptx) != once, (shape, "waits for what it reads")
        assert "ld.global.b16" not in ptx, (shape, "reads number by number")
        assert "ld.global.u16" not in ptx, (shape, "reads number by number")


def check_weights(shape, images=128, **none):
    rows = images * shape.new_height * shape.new_width
    tiles = launch.gradient_tiles(rows, shape.channels, shape.new_channels, shape.kernel**2)
    constants = blocks(shape, tiles, PART=tiles.part, FOLD=1, **none)
    ptx = compiled(weight_gradient_kernel, constants, tiles.warps, tiles.stages)
    assert "mma" in ptx, (shape, "does without tensor cores")


def check_sum(shape):
    sizes = dict(CHANNELS=shape.channels, NEW_CHANNELS=shape.new_channels, TAPS=shape.kernel**2)
    compiled(part_sum_kernel, sizes | dict(BLOCK=128, AT_A_TIME=8), gradients="*fp32")


# Side, channels in and out, kernel, stride, padding; three colours are read as four.
LAYERS = [
    (32, 4, 16, 3, 1, 1),  # ResNet-56
    (32, 16, 16, 3, 1, 1),
    (32, 16, 32, 3, 2, 1),
    (16, 32, 32, 3, 1, 1),
    (16, 32, 64, 1, 2, 0),
    (8, 64, 64, 3, 1, 1),
    (16, 64, 128, 3, 2, 1),  # its wider sibling, and ResNet-18
    (4, 512, 512, 3, 1, 1),
    (28, 1, 32, 3, 1, 1),  # CNN
    (24, 4, 64, 5, 1, 2),  # AlexNet
    (12, 64, 64, 5, 1, 2),
]


# Blocks: side, channels before and after, stride.
BLOCKS = [(32, 16, 16, 1), (32, 32, 32, 1), (16, 64, 64, 1), (8, 128, 128, 1), (32, 16, 32, 1), (16, 64, 128, 2)]
BASIC_BLOCKS = [(32, 64, 64, 1), (32, 32, 64, 2)]  # wider ones are NVIDIA's
SUMS = dict.fromkeys(("norm", "added_norm", "sums"), "*fp32")


def check_block(side, channels, new_channels, stride, basic=False):
    maps, fold = torch.empty(128, side, side, channels, device='meta'), 1
    if channels == new_channels:
        fold = norms.fold_of(channels, side, side)
    layer = norms.Layer(None, None, channels, new_channels, 3, stride, fold)
    shape = layer.shape(maps)
    sides = shape.new_height * fold, shape.new_width * fold
    upstream = torch.empty(128, *sides, new_channels, device='meta')
    back = layer.shape_backwards(upstream, maps)
    forwards = dict(before=None, norm=None), dict(before=None, norm=None, added=None, added_norm=None)
    backwards = dict(added_norm=None), dict(added_norm=None, added=None)
    if basic:
        nothing = dict(added_norm=None, before=None, norm=None, sums=None)
        forwards, backwards = forwards[1:], (backwards[1], nothing, nothing | dict(added=None))
    for shape, is_back, endings in ((shape, False, forwards), (back, True, backwards)):
        tiles = norms.product_tiles(shape.channels, shape.new_channels, is_back)
        for ending in endings:
            constants = blocks(shape, tiles, BACKWARDS=is_back and fold == 1, FOLD=fold, bias=None, **ending)
            ptx = compiled(convolution_kernel, constants, tiles.warps, tiles.stages, **SUMS)
            assert "mma" in ptx and "ld.global.b16" not in ptx, (shape, ending)
    tiles = norms.gradient_tiles(128 * side * side, channels, new_channels, 3, fold)
    if fold > 1:
        constants = blocks(layer.shape(maps), tiles, PART=tiles.part, FOLD=fold, bias_partials=None)
        assert "mma" in compiled(weight_gradient_kernel, constants, tiles.warps, tiles.stages)
        sizes = dict(CHANNELS=channels, NEW_CHANNELS=new_channels, KERNEL=3, FOLD=fold, BLOCK=128, AT_A_TIME=8)
        compiled(folded_part_sum_kernel, sizes, gradients="*fp32")


for layer in BLOCKS if capability == 90 else []:
    check_block(*layer)
for layer in BASIC_BLOCKS if capability == 90 else []:
    check_block(*layer, basic=True)
learnt = "gains biases running_mean running_variance gradients of_gains of_biases".split()
numbers = dict.fromkeys(learnt, "*fp32")
numbers |= SUMS | dict(batches="*i64", tiles="i32", channels="i32", share="fp32", eps="fp32", weights="*fp32")
numbers |= dict(learnt="i32")
numbers |= dict(side_norm="*fp32", side_sums="*fp32")


def check_pass(kernel, wide, rows, **constants):
    ptx = compiled(kernel, dict(ROWS=rows, WIDE=wide) | constants, **numbers)
    assert "ld.global.b16" not in ptx and "ld.global.v4.b32" in ptx, (kernel, wide, "reads number by number")


nothing, no_norm, no_more = dict(added=None, added_norm=None), dict(added_norm=None), dict(more=None)
no_side = dict.fromkeys(("side", "side_norm", "side_sums"))
for wide in (32, 128):
    for constants in (nothing, no_norm, {}):
        check_pass(apply_kernel, wide, norms.HELD // wide, **constants)
    for constants in (dict(norm=None), dict(norm=None, added=None), dict(added=None)):
        check_pass(map_gradient_kernel, wide, norms.HELD // wide, **constants)
check_pass(tile_sum_kernel, 32, 128)
for masked in (False, True):
    check_pass(gradient_sum_kernel, 32, 128, MASKED=masked)
for constants in (no_side, no_side | no_more, no_more, {}):
    check_pass(end_gradient_kernel, 32, 128, **constants)
together = dict(TILES=1024, WIDE=8)
compiled(batch_norm_kernel, together | dict(ROWS=128, PLACES=4), 8, **numbers)
compiled(norm_gradient_kernel, together, 8, **numbers)
for fold in (1, 2):
    compiled(lay_kernel, dict(CHANNELS=32, NEW_CHANNELS=32, KERNEL=3, FOLD=fold, BLOCK=1024), **numbers)
for back, types in ((False, dict(source="*fp32")), (True, dict(target="*fp32"))):
    compiled(turn_kernel, dict(BACK=back, TAPS=9, HELD_TAPS=16, WIDE=128), channels="i32", **types)


def pooled(pooling, side, channels):
    sizes = dict(HEIGHT=side, WIDTH=side, CHANNELS=channels, NEW_HEIGHT=pooling.new_height, NEW_WIDTH=pooling.new_width)
    windows = dict(KERNEL=pooling.kernel, STRIDE=pooling.stride, TOP=pooling.top, LEFT=pooling.left)
    for kernel in (max_pool_kernel, max_pool_gradient_kernel):
        compiled(kernel, sizes | windows | dict(BLOCK=launch.POOL_BLOCK))


def check_norm(split):
    kept = dict(CHANNELS=64, RADIUS=4, ROWS=launch.NORM_ROWS, WIDE=64, SPLIT=split)
    types = {} if split else dict.fromkeys(("maps", "upstream", "results"), "*fp16")
    for constants in (kept, kept | dict(upstream=None)):  # the gradient, and the norm itself
        assert ("mma" in compiled(norm_kernel, constants, bias="fp32", **types)) == split


def check_linear(choose, runs, rows, deep, columns, left, right, result, **none):
    # Strides are of a row and of a column; 1 is a constant, as at a launch.
    tiles = choose(runs, rows, deep, columns)
    names = "left_row left_deep right_deep right_column result_row result_column".split()
    strides = dict(zip(names, left + right + result))
    constants = {name: 1 for name, stride in strides.items() if stride == 1}
    sizes = dict(DEEP=deep, WIDE=columns, ROWS=tiles.rows, COLUMNS=tiles.columns, DEPTH=tiles.depth, PRECISION="tf32")
    types = dict.fromkeys((*strides, "left_run", "right_run", "result_run"), "i32") | dict(bias="*fp32", sums="*fp32")
    ptx = compiled(product_kernel, sizes | constants | none, tiles.warps, tiles.stages, **types)
    assert "mma" in ptx, (deep, columns, "does without tensor cores")


# Runs, inputs and outputs; weights lie inputs first.
for runs, inputs, outputs in ((128, 784, 1200), (1, 1200, 1200), (128, 2304, 384), (1, 192, 16)):
    choose = products.linear_tiles
    check_linear(choose, runs, 128, inputs, outputs, (inputs, 1), (outputs, 1), (outputs, 1), sums=None)
    check_linear(choose, runs, 128, outputs, inputs, (outputs, 1), (1, outputs), (inputs, 1), sums=None, bias=None)
    choose = products.linear_gradient_tiles
    check_linear(choose, runs, inputs, 128, outputs, (1, inputs), (outputs, 1), (outputs, 1), bias=None)
compiled(sum_kernel, dict(PART=8192, BLOCK=1024, SQUARED=True), values="*fp32", results="*fp32", count="i32")

drawn = dict.fromkeys(("place", "position"), "*i64") | dict(count="i32", least="i32", scale="fp32")
for sliced in (False, True):
    ptx = compiled(dropout_kernel, dict(BLOCK=launch.DRAWS, SLICED=sliced), each="i32", **drawn)
    # Triton 3.9 makes two products of the 67 in 64 bits.
    assert ptx.count("mul.hi.u32") >= 64 and (sliced or ptx.count("mul.lo.s64") <= 2), "draws in 64 bits"
    assert "ld.global.v4.b32" in ptx, "reads number by number"


def check_attention(queries, keys, size, causal, limit, kind="bf16", **none):
    tensors = "queries keys values results upstream of_queries of_keys of_values".split()
    types = dict.fromkeys(tensors, "*" + kind) | dict(seen="*i1", scale="fp32")
    for kernel in (attention_kernel, attention_gradient_kernel):
        chosen = attention_blocks(queries, keys, size, 4 if kind == "fp32" else 2, kernel is attention_gradient_kernel)
        constants = dict(D=size, QUERIES=chosen.queries, KEYS=chosen.keys, CAUSAL=causal, PRECISION="tf32") | none
        if kind == "fp32":
            constants["PRECISION"] = "ieee"
        if kernel is attention_gradient_kernel:
            constants["ONCE"] = queries <= chosen.queries
        numbers = {param.name: "i32" for param in kernel.params if param.name not in types}
        made = {}
        ptx = compiled(kernel, constants, chosen.warps, 1, made=made, **(numbers | types))
        assert made["shared"] <= limit * 1024, (constants, "shares too much", made["shared"])
        assert kind == "fp32" or "mma" in ptx, (constants, "does without tensor cores")
        assert "ld.global.v4.b32" in ptx, (constants, "reads number by number")


# Over one's own sentence, and with queries of another length; what other GPUs than those for computing share as well.
for size in (64, 128):
    for length in (16, 32, 64, 128):
        limit = 99 if size * length <= 2**13 else 150
        check_attention(length, length, size, True, limit, seen=None)
        if capability == 90:
            check_attention(length, length, size, False, limit)
            check_attention(128, length, size, False, limit)
            check_attention(16, length, size, False, limit)
if capability == 90:
    check_attention(48, 48, 16, False, 99)
summed = dict.fromkeys(("order", "begins"), "*i64") | dict.fromkeys(("upstream", "gradient"), "*fp32")
summed |= dict.fromkeys(("width", "apart"), "i32")
ptx = compiled(table_gradient_kernel, dict(PLACES=launch.PLACES, BLOCK=launch.COLUMNS), **summed)
assert "v4.b32" in ptx, "reads number by number"
listed = dict.fromkeys(("tokens", "order", "ordered"), "*i64")
compiled(order_kernel, dict(OWN=launch.OWN, OTHERS=launch.OTHERS), count="i32", **listed)


def check_between(kernel, width, **none):
    single = "before gains_before shifts_before gains shifts normal spreads of_states of_before partials".split()
    numbers = dict.fromkeys((*single, "table", "waves", "states"), "*fp32")
    numbers |= dict.fromkeys(("place", "position", "tokens"), "*i64")
    numbers |= dict.fromkeys(("rows", "least", "each", "length", "count", "parts", "only"), "i32")
    numbers |= dict.fromkeys(("eps", "scale", "factor"), "fp32")
    constants, warps = {}, 4
    if width:
        backwards = kernel is residual.residual_gradient_kernel
        constants = joining.numbers_of(width, joining.Drawing(None, None), backwards)
        warps = constants.pop("num_warps")
    if kernel is residual.embed_gradient_kernel:
        numbers["gradient"] = "*fp32"
    ptx = compiled(kernel, constants | none, warps, **numbers)
    assert "v4.b32" in ptx, (kernel, width, none, "reads number by number")


for width in (512, 256, 64) if capability == 90 else (512,):
    plain = dict(place=None, position=None)
    for none in ({}, plain, dict(gains_before=None, shifts_before=None), dict(SLICED=True)):
        check_between(residual.residual_kernel, width, **none)
    for none in ({}, plain, dict(of_states=None), dict(SLICED=True)):
        check_between(residual.residual_gradient_kernel, width, **none)
    for none in ({}, plain):
        check_between(residual.embed_kernel, width, **none)
        check_between(residual.embed_gradient_kernel, width, **none)
columns = dict(ROWS=joining.SUMMED_ROWS, PART=joining.SUMMED_PART, COLUMNS=joining.SUMMED_COLUMNS)
for none in (dict(tokens=None), dict(tokens=None, seen=None), dict(seen=None)):
    check_between(residual.column_sums_kernel, 0, **columns, **none)
together = dict(AT_A_TIME=joining.PARTS, COLUMNS=joining.PART_COLUMNS)
compiled(residual.sum_of_parts_kernel, together, count="i32", sums="*fp32")


check_norm(True)
pooled(Pooling(2, 2, 0, 0, 14, 14), 28, 32)
pooled(Pooling(3, 2, 1, 1, 7, 7), 13, 64)
for place, (side, channels, new_channels, size, stride, padding) in enumerate(LAYERS):
    if capability == 80 and place % 5 != 1:
        continue
    new = (side + 2 * padding - size) // stride + 1
    rest = (size, stride, padding)
    shape = Shape(side, side, channels, new, new, new_channels, *rest)
    none = {} if place % 2 else dict(bias=None)
    check_product(shape, False, **none)
    check_weights(shape, **{"bias_partials": None for _ in none})
    if place % 5 == 1:
        check_sum(shape)
    if channels > 4:  # images have no gradient
        check_product(Shape(new, new, new_channels, side, side, channels, *rest), True, bias=None)
# For halves, which no recipe asks for, the response norm is exact and slow, as attention is in single precision: their
# registers are not looked at.
most_spilled = None
if capability == 90:
    check_norm(False)
    for queries, keys, size in ((16, 16, 64), (32, 32, 64), (64, 64, 64), (128, 16, 64), (32, 32, 128)):
        check_attention(queries, keys, size, False, 99, kind="fp32")
print("compiled")
"""


# How many bytes of registers the assembler may put elsewhere: next to none where we measure.
@pytest.mark.parametrize(("capability", "spilled"), [(90, 8), (80, 64)])
def test_every_kernel_compiles_and_keeps_to_registers_and_single_precision(capability, spilled):
    assert in_a_process(PROGRAM, str(capability), str(spilled)) == "compiled"


SMALL = r"""
from softtargets.models.kernels import launch, products
from softtargets.models.kernels.convolution import convolution_kernel
from softtargets.models.kernels.linear import product_kernel
from tests import compiling

STRIDES = "left_row left_deep right_deep right_column result_row result_column".split()
SIZES = "HEIGHT WIDTH CHANNELS NEW_HEIGHT NEW_WIDTH NEW_CHANNELS KERNEL STRIDE PADDING".split()


def check(kernel, constants, kind, tiles, **types):
    sizes = dict(ROWS=tiles.rows, COLUMNS=tiles.columns, DEPTH=tiles.depth)
    even = [param.name for param in kernel.params]
    for capability in (86, 89, 120):
        found = compiling.compiled(kernel, sizes | constants, types, kind, even, tiles.warps, tiles.stages, capability)
        assert found.metadata.shared <= 99 * 1024, (capability, constants, tiles, found.metadata.shared)


# A hundred nets in single precision, forwards and backwards.
for strides in ((784, 1, 1, 784, 1200, 1), (1, 784, 1, 1200, 1, 784)):
    tiles = products.linear_tiles(128, 128, 784, 1200, 4, room=False)
    ones = {name: 1 for name, stride in zip(STRIDES, strides) if stride == 1}
    types = dict.fromkeys((*STRIDES, "left_run", "right_run", "result_run", "rows"), "i32")
    check(product_kernel, dict(DEEP=784, WIDE=1200, PRECISION="tf32x3", sums=None) | ones, "*fp32", tiles, **types)
# A convolution of as many channels as the deepest tiles are for.
tiles = launch.product_tiles(512, 128, 9, room=False)
shape = dict(zip(SIZES, (14, 14, 512, 14, 14, 128, 3, 1, 1))) | dict.fromkeys(launch.Ending._fields)
check(convolution_kernel, shape | dict(BACKWARDS=False, PRECISION="tf32", FOLD=1), "*bf16", tiles, rows="i32")
print("compiled")
"""


def test_products_fit_into_gpus_with_little_shared_memory():
    """Those for games and graphics: 99 KiB."""
    assert in_a_process(SMALL) == "compiled"


SAME = r"""
import re
from softtargets.models.kernels import batch_norm, convolution, launch
from tests import compiling

numbers = dict.fromkeys("rows tiles parts channels".split(), "i32") | dict(share="fp32", eps="fp32", batches="*i64")
numbers["learnt"] = "i32"
singles = "partials bias_partials norm side_norm sums side_sums gains biases running_mean running_variance".split()
numbers |= dict.fromkeys((*singles, "gradients", "of_gains", "of_biases"), "*fp32")


def code(kernel, constants, even, warps, stages):
    found = compiling.compiled(kernel, constants, numbers, "*bf16", even, warps, stages).asm["ptx"]
    return [line for line in found.splitlines() if not re.match(r"\s*(\.loc|\.file|//)", line)]


def check(kernel, names, constants, warps=4, stages=3):
    even = [param.name for param in kernel.params if numbers.get(param.name) != "fp32"]
    assert [param.name for param in kernel.params if param.do_not_specialize] == names, kernel
    others = [name for name in even if name not in names]
    assert code(kernel, constants, even, warps, stages) == code(kernel, constants, others, warps, stages), kernel


tiles = launch.gradient_tiles(2**17, 64, 64, 9)
sizes = dict(HEIGHT=8, WIDTH=8, CHANNELS=64, NEW_HEIGHT=8, NEW_WIDTH=8, NEW_CHANNELS=64, KERNEL=3, STRIDE=1, PADDING=1)
sizes |= dict(PART=tiles.part, ROWS=tiles.rows, COLUMNS=tiles.columns, DEPTH=tiles.depth, PRECISION="tf32", FOLD=1)
check(convolution.weight_gradient_kernel, ["parts"], sizes, tiles.warps, tiles.stages)
check(batch_norm.norm_kernel, ["rows", "tiles"], dict(ROWS=128, PLACES=4, TILES=256, WIDE=8), 8)
check(batch_norm.norm_gradient_kernel, ["rows", "tiles"], dict(TILES=256, WIDE=8), 8)
wide = dict(ROWS=128, WIDE=32)
check(batch_norm.tile_sum_kernel, ["rows"], wide)
check(batch_norm.gradient_sum_kernel, ["rows"], wide | dict(MASKED=True))
check(batch_norm.end_gradient_kernel, ["rows"], wide)
print("the same")
"""


def test_numbers_that_kernels_are_not_compiled_anew_for_make_no_difference_to_their_code():
    """Of a last batch that is shorter they may be no multiples of 16."""
    assert in_a_process(SAME) == "the same"
