"""Results nobody measured, shaped like those of a large GPU."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.losses import BENCH
from benchmarks.losses.results import LinearCase, LinearResult, LossCase, LossEntry, LossResult
from benchmarks.results import BenchResults, CaseResult, Timing

RATE = 4.25e12
BYTES = {"bf16": 2, "fp32": 4}
# Multiples of the floor: ours, eager, compile, liger.
MULTIPLES = {
    "label_smoothing": {
        "8192x32768": (1.9, 7.4, 4.9, 3.65),
        "4096x131072": (1.8, 7.9, 7.1, 2.77),
        "65536x1000": (2.6, 13.2, 13.8, 21),
        "262144x100": (4.1, 35, 133, 138),
    },
    "labo": {
        "8192x32768": (2.13, 48, 9.8, None),
        "4096x131072": (2.17, 49, 13.4, None),
        "65536x1000": (3.5, 49, 17, None),
        "262144x100": (5.0, 66, 125, None),
    },
}
CALLS = {"label_smoothing": (60e-6, 95e-6, 140e-6, 210e-6), "labo": (62e-6, 390e-6, 150e-6, None)}
NAMES = ("ours", "eager", "compile", "liger")
SESSION = {
    "date": "2026-11-20T12:00:00+00:00",
    "command": "python -m benchmarks losses",
    "softtargets": "0.1.0",
    "commit": "0123456789abcdef",
    "uncommitted_changes": False,
    "python": "3.12.3",
    "torch": "2.11.0",
    "triton": "3.6.0",
    "liger": "0.8.5",
    "device_name": "NVIDIA H200",
}


def timing(seconds: float) -> Timing:
    return Timing(seconds, 0.97 * seconds, 1.04 * seconds, 50)


def entry(name: str, seconds: float | None, call: float | None, logits: int) -> LossEntry:
    if seconds is None:
        return LossEntry(name, "absent", "Liger has no such loss")
    again = timing(1.01 * seconds) if name == "ours" else None
    memory = {"ours": 1.0, "eager": 3.0, "compile": 1.1, "liger": 1.0}[name]
    return LossEntry(
        name,
        time=timing(seconds),
        again=again,
        call=call,
        memory=int(memory * logits),
        loss_error=2e-6,
        gradient_error=1e-3,
    )


def result(case: LossCase, *entries: LossEntry) -> LossResult:
    logits = case.rows * case.classes * BYTES[case.dtype]
    return LossResult(
        case=case, session=0, copy_rate=RATE, floor=2 * logits / RATE, logits_bytes=logits, entries=entries
    )


def results(*measured: CaseResult) -> BenchResults:
    return replace(BENCH.results(), sessions=(SESSION,), measured=measured)


def made_up() -> BenchResults:
    """Everything a picture or a table has to cope with: failures, absences, disagreement, tiny sizes."""
    cases = []
    for size in ("8192x32768", "4096x131072", "65536x1000", "262144x100", "128x100", "128x10", "2x10"):
        rows, classes = map(int, size.split("x"))
        for loss in MULTIPLES:
            for dtype, width in BYTES.items():
                logits = rows * classes * width
                floor = 2 * logits / RATE
                entries = []
                for index, name in enumerate(NAMES):
                    multiple = MULTIPLES[loss].get(size, (None,) * 4)[index]
                    call = CALLS[loss][index]
                    seconds = None if call is None else 0.2 * call
                    if multiple is not None:
                        seconds = multiple * floor * (1 if dtype == "bf16" else 0.7)
                        call = max(seconds, call)
                    entries.append(entry(name, seconds, call, logits))
                if (loss, size, dtype) == ("labo", "4096x131072", "fp32"):
                    entries[1] = LossEntry("eager", "failed", "out of memory")
                if (loss, size, dtype) == ("label_smoothing", "65536x1000", "bf16"):
                    old = entries[1]
                    entries[1] = LossEntry(
                        "eager",
                        "disagrees",
                        "its loss is not finite",
                        old.time,
                        call=old.call,
                        memory=old.memory,
                    )
                cases.append(result(LossCase(loss, rows, classes, dtype), *entries))
    linear = []
    for loss, slow in (("label_smoothing", 1.9), ("labo", 3.2)):
        floor = 33e-3
        linear.append(
            LinearResult(
                case=LinearCase(loss, 8192, 4096, 131072, "bf16"),
                session=0,
                floor=floor,
                logits_bytes=2 * 8192 * 131072,
                entries=(
                    LossEntry("ours", time=timing(1.3 * floor), memory=2_100_000_000, lean=400_000_000),
                    LossEntry(
                        "materialised", time=timing(1.4 * floor), memory=6_000_000_000, lean=4_300_000_000
                    ),
                    LossEntry("eager", time=timing(slow * floor), memory=16_000_000_000, lean=14_300_000_000),
                    LossEntry("compile", "failed", "InductorError: no valid configuration"),
                    LossEntry("liger", "absent", "Liger is not installed (pip install liger-kernel)"),
                ),
            )
        )
    return results(*cases, *linear)
