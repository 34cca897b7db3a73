"""What is to be measured: nets x packs x arrangements, and against whom. No torch: refusals come at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Option

from benchmarks.bench import BenchGrid
from benchmarks.training.nets import TRAINED, TRAININGS
from benchmarks.training.results import EAGER, OURS, AccuracyCase, TrainingCase
from benchmarks.words import counts, names, one
from softtargets.exceptions import SofttargetsError

# stacked: the runs are computed as one. streams: they only share the device, each on a stream of its own.
ARRANGEMENTS = ("stacked", "streams")
PRECISIONS = ("bf16", "tf32", "fp32")
EAGER_PRECISIONS = ("bf16",)

# Only nets of a few layers gain from being computed as one.
STACKED = ("fcn", "cnn", "alexnet")
# Beyond 16 streams the engine does not go; whoever wants to see why gives --packs.
DEFAULT_PACKS = {
    "cuda": {"stacked": "1,16,64,128", "streams": "1,4,16"},
    "cpu": {"stacked": "1,4", "streams": "1,4"},
}
DEFAULT_NETS = {"cuda": ",".join(TRAINED), "cpu": "fcn,cnn"}
DEFAULT_BATCH = {"cuda": 128, "cpu": 32}
DEFAULT_BATCHES = {"cuda": 100, "cpu": 4}
DEFAULT_PRECISION = {"cuda": "bf16", "cpu": "fp32"}
DEFAULT_SECONDS = {"cuda": 2.0, "cpu": 0.2}
# So that evaluation has the same share in epochs of any length.
TEST_IMAGES_PER_BATCH = 20
DEFAULT_DATA = "digits"
DEFAULT_SEEDS = 5


def grid(
    device: str,
    *,
    nets: Annotated[
        str | None, Option(help="Of fcn, cnn, alexnet, resnet56, resnet18; all or none (on a CPU fcn,cnn).")
    ] = None,
    packs: Annotated[
        str | None,
        Option(
            metavar="N,...",
            help="How many runs train together (stacked 1,16,64,128, streams 1,4,16; on a CPU 1,4).",
        ),
    ] = None,
    arrangements: Annotated[
        str | None,
        Option(help="Of stacked (computed as one), streams (side by side) (both for fcn, cnn, alexnet)."),
    ] = None,
    batch: Annotated[int | None, Option(min=1, help="Images a step (128; on a CPU 32).")] = None,
    batches: Annotated[int | None, Option(min=1, help="Steps an epoch (100; on a CPU 4).")] = None,
    precision: Annotated[
        str | None, Option(help="Of ours: bf16, tf32 or fp32 (bf16; on a CPU fp32).")
    ] = None,
    eager_precision: Annotated[
        str | None, Option(metavar="bf16", help="Also an eager loop in bf16, beside that in fp32/TF32.")
    ] = None,
    seconds: Annotated[
        float | None, Option(min=0.0, help="How long each turn lasts (2; on a CPU 0.2).")
    ] = None,
    accuracy: Annotated[
        bool, Option("--accuracy", help="Also whether both reach the same accuracy on real data.")
    ] = False,
    data: Annotated[str | None, Option(help="Of --accuracy: digits, mnist or cifar10 (digits).")] = None,
    epochs: Annotated[
        int | None, Option(min=1, help="Of --accuracy (digits 30, mnist 10, cifar10 20).")
    ] = None,
    seeds: Annotated[int | None, Option(min=2, help="Of --accuracy, on each side (5).")] = None,
    data_dir: Annotated[
        Path | None, Option(help="Where datasets are [env SOFTTARGETS_DATA; else a user cache].")
    ] = None,
) -> BenchGrid:
    """Read the words of a command line; `device` is a kind of device, ``cuda`` or ``cpu``.

    >>> [str(case) for case in grid("cuda", nets="resnet18", packs="1,16").cases]
    ['resnet18, 1 run streams, batch 128 bf16', 'resnet18, 16 runs streams, batch 128 bf16']
    """
    arithmetic = one("--precision", precision, PRECISIONS, DEFAULT_PRECISION[device])
    also = names("--eager-precision", eager_precision, EAGER_PRECISIONS, "none", nothing=True)
    steps = batch or DEFAULT_BATCH[device], batches or DEFAULT_BATCHES[device]
    chosen = names("--nets", nets, TRAINED, DEFAULT_NETS[device], everything=True, nothing=True)
    together = _packs(device, packs, arrangements)
    # Net by net, so that a run that is cut short has whole panels; small packs first.
    cases: list[TrainingCase | AccuracyCase] = [
        TrainingCase(net, *steps, arithmetic, *pack) for net in chosen for pack in together(net)
    ]
    if accuracy or (data, epochs, seeds) != (None, None, None):
        cases.append(_comparison(data, epochs, seeds, arithmetic))
    if not cases:
        raise SofttargetsError("nothing to measure: --nets none makes sense only with --accuracy")
    return BenchGrid(
        tuple(cases),
        {TrainingCase: (OURS, EAGER, *(f"{EAGER} {word}" for word in also))},
        seconds=DEFAULT_SECONDS[device] if seconds is None else seconds,
        data_dir=data_dir,
    )


def _comparison(data: str | None, epochs: int | None, seeds: int | None, precision: str) -> AccuracyCase:
    source = one("--data", data, TRAININGS, DEFAULT_DATA)
    return AccuracyCase(source, epochs or TRAININGS[source].epochs or 1, precision, seeds or DEFAULT_SEEDS)


def _packs(
    device: str, packs: str | None, arrangements: str | None
) -> Callable[[str], list[tuple[str, int]]]:
    """For a net: in which arrangements how many runs are trained together, the fewest first."""
    asked = None if arrangements is None else names("--arrangements", arrangements, ARRANGEMENTS)
    sizes = {each: counts("--packs", packs, DEFAULT_PACKS[device][each]) for each in ARRANGEMENTS}

    def of(net: str) -> list[tuple[str, int]]:
        suitable = asked or (ARRANGEMENTS if net in STACKED else ("streams",))
        return sorted(((each, runs) for each in suitable for runs in sizes[each]), key=lambda pack: pack[1])

    return of
