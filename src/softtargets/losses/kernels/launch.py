"""From tensors to kernel launches: layout, block sizes, and which of the two kernels."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softtargets.losses.kernels import reductions, sweep, tile
from softtargets.losses.kernels.rules import KINDS

# Longer rows than this are swept over instead of being held in registers.
LONGEST_TILE = 8192
# A program's part of a longer row: all parts under way together shall fit into the cache.
PART_BYTES = 1 << 16
# Programs that count rows, and so partial counts.
COUNTERS = 64
# One program may see the whole batch when that has no more logits than this.
ONE_PROGRAM = 16384


class Call(NamedTuple):
    """A rule applied to a batch: everything the kernels read."""

    logits: Tensor  # (N, K) or (N, K, d)
    target: Tensor  # (N,) or (N * d,)
    kind: str
    numbers: Tensor | tuple[float, ...]  # (groups, count) on the device, or the numbers themselves
    table: Tensor | None
    weight: Tensor | None
    teacher: Tensor | None
    ignore_index: int


class Plan(NamedTuple):
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
def plan_for(rows: int, classes: int, itemsize: int, taught: bool = False) -> Plan:
    """The block sizes that measured best on an H200, near each size of `softtargets bench losses`."""
    block = max(16, _power_of_2(classes))
    if rows * block <= ONE_PROGRAM and rows <= 1024:
        together = _power_of_2(rows)
        return Plan(together, block, 4 if together * block <= 4096 else 8)
    if block <= 256:
        # Four logits at a time per thread; the more of a row each thread has, the less is computed once per thread.
        lanes = 8 if block <= 32 else 16 if block <= 128 else 32
        return Plan(256 // lanes, lanes, 2, scatter=block > 32)
    if block <= 1024:
        return Plan(2 if itemsize < 4 else 1, 128, 1, programs=rows, scatter=True)
    if block <= 2048:
        return Plan(1, 256, 1, programs=rows, scatter=True)
    if block <= LONGEST_TILE:
        return Plan(1, 1024, 4, programs=rows, scatter=True)
    if itemsize == 4:
        held = LONGEST_TILE if not taught else LONGEST_TILE // 2
        return Plan(0, held, 4, parts=_parts_of(classes, held))
    # In half precision arithmetic is the limit: reading twice costs less than waiting for the other parts.
    return Plan(0, 1024, 4, depth=2, parts=max(1, classes * itemsize // PART_BYTES))


def mean_or_sum(
    call: Call, mean: bool, gradient: Tensor | None, dtype: torch.dtype, plan: Plan | None = None
) -> Tensor:
    """The reduced loss; the gradient for an upstream gradient of 1 is written where it is wanted."""
    rows, classes = _extent(call.logits)
    plan = plan or _plan(call)
    programs = _programs(plan, rows)
    if plan.rows >= rows:
        loss = torch.empty((), dtype=dtype, device=call.logits.device)
        _run(call, plan, None, tile.COUNTING if mean else tile.ONE, loss, tile.PER_PROGRAM, gradient)
        return loss
    counts = count(call.target, call.weight, classes, call.ignore_index) if mean else None
    partial = torch.empty(programs, dtype=torch.float32, device=call.logits.device)
    _run(call, plan, counts, tile.COUNTED if mean else tile.ONE, partial, tile.PER_PROGRAM, gradient)
    return finish(partial, counts, dtype)


def per_row(call: Call, plan: Plan | None = None) -> Tensor:
    """The loss of every row, in single precision: (N,)."""
    rows, _ = _extent(call.logits)
    plan = plan or _plan(call)
    losses = torch.empty(rows, dtype=torch.float32, device=call.logits.device)
    _run(call, plan, None, tile.ONE, losses, tile.PER_ROW, None)
    return losses


def count(target: Tensor, weight: Tensor | None, classes: int, ignore_index: int) -> Tensor:
    """What a mean divides by, in parts: the rows that count, or the weights of their labels."""
    counts = torch.empty(COUNTERS, dtype=torch.float32, device=target.device)
    with _on(target):
        reductions.count_kernel[(COUNTERS,)](
            target, weight, counts, len(target), classes, ignore_index, WEIGHT=weight is not None, BLOCK=1024
        )
    return counts


def finish(partial: Tensor, counts: Tensor | None, dtype: torch.dtype) -> Tensor:
    """The sum of partial losses, divided by the sum of the counts for a mean."""
    loss = torch.empty((), dtype=dtype, device=partial.device)
    sizes = {"MEAN": counts is not None, "PARTIALS": COUNTERS, "BLOCK": 4096, "num_warps": 16}
    with _on(partial):
        reductions.finish_kernel[(1,)](partial, counts, loss, len(partial), **sizes)
    return loss


def rows_in_place(call: Call, factors: Tensor, losses: Tensor) -> None:
    """Losses of every row, while the logits are replaced by their gradient times the factor of their row."""
    _run(call, _plan(call), factors, tile.UPSTREAM, losses, tile.PER_ROW, call.logits)


def gradient_of_rows(call: Call, upstream: Tensor, out: Tensor, plan: Plan | None = None) -> None:
    """Write the gradient of ``sum(upstream * per_row(call))`` into `out`."""
    plan = plan or _plan(call)
    _run(call, plan, upstream, tile.UPSTREAM, None, tile.NOWHERE, out)


def scale_(values: Tensor, factor: Tensor) -> None:
    """Multiply dense `values` in place by a 0-d tensor, without the host ever knowing its value."""
    size = values.numel()
    block = 8192
    programs = min(_parts_of(size, block), 1024)
    with _on(values):
        reductions.scale_kernel[(programs,)](values, factor, size, BLOCK=block, num_warps=8)


def _run(
    call: Call,
    plan: Plan,
    factors: Tensor | None,
    factor: int,
    losses: Tensor | None,
    where: int,
    gradient: Tensor | None,
) -> None:
    logits, teacher, table, weight = call.logits, call.teacher, call.table, call.weight
    rows, classes = _extent(logits)
    kind, count = KINDS[call.kind]
    number_tensor: Tensor | None = None
    values: tuple[float, ...] = (0.0,) * 5
    groups = 1
    if isinstance(call.numbers, Tensor):
        number_tensor, groups = call.numbers, max(1, rows // len(call.numbers))
    else:
        values = (*call.numbers, *(0.0,) * (5 - count))
    unknown = number_tensor is not None  # on the host
    dense = _all_dense(call, gradient)
    strides = (0,) * 9 if dense else (*_strides(logits), *_strides(gradient), *_strides(teacher))
    inner = logits.shape[2] if logits.dim() == 3 else 1
    unit = math.gcd(classes, 16)
    constants = (
        kind,
        0 if table is None else table.dim(),
        weight is not None,
        count if unknown else 0,
        call.kind == "labo" and (unknown or values[1] != 0),  # ADAPTIVE
        call.kind == "distillation" and (unknown or values[3] != 1),  # OWN
        call.kind == "labo" and (unknown or values[3] != 0),  # REPORT_KL
        factor,
        COUNTERS,
        where,
        gradient is not None,
        dense,
        unit,
    )
    tensors = (logits, call.target, table, weight, teacher, number_tensor, factors, losses, gradient)
    sizes = (rows, classes // unit, inner, math.log(classes), call.ignore_index, groups, *values, *strides)
    with _on(logits):
        if plan.rows:
            shape = (
                plan.rows,
                plan.block,
                _parts_of(classes, plan.block),
                classes // plan.block,
                plan.scatter,
            )
            _start(tile.tile_kernel, _programs(plan, rows), tensors, sizes, (*constants, *shape), plan.warps)
            return
        sums = arrivals = None
        if plan.parts > 1:
            sums = torch.empty(rows * plan.parts * 8, dtype=torch.float32, device=logits.device)
            arrivals = torch.zeros(rows, dtype=torch.int32, device=logits.device)
        held = plan.depth == 1 and plan.block * plan.parts >= classes
        side_by_side = logits.is_cuda or plan.parts == 1
        for phase in (sweep.TOGETHER,) if side_by_side else (sweep.PUBLISH, sweep.USE):
            shape = (  # type: ignore[assignment]
                plan.depth,
                plan.block,
                plan.stages,
                classes % (plan.depth * plan.block) != 0
                or (held and classes != plan.block * plan.parts),  # MASKED
                plan.parts,
                _power_of_2(plan.parts),
                phase,
                held,
            )
            programs = rows * plan.parts
            tensors_and_sums = (*tensors, sums, arrivals)
            _start(sweep.sweep_kernel, programs, tensors_and_sums, sizes, (*constants, *shape), plan.warps)


# Kernels that have been compiled, by all that they were compiled for.
_compiled: dict[tuple[Any, ...], Any] = {}


def _start(
    kernel: Any,
    programs: int,
    tensors: tuple[Tensor | None, ...],
    sizes: tuple[float, ...],
    constants: tuple[Any, ...],
    warps: int,
) -> None:
    """Launch a kernel; after the first time past Triton's search for it, which costs the host several launches."""
    addresses = 0
    kinds: list[torch.dtype | None] = []
    for each in tensors:
        if each is None:
            kinds.append(None)
        else:
            kinds.append(each.dtype)
            addresses |= each.data_ptr()
    logits = tensors[0]
    assert logits is not None
    key = (id(kernel), logits.device, constants, warps, sizes[1], *kinds)
    # Triton compiles for what it sees of addresses and strides: unusual ones are left to it.
    usual = addresses % 16 == 0 and sizes[-9:] == (0,) * 9 and sizes[0] < 2**31
    compiled = _compiled.get(key) if usual else None
    if compiled is None:
        compiled = kernel[(programs,)](*tensors, *sizes, *constants, num_warps=warps)
        if usual and compiled is not None:
            _compiled[key] = compiled
    else:
        compiled[(programs, 1, 1)](*tensors, *sizes, *constants)


