"""Every kernel is compiled for a GPU, though none need be there: the interpreter takes more than the compiler does."""

from __future__ import annotations

import pytest

pytest.importorskip("triton")

from tests.compiling import in_a_process

PROGRAM = r"""
import sys
from softtargets.losses.kernels import reductions, sweep, tile
from tests import compiling

TYPES = {"target": "*i64", "arrivals": "*i32", "log_classes": "fp32", "ignore_index": "i64"}
for name in ("table", "weight", "values", "factors", "losses", "sums", "partials", "partial_losses"):
    TYPES[name] = "*fp32"
TYPES |= {f"n{place}": "fp32" for place in range(4)}


def compiled(kernel, constants, dtype="bf16", warps=4, capability=90):
    types = TYPES | dict.fromkeys(("logits", "teacher", "gradient", "loss", "factor"), f"*{dtype}")
    # Nothing is said to be even: the most general kernel.
    found = compiling.compiled(kernel, constants, types, "i32", even=(), warps=warps, capability=capability)
    compiling.refuse_detours(found, constants)


ABSENT = dict.fromkeys(("table", "weight", "teacher", "values"))
COMMON = dict(ADAPTIVE=True, OWN=True, REPORT_KL=True, PARTIALS=64, GRADIENT=True, UNIT=4, VALUES=0)
KINDS = dict(mixture=(0, 2), penalty=(1, 1), focal=(2, 3), labo=(3, 4), distillation=(4, 4), matching=(5, 2))


def cases():
    for kind, (number, count) in KINDS.items():
        taught = kind in ("distillation", "matching")
        absent = {name: None for name in ABSENT if not (taught and name == "teacher")}
        own = COMMON | dict(OWN=kind == "distillation", REPORT_KL=kind == "labo", ADAPTIVE=kind == "labo")
        yield kind, own | absent | dict(KIND=number, TABLE=0, WEIGHT=False, FACTOR=1, LOSS=2, DENSE=True)
        absent.pop("values"), absent.pop("weight")
        heavy = not taught
        if not heavy:
            absent["weight"] = None
        kept = dict(own, REPORT_KL=False, VALUES=count)
        yield kind, kept | absent | dict(KIND=number, TABLE=0, WEIGHT=heavy, FACTOR=3, LOSS=1, DENSE=False)
    for table in (1, 2):
        absent = dict(weight=None, teacher=None, values=None)
        own = COMMON | dict(OWN=False, REPORT_KL=False, ADAPTIVE=False)
        yield "mixture", own | absent | dict(KIND=0, TABLE=table, WEIGHT=False, FACTOR=0, LOSS=2, DENSE=True)


which = sys.argv[1]
# The two cases of a kind take turns with the two ways to cut up rows, which differ from kind to kind.
for place, (kind, constants) in enumerate(cases()):
    first = (place + place // 2) % 2 == 0
    if which == "tile":
        ragged = dict(ROWS=16, BLOCK=16, CHUNKS=7, WHOLE=6, SCATTER=True)
        whole = dict(ROWS=1, BLOCK=1024, CHUNKS=1, WHOLE=1, SCATTER=False)
        if first:
            compiled(tile.tile_kernel, constants | ragged, warps=2)
        else:
            compiled(tile.tile_kernel, constants | whole, "fp32", 1)
    else:
        rest = dict(STAGES=3, PHASE=0)
        one = dict(sums=None, arrivals=None, PARTS=1, PARTS_PADDED=1, HELD=False, DEPTH=2, LANES=1024, MASKED=True)
        several = dict(PARTS=5, PARTS_PADDED=8, HELD=True, DEPTH=1, LANES=4096, MASKED=False)
        if first:
            compiled(sweep.sweep_kernel, constants | rest | one, "fp16")
        else:
            compiled(sweep.sweep_kernel, constants | rest | several, "fp32", 4, 80)
if which == "tile":
    compiled(reductions.weigh_kernel, dict(WEIGHT=True, BLOCK=1024))
    compiled(reductions.finish_kernel, dict(MEAN=True, PARTIALS=64, BLOCK=4096), "fp16")
    compiled(reductions.scale_kernel, dict(BLOCK=8192), "bf16")
print("compiled")
"""


@pytest.mark.parametrize("which", ["tile", "sweep"])
def test_every_kernel_compiles_and_stays_in_single_precision(which):
    assert in_a_process(PROGRAM, which) == "compiled"
