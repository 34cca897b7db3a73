"""Results of calibration as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

from typing import Any

from benchmarks.calibration.results import (
    ALL_OURS,
    INTERVALS,
    OTHERS_WITHIN,
    OURS,
    OURS_WITHIN,
    STREAMED,
    CalibrationEntry,
    CalibrationResult,
    gain,
)
from benchmarks.results import BenchResults
from benchmarks.tables import Column, bullets, csv_of, document, notes, pairs, pipes, table, timing_fields
from benchmarks.text import NOTHING, Table, duration, megabytes, rate, scientific, times

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


def overview(results: BenchResults) -> Table:
    """One line per case and contestant: time, ratios, ECE, memory."""
    items = results.of(CalibrationResult)
    rows = pairs(items)
    columns: list[Column[Any]] = [
        ("device", lambda row: row[0].case.device),
        ("examples x classes", lambda row: f"{row[0].case.examples:,} x {row[0].case.classes:,}"),
        ("contestant", lambda row: title(row[1].name)),
        ("time", lambda row: _time(row[1])),
        ("examples/s", lambda row: rate(row[0].rate(row[1].name) if row[1].time else None)),
        ("time / ours", lambda row: times(row[0].ratio(row[1].name))),
        ("time / ours with intervals", lambda row: times(row[0].ratio(row[1].name, INTERVALS))),
    ]
    if any(item.case.device != "cpu" for item in items):
        columns += [("speed / CPU", lambda row: times(gain(results, row[0], row[1].name)))]
    columns += [
        ("ECE", lambda row: NOTHING if row[1].ece is None else f"{row[1].ece:.6f}"),
        ("off float64 by", lambda row: scientific(row[1].error)),
    ]
    if any(entry.memory for _, entry in rows):
        columns += [
            ("memory, a quarter", lambda row: megabytes(_peak(row[1], 0))),
            ("memory, all", lambda row: megabytes(_peak(row[1], 1))),
        ]
    return table(columns, rows)


def verdicts(results: BenchResults) -> list[str]:
    """What the numbers come to, one sentence each."""
    return [
        f"{item.case}: {sentence}"
        for item in results.of(CalibrationResult)
        for sentence in (*_ratios(item), *_faster(results, item), *_streaming(item))
    ]


def _ratios(item: CalibrationResult) -> list[str]:
    rivals = [entry.name for entry in item.entries if entry.name not in ALL_OURS]
    sentences = []
    for name in (OURS, INTERVALS):
        found = [(rival, ratio) for rival in rivals if (ratio := item.ratio(rival, name)) is not None]
        if found:
            shown = ", ".join(f"{times(ratio)} ({rival})" for rival, ratio in found)
            sentences.append(f"the time for the ECE alone, in multiples of {name}: {shown}")
    return sentences


def _faster(results: BenchResults, item: CalibrationResult) -> list[str]:
    factor = gain(results, item, OURS)
    if factor is None:
        return []
    return [f"{times(factor)} the examples per second of ours on the CPU ({item.threads} threads)"]


def _streaming(item: CalibrationResult) -> list[str]:
    streamed = item.entry(STREAMED)
    if streamed is None or len(streamed.memory) != 2:
        return []
    few, many = streamed.memory
    return [
        f"streaming takes {megabytes(few.peak)} for {few.examples:,} examples and "
        f"{megabytes(many.peak)} for {many.examples:,}"
    ]


def summary(item: CalibrationResult) -> str:
    """One case in one line, for who watches."""
    return f"{item.case}: " + "; ".join(f"{entry.name} {_time(entry)}" for entry in item.entries)


def markdown(results: BenchResults) -> str:
    """Everything a person wants to read, ready for a README."""
    parts = []
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
        bullets(verdicts(results)),
        f"The ECE of all is compared with float64 in the same run: ours must be within {OURS_WITHIN:.0e}, the others, "
        f"some of which add up in single precision, within {OTHERS_WITHIN:.0e}; and 2/N more for every example that "
        "single precision puts into another bin.",
    ]
    return document("Calibration, from logits", results, parts, notes(results, {}))


def csv_text(results: BenchResults) -> str:
    """One line per case and contestant; seconds and bytes."""
    lines: list[dict[str, Any]] = [
        {
            **vars(item.case),
            "threads": item.threads,
            "contestant": entry.name,
            "status": entry.status,
            "reason": entry.reason,
            **timing_fields(entry.time),
            "times_ours": item.ratio(entry.name),
            "speed_over_cpu": gain(results, item, entry.name),
            "ece": entry.ece,
            "off_float64_by": entry.error,
            "memory_quarter": _peak(entry, 0),
            "memory_all": _peak(entry, 1),
            "session": item.session,
        }
        for item, entry in pairs(results.of(CalibrationResult))
    ]
    return csv_of(lines, "device")


def _peak(entry: CalibrationEntry, place: int) -> int | None:
    return entry.memory[place].peak if place < len(entry.memory) else None


def _time(entry: CalibrationEntry) -> str:
    if entry.time is None:
        return "out of memory" if entry.reason == "out of memory" else entry.status
    return duration(entry.time.median) + (" *" if entry.status == "disagrees" else "")
