"""What is to be measured: losses x sizes x precisions, and against whom. No torch: refusals come at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from softtargets.bench.losses.results import Case, LinearCase
from softtargets.bench.options import names, words
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
# LinearLoss is compared on losses that need nothing but logits and target.
ALONE = tuple(name for name in LOSSES if name not in ("distillation", "prior", "matrix"))

SECONDS = 0.3
DEFAULT_LOSSES = "label_smoothing,labo,confidence_penalty"
DEFAULT_DTYPES = {"cuda": "bf16,fp32", "cpu": "fp32"}
DEFAULT_SIZES = {
    "cuda": "8192x32768,4096x131072,65536x1000,262144x100,128x100,128x10,2x10",
    "cpu": "512x1000,128x100,128x10",
}
DEFAULT_LINEAR = {"cuda": "8192x4096x131072", "cpu": "64x32x1000"}


@dataclass(frozen=True)
class Plan:
    """Everything one command measures."""

    cases: tuple[Case, ...]
    linear: tuple[LinearCase, ...]
    rivals: tuple[str, ...]
    in_place: bool = False
    seconds: float = SECONDS

    @property
    def contestants(self) -> tuple[str, ...]:
        """Who takes part in every case."""
        return ("ours", *(["ours in place"] if self.in_place else []), *self.rivals)

    @property
    def linear_contestants(self) -> tuple[str, ...]:
        """Who takes part in the linear section; "materialised" is our loss after a plain matrix product."""
        return ("ours", "materialised", *self.rivals)


def plan(
    device: str,
    losses: str | None = None,
    sizes: str | None = None,
    dtypes: str | None = None,
    rivals: str | None = None,
    *,
    in_place: bool = False,
    seconds: float = SECONDS,
    linear: bool = False,
    linear_size: str | None = None,
) -> Plan:
    """Read the words of a command line; `device` is a kind of device, ``cuda`` or ``cpu``.

    >>> plan("cpu", losses="labo", sizes="2x10", rivals="eager").cases
    (Case(loss='labo', rows=2, classes=10, dtype='fp32'),)
    """
    chosen = names("--losses", DEFAULT_LOSSES if losses is None else losses, LOSSES, everything=True)
    shapes = [
        _shape("--sizes", word, ("rows", "classes"))
        for word in words("--sizes", DEFAULT_SIZES[device] if sizes is None else sizes)
    ]
    precisions = names("--dtypes", DEFAULT_DTYPES[device] if dtypes is None else dtypes, DTYPES)
    against = names("--rivals", ",".join(RIVALS) if rivals is None else rivals, RIVALS, nothing=True)
    # Size by size, so that a run that is cut short has whole panels.
    cases = [
        Case(loss, rows, classes, dtype)
        for (rows, classes), loss, dtype in product(shapes, chosen, precisions)
    ]
    projections = []
    if linear or linear_size is not None:
        size = DEFAULT_LINEAR[device] if linear_size is None else linear_size
        rows, hidden, classes = _shape("--linear-size", size, ("rows", "hidden", "classes"))
        projections = [
            LinearCase(name, rows, hidden, classes, precisions[0]) for name in chosen if name in ALONE
        ]
        if not projections:
            raise SofttargetsError(
                f"--linear has nothing to compare among --losses {','.join(chosen)}; it takes {', '.join(ALONE)}"
            )
    return Plan(tuple(dict.fromkeys(cases)), tuple(projections), against, in_place, seconds)


def _shape(option: str, word: str, parts: tuple[str, ...]) -> tuple[int, ...]:
    numbers = word.lower().split("x")
    example = {2: "8192x32768", 3: "8192x4096x131072"}[len(parts)]
    if len(numbers) != len(parts) or not all(number.strip().isdecimal() for number in numbers):
        raise SofttargetsError(f"{option}: '{word}' is not {' x '.join(parts)}; write for example {example}")
    shape = tuple(map(int, numbers))
    if min(shape) < 1 or shape[-1] < 2:
        raise SofttargetsError(
            f"{option}: '{word}' is too small; it needs two classes and one of everything else"
        )
    return shape