def _programs(plan: Plan, rows: int) -> int:
    """That there are, and so partial losses: one per row where rows are swept over."""
    return min(_parts_of(rows, plan.rows), plan.programs) if plan.rows else rows


def _plan(call: Call) -> Plan:
    rows, classes = _extent(call.logits)
    plan = plan_for(rows, classes, call.logits.element_size(), call.teacher is not None)
    # Programs that share a row wait for each other: all of them must fit onto the device at once, with room to spare.
    if call.logits.is_cuda and plan.parts > _multiprocessors(call.logits.device.index):
        return plan._replace(parts=1, block=1024, depth=2)
    return plan


def _parts_of(whole: int, part: int) -> int:
    """How many parts cover the whole; Triton's own functions for this are slow outside of kernels."""
    return -(-whole // part)


def _power_of_2(least: int) -> int:
    return 1 << (least - 1).bit_length()


@cache
def _multiprocessors(device: int) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count


def _on(tensor: Tensor) -> AbstractContextManager[Any]:
    """Triton launches on the current device; the logits may be on another."""
    if tensor.is_cuda and tensor.device.index != torch.cuda.current_device():
        return torch.cuda.device(tensor.device)
    return nullcontext()


def _all_dense(call: Call, gradient: Tensor | None) -> bool:
    return all(_is_dense(each) for each in (call.logits, gradient, call.teacher) if each is not None)


def _extent(logits: Tensor) -> tuple[int, int]:
    """(rows, classes)."""
    return logits.numel() // logits.shape[1], logits.shape[1]


def _is_dense(values: Tensor) -> bool:
    """Whether rows lie one after another with nothing between."""
    return values.dim() == 2 and values.is_contiguous()


def _strides(values: Tensor | None) -> tuple[int, int, int]:
    """(outer, inner, class)."""
    if values is None:
        return 0, 0, 0
    return values.stride(0), values.stride(2) if values.dim() == 3 else 0, values.stride(1)
