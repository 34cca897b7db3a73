"""Results as tables: for a terminal, as Markdown, as CSV."""

from __future__ import annotations

from typing import Any

from softtargets.bench.calibration.limits import OTHERS_WITHIN, OURS_WITHIN
from softtargets.bench.calibration.results import (
    ALL_OURS,
    INTERVALS,
    OURS,
    STREAMED,
    CaseResult,
    Entry,
    Memory,
    Results,
)
from softtargets.bench.text import NOTHING, Table, csv_of, digits, duration, origin, pipes, rate, times

TITLES = {
    OURS: "ours: all metrics",
    INTERVALS: "ours: all, with intervals",
    STREAMED: "ours: all, streamed",
    "torchmetrics": "torchmetrics: ECE",
    "torchmetrics streamed": "torchmetrics: ECE, streamed",
    "netcal": "netcal: ECE",
}


def title(name: str) -> str:
    """A contestant, and what it computes."""
    return TITLES.get(name, name)


def megabytes(count: int | None) -> str:
    """Bytes in millions, the unit that suits all contestants.

    >>> megabytes(17_400_000), megabytes(11_400_000_000), megabytes(None)
    ('17.4 MB', '11,400 MB', '–')
    """
    return NOTHING if count is None else f"{digits(count / 1e6)} MB"


def overview(results: Results) -> Table:
    """One line per case and contestant: time, ratios, ECE, memory."""
    on_gpu = any(item.case.device != "cpu" for item in results.cases)
    weighed = any(entry.memory for item in results.cases for entry in item.entries)
    headings = ["device", "examples x classes", "contestant", "time", "examples/s"]
    headings += ["time / ours", "time / ours with intervals"]
    headings += ["speed / CPU"] if on_gpu else []
    headings += ["ECE", "off float64 by"]
    headings += ["memory, a quarter", "memory, all"] if weighed else []
    rows = []
    for item in results.cases:
        for entry in item.entries:
            row = [item.case.device, f"{item.case.examples:,} x {item.case.classes:,}", title(entry.name)]
            row += [_time(entry), rate(item.rate(entry.name) if entry.time else None)]
            row += [times(item.ratio(entry.name)), times(item.ratio(entry.name, INTERVALS))]
            row += [times(results.gain(item, entry.name))] if on_gpu else []
            row += [NOTHING if entry.ece is None else f"{entry.ece:.6f}"]
            row += [NOTHING if entry.error is None else f"{entry.error:.0e}"]
            row += _weights(entry.memory) if weighed else []
            rows.append(row)
    return headings, rows


def verdicts(results: Results) -> list[str]:
    """What the numbers come to, one sentence each."""
    lines = []
    for item in results.cases:
        rivals = [entry.name for entry in item.entries if entry.name not in ALL_OURS]
        for name in (OURS, INTERVALS):
            found = [(rival, ratio) for rival in rivals if (ratio := item.ratio(rival, name)) is not None]
            if found:
                shown = ", ".join(f"{times(ratio)} ({rival})" for rival, ratio in found)
                lines.append(f"{item.case}: the time for the ECE alone, in multiples of {name}: {shown}")
        if (gain := results.gain(item, OURS)) is not None:
            lines.append(
                f"{item.case}: {times(gain)} the examples per second of ours on the CPU ({item.threads} threads)"
            )
        streamed = item.entry(STREAMED)
        if streamed and len(streamed.memory) == 2:
            few, many = streamed.memory
            lines.append(
                f"{item.case}: streaming takes {megabytes(few.peak)} for {few.examples:,} examples and "
                f"{megabytes(many.peak)} for {many.examples:,}"
            )
    return lines


def summary(item: CaseResult) -> str:
    """One case in one line, for who watches."""
    return f"{item.case}: " + "; ".join(f"{entry.name} {_time(entry)}" for entry in item.entries)


def notes(results: Results) -> list[str]:
    """Who was not measured, or computes something else, and why."""
    return [
        f"{entry.name} {entry.status}: {entry.reason} ({item.case})"
        for item in results.cases
        for entry in item.entries
        if entry.status != "ok"
    ]


def markdown(results: Results) -> str:
    """Everything a person wants to read, ready for a README."""
    parts = ["# Calibration, from logits", *origin(results.sessions)]
    for session in results.sessions:
        found = [f"{name} {session[name]}" for name in ("torchmetrics", "netcal") if session.get(name)]
        hardware = (
            f"{session.get('processor')}, {session.get('threads')} threads of {session.get('cores')} cores"
        )
        parts.append(f"CPU: {hardware}. Rivals: {', '.join(found) or 'none installed'}.")
    parts += [
        "Ours computes every metric of `measure_calibration` in one pass, the rivals the ECE alone. Times are medians "
        "of turns, one after the other, from float32 logits to numbers on the host. Memory is the peak beyond logits "
        "and labels, for a quarter of the examples and for all.",
        pipes(overview(results)),
        "\n".join(f"- {line}" for line in verdicts(results)),
        f"The ECE of all is compared with float64 in the same run: ours must be within {OURS_WITHIN:.0e}, the others, "
        f"some of which add up in single precision, within {OTHERS_WITHIN:.0e}; and 2/N more for every example that "
        "single precision puts into another bin.",
    ]
    if lines := notes(results):
        parts += ["## Notes", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(part for part in parts if part) + "\n"


def csv_text(results: Results) -> str:
    """One line per case and contestant; seconds and bytes."""
    lines: list[dict[str, Any]] = []
    for item in results.cases:
        for entry in item.entries:
            time = entry.time
            weights = {f"memory_{'quarter' if n == 0 else 'all'}": _peak(entry.memory, n) for n in (0, 1)}
            lines.append(
                {
                    **vars(item.case),
                    "threads": item.threads,
                    "contestant": entry.name,
                    "status": entry.status,
                    "reason": entry.reason,
                    "median": time.median if time else None,
                    "low": time.low if time else None,
                    "high": time.high if time else None,
                    "repetitions": time.repetitions if time else None,
                    "times_ours": item.ratio(entry.name),
                    "speed_over_cpu": results.gain(item, entry.name),
                    "ece": entry.ece,
                    "off_float64_by": entry.error,
                    **weights,
                    "session": item.session,
                }
            )
    return csv_of(lines, "device")


def _peak(found: tuple[Memory, ...], place: int) -> int | None:
    return found[place].peak if place < len(found) else None


def _weights(found: tuple[Memory, ...]) -> list[str]:
    return [megabytes(_peak(found, place)) for place in (0, 1)]


def _time(entry: Entry) -> str:
    if entry.time is None:
        return "out of memory" if entry.reason == "out of memory" else entry.status
    return duration(entry.time.median) + (" *" if entry.status == "disagrees" else "")
