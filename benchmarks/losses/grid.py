"""What is to be measured: losses x sizes x precisions, and against whom. No torch: refusals come at once."""

from __future__ import annotations

from itertools import product
from typing import Annotated

from typer import Option

from benchmarks.bench import BenchGrid
from benchmarks.losses.results import IN_PLACE, OURS, LinearCase, LossCase
from benchmarks.words import names, shape, words
from softtargets.exceptions import SofttargetsError

LOSSES = (
    "cross_entropy",
    "label_smoothing",
    "labo",
    "confidence_penalty",
    "focal",
    "anti_focal",
    "distillation",
    "prior",
    "matrix",
)
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
RIVALS = ("eager", "compile", "liger")
# Projection and loss in one: torch.nn.functional.linear_cross_entropy and Apple's Cut Cross-Entropy.
LINEAR_RIVALS = (*RIVALS, "torch", "cce")
# LinearLoss is compared on losses that need nothing but logits and target.
ALONE = tuple(name for name in LOSSES if name not in ("distillation", "prior", "matrix"))

SECONDS = 0.3
DEFAULT_LOSSES = "label_smoothing,labo,confidence_penalty"
# Some who fuse the projection know plain cross-entropy only.
DEFAULT_LINEAR_LOSSES = f"cross_entropy,{DEFAULT_LOSSES}"
DEFAULT_DTYPES = {"cuda": "bf16,fp32", "cpu": "fp32"}
DEFAULT_SIZES = {
    "cuda": "8192x32768,4096x131072,65536x1000,262144x100,128x100,128x10,2x10",
    "cpu": "512x1000,128x100,128x10",
}
DEFAULT_LINEAR = {"cuda": "8192x4096x131072", "cpu": "64x32x1000"}


def grid(
    device: str,
    *,
    sizes: Annotated[
        str | None,
        Option(
            metavar="NxK,...",
            help="Rows x classes (on a GPU 8192x32768,4096x131072,65536x1000,262144x100,128x100,128x10,2x10).",
        ),
    ] = None,
    dtypes: Annotated[
        str | None, Option(help="Of bf16, fp16, fp32 (the first and last; on a CPU the last).")
    ] = None,
    losses: Annotated[
        str | None,
        Option(
            help="Which, or all (label_smoothing,labo,confidence_penalty); also cross_entropy, focal, anti_focal, "
            "distillation, prior, matrix."
        ),
    ] = None,
    rivals: Annotated[
        str | None, Option(help="Of eager, compile, liger, with --linear also torch, cce; or none (all).")
    ] = None,
    seconds: Annotated[float, Option(min=0.0, help="How long to repeat each measurement.")] = SECONDS,
    threads: Annotated[
        int | None, Option(min=1, help="Threads of torch on the CPU (its own choice).")
    ] = None,
    in_place: Annotated[
        bool, Option("--in-place", help="Also ours overwriting the logits with their gradient.")
    ] = False,
    linear: Annotated[
        bool, Option("--linear", help="Also projection + loss in one, against materialised logits.")
    ] = False,
    linear_size: Annotated[
        str | None, Option(metavar="NxDxK", help="Rows x hidden x classes of --linear (8192x4096x131072).")
    ] = None,
) -> BenchGrid:
    """Read the words of a command line; `device` is a kind of device, ``cuda`` or ``cpu``.

    >>> grid("cpu", losses="labo", sizes="2x10", rivals="eager").cases
    (LossCase(loss='labo', rows=2, classes=10, dtype='fp32'),)
    """
    chosen = names("--losses", losses, LOSSES, DEFAULT_LOSSES, everything=True)
    shapes = [
        shape("--sizes", word, ("rows", "classes"), "8192x32768")
        for word in words("--sizes", sizes, DEFAULT_SIZES[device])
    ]
    precisions = names("--dtypes", dtypes, DTYPES, DEFAULT_DTYPES[device])
    against = names("--rivals", rivals, LINEAR_RIVALS, ",".join(LINEAR_RIVALS), nothing=True)
    # Size by size, so that a run that is cut short has whole panels.
    plain = [
        LossCase(loss, rows, classes, dtype)
        for (rows, classes), loss, dtype in product(shapes, chosen, precisions)
    ]
    projected = []
    if linear or linear_size is not None:
        size = DEFAULT_LINEAR[device] if linear_size is None else linear_size
        projected = _projections(losses, size, precisions[0])
    return BenchGrid(
        tuple(dict.fromkeys([*plain, *projected])),
        {
            LossCase: (
                OURS,
                *([IN_PLACE] if in_place else []),
                *(name for name in against if name in RIVALS),
            ),
            # "materialised" is our loss after a plain matrix product.
            LinearCase: (OURS, "materialised", *against),
        },
        seconds=seconds,
        threads=threads,
    )


def _projections(losses: str | None, size: str, dtype: str) -> list[LinearCase]:
    chosen = names("--losses", losses, LOSSES, DEFAULT_LINEAR_LOSSES, everything=True)
    rows, hidden, classes = shape("--linear-size", size, ("rows", "hidden", "classes"), "8192x4096x131072")
    cases = [LinearCase(name, rows, hidden, classes, dtype) for name in chosen if name in ALONE]
    if not cases:
        raise SofttargetsError(
            f"--linear has nothing to compare among --losses {','.join(chosen)}; it takes {', '.join(ALONE)}"
        )
    return cases
