"""What is to be measured: nets x packs x arrangements, and against whom. No torch: refusals come at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from softtargets.bench.options import counts, names
from softtargets.bench.training.nets import SUBJECTS, TRAININGS
from softtargets.bench.training.results import EAGER, AccuracyCase, Case
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
DEFAULT_NETS = {"cuda": ",".join(SUBJECTS), "cpu": "fcn,cnn"}
DEFAULT_BATCH = {"cuda": 128, "cpu": 32}
DEFAULT_BATCHES = {"cuda": 100, "cpu": 4}
DEFAULT_PRECISION = {"cuda": "bf16", "cpu": "fp32"}
DEFAULT_SECONDS = {"cuda": 2.0, "cpu": 0.2}
# So that evaluation has the same share in epochs of any length.
TEST_IMAGES_PER_BATCH = 20
DEFAULT_DATA = "digits"
DEFAULT_SEEDS = 5


@dataclass(frozen=True)
class Plan:
    """Everything one command measures."""

    cases: tuple[Case, ...]
    rivals: tuple[str, ...]
    accuracy: tuple[AccuracyCase, ...]
    seconds: float


def plan(
    device: str,
    nets: str | None = None,
    packs: str | None = None,
    arrangements: str | None = None,
    *,
    batch: int | None = None,
    batches: int | None = None,
    precision: str | None = None,
    eager_precision: str | None = None,
    seconds: float | None = None,
    accuracy: bool = False,
    data: str | None = None,
    epochs: int | None = None,
    seeds: int | None = None,
) -> Plan:
    """Read the words of a command line; `device` is a kind of device, ``cuda`` or ``cpu``.

    >>> [str(case) for case in plan("cuda", nets="resnet18", packs="1,16").cases]
    ['resnet18, 1 run streams, batch 128 bf16', 'resnet18, 16 runs streams, batch 128 bf16']
    """
    chosen = names(
        "--nets", DEFAULT_NETS[device] if nets is None else nets, SUBJECTS, everything=True, nothing=True
    )
    asked = None if arrangements is None else names("--arrangements", arrangements, ARRANGEMENTS)
    arithmetic = _one(
        "--precision", DEFAULT_PRECISION[device] if precision is None else precision, PRECISIONS
    )
    also = names("--eager-precision", eager_precision or "none", EAGER_PRECISIONS, nothing=True)
    sizes = {
        arrangement: counts("--packs", DEFAULT_PACKS[device][arrangement] if packs is None else packs)
        for arrangement in ARRANGEMENTS
    }
    cases = []
    # Net by net, so that a run that is cut short has whole panels; small packs first.
    for net in chosen:
        suitable = asked or (ARRANGEMENTS if net in STACKED else ("streams",))
        for runs in sorted({size for arrangement in suitable for size in sizes[arrangement]}):
            cases += [
                Case(
                    net,
                    DEFAULT_BATCH[device] if batch is None else batch,
                    DEFAULT_BATCHES[device] if batches is None else batches,
                    arithmetic,
                    arrangement,
                    runs,
                )
                for arrangement in suitable
                if runs in sizes[arrangement]
            ]
    checks = []
    if accuracy or any(given is not None for given in (data, epochs, seeds)):
        source = _one("--data", DEFAULT_DATA if data is None else data, TRAININGS)
        length = epochs or TRAININGS[source].epochs or 1
        checks = [AccuracyCase(source, length, arithmetic, DEFAULT_SEEDS if seeds is None else seeds)]
    if not cases and not checks:
        raise SofttargetsError("nothing to measure: --nets none makes sense only with --accuracy")
    return Plan(
        tuple(cases),
        (EAGER, *(f"{EAGER} {word}" for word in also)),
        tuple(checks),
        DEFAULT_SECONDS[device] if seconds is None else seconds,
    )


def _one(option: str, text: str, allowed: Iterable[str]) -> str:
    found = names(option, text, allowed)
    if len(found) > 1:
        raise SofttargetsError(f"{option}: give one of {', '.join(allowed)}, not {text}")
    return found[0]
