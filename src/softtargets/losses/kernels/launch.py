"""From tensors to kernel launches: layout, block sizes, and which of the two kernels."""

from __future__ import annotations

import math
from collections import namedtuple
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softtargets.losses.kernels import reductions, sweep, tile
from softtargets.losses.kernels.rules import KINDS

ONE, COUNTED, COUNTING, UPSTREAM = (
    each.value for each in (tile.ONE, tile.COUNTED, tile.COUNTING, tile.UPSTREAM)
)
NOWHERE, PER_ROW, PER_PROGRAM = (each.value for each in (tile.NOWHERE, tile.PER_ROW, tile.PER_PROGRAM))
# Hyper-parameters that a rule has at most.
MOST_VALUES = 4
# Longer rows than this are swept over instead of being held in registers.
LONGEST_TILE = 8192
# A program's part of a longer row: all parts under way together shall fit into the cache.
PART_BYTES = 1 << 16
# Programs that count rows, and so partial counts.
COUNTERS = 64
# Fewer rows than these are counted by every program for itself.
COUNTED_IN_PLACE = 1024
# Numbers that a program multiplies at a time.
SCALED_AT_ONCE = 8192
# Whole numbers beyond this are others to Triton.
LARGEST_INT = 1 << 31
# One program may see the whole batch when that has no more logits than this.
ONE_PROGRAM = 16384


class Call(NamedTuple):
    """A rule applied to a batch: everything the kernels read."""

    logits: Tensor  # (N, K) or (N, K, d)
    target: Tensor  # (N,) or (N * d,)
    kind: str
    values: Tensor | tuple[float, ...]  # (groups, values of the rule) on the device, or these themselves
    table: Tensor | None
    weight: Tensor | None
    teacher: Tensor | None
    ignore_index: int

    @classmethod
    def of(
        cls, logits: Tensor, target: Tensor, values: Tensor | None, constants: list[float], table: Tensor | None,
        weight: Tensor | None, teacher: Tensor | None, kind: str, ignore_index: int,
    ) -> Call:  # fmt: skip
        """From the arguments of the operators: what the kernels read without strides is laid out in order."""
        given = tuple(constants) if values is None else values.contiguous()
        table = None if table is None else table.contiguous()
        weight = None if weight is None else weight.contiguous()
        return cls(logits, target.contiguous(), kind, given, table, weight, teacher, ignore_index)


class Tiling(NamedTuple):
    """How the work is cut up."""

    rows: int  # that a program holds whole; 0 where rows are swept over
    block: int  # classes read at a time
    warps: int
    depth: int = 1  # sweep: blocks in a stretch of a row
    parts: int = 1  # sweep: programs that share a row
    stages: int = 3  # sweep: stretches under way at a time
    programs: int = 4096  # at most, where each holds whole rows
    scatter: bool = False  # hold: write the label's own entry once more, instead of looking for it


@lru_cache(maxsize=4096)
def tiling_for(rows: int, classes: int, itemsize: int, taught: bool = False) -> Tiling:
    """The block sizes that measured best on an H200, near each size of the bench of losses."""
    block = max(16, _power_of_2(classes))
    if rows * block <= ONE_PROGRAM and rows <= COUNTED_IN_PLACE:
        together = _power_of_2(rows)
        return Tiling(together, block, 4 if together * block <= 4096 else 8)
    if block <= 256:
        # Four logits at a time per thread; the more of a row each thread has, the less is computed once per thread.
        lanes = 8 if block <= 32 else 16 if block <= 128 else 32
        return Tiling(256 // lanes, lanes, 2, scatter=block > 32)
    return _held_rows(rows, block, itemsize) if block <= LONGEST_TILE else _swept(classes, itemsize, taught)


def _held_rows(rows: int, block: int, itemsize: int) -> Tiling:
    if block <= 1024:
        return Tiling(2 if itemsize < 4 else 1, 128, 1, programs=rows, scatter=True)
    lanes, warps = (256, 1) if block <= 2048 else (1024, 4)
    return Tiling(1, lanes, warps, programs=rows, scatter=True)


def _swept(classes: int, itemsize: int, taught: bool) -> Tiling:
    if itemsize == 4:
        held = LONGEST_TILE if not taught else LONGEST_TILE // 2
        return Tiling(0, held, 4, parts=_parts_of(classes, held))
    # In half precision arithmetic is the limit: reading twice costs less than waiting for the other parts.
    return Tiling(0, 1024, 4, depth=2, parts=max(1, classes * itemsize // PART_BYTES))


def mean_or_sum(
    call: Call, mean: bool, gradient: Tensor | None, dtype: torch.dtype, tiling: Tiling | None = None
) -> Tensor:
    """The reduced loss; the gradient for an upstream gradient of 1 is written where it is wanted."""
    rows, classes = _extent(call.logits)
    tiling = tiling or _tiling(call)
    counts, factor = None, ONE
    if mean and tiling.rows and rows <= COUNTED_IN_PLACE:
        factor = COUNTING
    elif mean:
        counts, factor = label_weights(call.target, call.weight, classes, call.ignore_index), COUNTED
    alone = tiling.rows >= rows
    shape, kept = ((), dtype) if alone else (_programs(tiling, rows), torch.float32)
    losses = torch.empty(shape, dtype=kept, device=call.logits.device)
    _run(call, tiling, counts, factor, losses, PER_PROGRAM, gradient)
    return losses if alone else finish(losses, counts, dtype)


def per_row(call: Call, tiling: Tiling | None = None) -> Tensor:
    """The loss of every row, in single precision: (N,)."""
    losses = torch.empty(_extent(call.logits)[0], dtype=torch.float32, device=call.logits.device)
    _run(call, tiling or _tiling(call, among_others=True), None, ONE, losses, PER_ROW, None)
    return losses


def label_weights(target: Tensor, weight: Tensor | None, classes: int, ignore_index: int) -> Tensor:
    """What a mean divides by, in parts: the rows that count, or the weights of their labels."""
    parts = torch.empty(COUNTERS, dtype=torch.float32, device=target.device)
    sizes = (len(target), classes, ignore_index)
    _start(reductions.weigh_kernel, COUNTERS, (target, weight, parts), sizes, (weight is not None, 1024), 4)
    return parts


def finish(partial: Tensor, counts: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The sum of partial losses, divided by the sum of the counts if there are any."""
    loss = torch.empty((), dtype=dtype, device=partial.device)
    constants = (counts is not None, COUNTERS, 4096)
    _start(reductions.finish_kernel, 1, (partial, counts, loss), (len(partial),), constants, 16)
    return loss


def rows_in_place(call: Call, factors: Tensor) -> Tensor:
    """Losses of every row, while the logits are replaced by their gradient times the factor of their row."""
    losses = torch.empty(len(call.target), dtype=torch.float32, device=call.logits.device)
    _run(call, _tiling(call), factors, UPSTREAM, losses, PER_ROW, call.logits)
    return losses


def gradient_of_rows(call: Call, upstream: Tensor, out: Tensor, tiling: Tiling | None = None) -> None:
    """Write the gradient of ``sum(upstream * per_row(call))`` into `out`."""
    _run(call, tiling or _tiling(call, among_others=True), upstream, UPSTREAM, None, NOWHERE, out)


def scale_(values: Tensor, factor: Tensor) -> None:
    """Multiply dense `values` in place by a 0-d tensor, without the host ever knowing its value."""
    size = values.numel()
    programs = min(_parts_of(size, SCALED_AT_ONCE), 1024)
    _start(reductions.scale_kernel, programs, (values, factor), (size,), (SCALED_AT_ONCE,), 8)


# --- what the kernels are given, part by part, by name and in their order ---


# What both kernels read and write, and what programs that share a row tell each other.
Tensors = namedtuple("Tensors", "logits target table weight teacher values factors losses gradient")
Exchange = namedtuple("Exchange", "sums arrivals", defaults=(None, None))
# Numbers that differ from call to call; strides are 0 where rows lie one after another.
Sizes = namedtuple(
    "Sizes",
    "rows class_units inner log_classes ignore_index rows_per_value n0 n1 n2 n3 "
    "z_outer z_inner z_class g_outer g_inner g_class t_outer t_inner t_class",
    defaults=(0, 0, 0, 0, 0, 0, 0, 0, 0),
)
# What both kernels are compiled for, and each of them besides.
Constants = namedtuple(
    "Constants",
    "KIND TABLE WEIGHT VALUES ADAPTIVE OWN REPORT_KL FACTOR PARTIALS LOSS GRADIENT DENSE UNIT",
)
TileShape = namedtuple("TileShape", "ROWS BLOCK CHUNKS WHOLE SCATTER")
SweepShape = namedtuple("SweepShape", "DEPTH LANES STAGES MASKED PARTS PARTS_PADDED PHASE HELD")


def _check_order(kernel: Any, *parts: Any) -> None:
    """A kernel is launched by position, which is fast; that these are its names in its order is seen once, here."""
    names = [name for part in parts for name in part._fields]
    if names != list(kernel.arg_names):
        raise TypeError(f"{kernel.__name__} takes {kernel.arg_names}, but is given {names}")


_check_order(tile.tile_kernel, Tensors, Sizes, Constants, TileShape)
_check_order(sweep.sweep_kernel, Tensors, Exchange, Sizes, Constants, SweepShape)


def _run(
    call: Call,
    tiling: Tiling,
    factors: Tensor | None,
    factor: int,
    losses: Tensor | None,
    where: int,
    gradient: Tensor | None,
) -> None:
    logits = call.logits
    rows, classes = _extent(logits)
    on_device = call.values if isinstance(call.values, Tensor) else None
    numbers = () if on_device is not None else call.values
    dense = _all_dense(logits, gradient, call.teacher)
    table = 0 if call.table is None else call.table.dim()
    weighted, wanted = call.weight is not None, gradient is not None
    constants = _constants(call.kind, numbers, table, weighted, factor, where, wanted, dense, classes)
    tensors = Tensors(
        logits, call.target, call.table, call.weight, call.teacher, on_device, factors, losses, gradient
    )
    strides = () if dense else (*_strides(logits), *_strides(gradient), *_strides(call.teacher))
    sizes = Sizes(
        rows, classes // constants.UNIT, logits.shape[2] if logits.dim() == 3 else 1, math.log(classes),
        call.ignore_index, 1 if on_device is None else max(1, rows // len(on_device)),
        *(*numbers, *(0.0,) * MOST_VALUES)[:MOST_VALUES], *strides,
    )  # fmt: skip
    if tiling.rows:
        shape: tuple[Any, ...] = (*constants, *_tile_shape(tiling, classes))
        _start(tile.tile_kernel, _programs(tiling, rows), tensors, sizes, shape, tiling.warps, dense)
    else:
        _sweep(tensors, sizes, constants, tiling, classes)


def _sweep(tensors: Any, sizes: Any, constants: Any, tiling: Tiling, classes: int) -> None:
    rows, device = sizes.rows, tensors.logits.device
    exchange = Exchange()
    if tiling.parts > 1:
        exchange = Exchange(
            sums=torch.empty(rows * tiling.parts * 8, dtype=torch.float32, device=device),
            arrivals=torch.zeros(rows, dtype=torch.int32, device=device),
        )
    side_by_side = tensors.logits.is_cuda or tiling.parts == 1
    for phase in (sweep.TOGETHER,) if side_by_side else (sweep.PUBLISH, sweep.USE):
        shape = (*constants, *_sweep_shape(tiling, classes, phase.value))
        given = (*tensors, *exchange)
        _start(sweep.sweep_kernel, rows * tiling.parts, given, sizes, shape, tiling.warps, constants.DENSE)


@lru_cache(maxsize=4096)
def _constants(
    kind: str, numbers: tuple[float, ...], table: int, weighted: bool, factor: int, where: int,
    wanted: bool, dense: bool, classes: int,
) -> Any:  # fmt: skip
    place, count = KINDS[kind]
    unknown = not numbers  # on the host
    return Constants(
        KIND=place,
        TABLE=table,
        WEIGHT=weighted,
        VALUES=count if unknown else 0,
        ADAPTIVE=kind == "labo" and (unknown or numbers[1] != 0),
        OWN=kind == "distillation" and (unknown or numbers[3] != 1),
        REPORT_KL=kind == "labo" and (unknown or numbers[3] != 0),
        FACTOR=factor,
        PARTIALS=COUNTERS,
        LOSS=where,
        GRADIENT=wanted,
        DENSE=dense,
        UNIT=math.gcd(classes, 16),
    )


@lru_cache(maxsize=4096)
def _tile_shape(tiling: Tiling, classes: int) -> Any:
    return TileShape(
        ROWS=tiling.rows,
        BLOCK=tiling.block,
        CHUNKS=_parts_of(classes, tiling.block),
        WHOLE=classes // tiling.block,
        SCATTER=tiling.scatter,
    )


@lru_cache(maxsize=4096)
def _sweep_shape(tiling: Tiling, classes: int, phase: int) -> Any:
    held = tiling.depth == 1 and tiling.block * tiling.parts >= classes
    ragged = classes % (tiling.depth * tiling.block) != 0
    return SweepShape(
        DEPTH=tiling.depth,
        LANES=tiling.block,
        STAGES=tiling.stages,
        MASKED=ragged or (held and classes != tiling.block * tiling.parts),
        PARTS=tiling.parts,
        PARTS_PADDED=_power_of_2(tiling.parts),
        PHASE=phase,
        HELD=held,
    )


# Kernels that have been compiled, by all that they were compiled for.
_compiled: dict[tuple[Any, ...], Any] = {}


def _start(
    kernel: Any,
    programs: int,
    tensors: tuple[Tensor | None, ...],
    sizes: tuple[float, ...],
    constants: tuple[Any, ...],
    warps: int,
    usual: bool = True,
) -> None:
    """Launch a kernel; after the first time past Triton's search for it, which costs the host several launches.

    Triton compiles for what it sees of addresses, strides (unless `usual`) and whole numbers: what is unusual among
    these is left to it. Of the sizes only the number of classes, the second, decides about the code.
    """
    first = tensors[0]
    assert first is not None
    # Triton launches on the current device; the logits may be on another.
    if first.is_cuda and first.device.index != torch.cuda.current_device():
        with torch.cuda.device(first.device):
            _start(kernel, programs, tensors, sizes, constants, warps, usual)
        return
    kinds = [each if each is None else each.dtype for each in tensors]
    key = (id(kernel), first.device, constants, warps, sizes[1:2], *kinds)
    usual = usual and _are_usual(tensors, sizes)
    compiled = _compiled.get(key) if usual else None
    if compiled is not None:
        compiled[(programs, 1, 1)](*tensors, *sizes, *constants)
        return
    compiled = kernel[(programs,)](*tensors, *sizes, *constants, num_warps=warps)
    if usual:
        _compiled[key] = compiled  # None in the interpreter


def _are_usual(tensors: tuple[Tensor | None, ...], sizes: tuple[float, ...]) -> bool:
    """Whether addresses are multiples of 16, and whole numbers no longer than usual."""
    addresses = 0
    for each in tensors:
        if each is not None:
            addresses |= each.data_ptr()
    return addresses % 16 == 0 and min(sizes) >= -LARGEST_INT and max(sizes) < LARGEST_INT


def _programs(tiling: Tiling, rows: int) -> int:
    """That there are, and so partial losses: one per row where rows are swept over."""
    return min(_parts_of(rows, tiling.rows), tiling.programs) if tiling.rows else rows


def _tiling(call: Call, among_others: bool = False) -> Tiling:
    """How to cut up a call; a row `among_others`, such as those of other runs, is computed alike however many there are."""
    rows, classes = _extent(call.logits)
    least = max(rows, ONE_PROGRAM + 1) if among_others else rows
    tiling = tiling_for(least, classes, call.logits.element_size(), call.teacher is not None)
    # Programs that share a row wait for each other: all of them must fit onto the device at once, with room to spare.
    if tiling.parts > 1 and call.logits.is_cuda and tiling.parts > _multiprocessors(call.logits.device.index):
        return tiling._replace(parts=1, block=1024, depth=2)
    return tiling


def _parts_of(whole: int, part: int) -> int:
    """How many parts cover the whole; Triton's own functions for this are slow outside of kernels."""
    return -(-whole // part)


def _power_of_2(least: int) -> int:
    return 1 << (least - 1).bit_length()


@cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _all_dense(*values: Tensor | None) -> bool:
    """Whether rows lie one after another with nothing between."""
    return all(each is None or (each.dim() == 2 and each.is_contiguous()) for each in values)


def _extent(logits: Tensor) -> tuple[int, int]:
    """(rows, classes)."""
    return logits.numel() // logits.shape[1], logits.shape[1]


def _strides(values: Tensor | None) -> tuple[int, int, int]:
    """(outer, inner, class)."""
    if values is None:
        return 0, 0, 0
    return values.stride(0), values.stride(2) if values.dim() == 3 else 0, values.stride(1)
