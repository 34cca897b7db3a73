"""Results of calibration as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

from typing import Any

from benchmarks import tables
from benchmarks.calibration import results as measured
from benchmarks.calibration.results import (
    ALL_OURS,
    INTERVALS,
    OURS,
    STREAMED,
    CalibrationEntry,
    CalibrationResult,
    gain,
)
from benchmarks.results import BenchResults
from benchmarks.tables import Column, Table
from benchmarks.text import NOTHING, duration, megabytes, rate, scientific, times

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
    rows = tables.pairs(results.of(CalibrationResult))
    columns: list[Column[Any]] = [
        *tables.attributes({"device": "item.case.device", "examples x classes": "item.case.size"}),
        ("contestant", lambda row: title(row.entry.name)),
        ("time", lambda row: _time(row.entry)),
        ("examples/s", lambda row: rate(row.item.rate(row.entry.name))),
        ("time / ours", lambda row: times(row.item.ratio(row.entry.name))),
        ("time / ours with intervals", lambda row: times(row.item.ratio(row.entry.name, INTERVALS))),
    ]
    if any(row.item.case.device != "cpu" for row in rows):
        columns += [("speed / CPU", lambda row: times(gain(results, row.item, row.entry.name)))]
    columns += [
        ("ECE", lambda row: NOTHING if row.entry.ece is None else f"{row.entry.ece:.6f}"),
        ("off float64 by", lambda row: scientific(row.entry.error)),
    ]
    if any(row.entry.memory for row in rows):
        columns += [
            ("memory, a quarter", lambda row: megabytes(_peak(row.entry, 0))),
            ("memory, all", lambda row: megabytes(_peak(row.entry, 1))),
        ]
    return tables.table(columns, rows)


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


def remarks(results: BenchResults) -> list[str]:
    """What the numbers come to; who was not measured or computes something else, and why."""
    return [*verdicts(results), *tables.notes(results, apart=True)]


def wrong(results: BenchResults) -> str:
    """Whoever computes something else, in words; empty as it should be."""
    found = [
        f"{name} on {item.case}: {reason}"
        for item in results.everything()
        for name, status, reason in item.problems()
        if status == "disagrees"
    ]
    return f"not everybody computes the same, so the times mean nothing: {'; '.join(found)}" if found else ""


def texts(results: BenchResults) -> dict[str, str]:
    """The files of text: a line per case and contestant, in seconds and bytes; and a table to read."""
    records = [_record(results, *row) for row in tables.pairs(results.of(CalibrationResult))]
    found = tables.document(
        "Calibration, from logits", results, _parts(results), tables.notes(results, apart=True)
    )
    return {"results.csv": tables.csv_of(records, "device"), "results.md": found}


def _parts(results: BenchResults) -> list[str]:
    parts = []
    for session in results.sessions:
        found = [f"{name} {session[name]}" for name in ("torchmetrics", "netcal") if session.get(name)]
        threads = f"{session.get('threads')} threads of {session.get('cores')} cores"
        rivals = ", ".join(found) or "none installed"
        parts.append(f"CPU: {session.get('processor')}, {threads}. Rivals: {rivals}.")
    return [
        *parts,
        "Ours computes every metric of `measure_calibration` in one pass, the rivals the ECE alone. Times are medians "
        "of turns, one after the other, from float32 logits to numbers on the host. Memory is the peak beyond logits "
        "and labels, for a quarter of the examples and for all.",
        tables.pipes(overview(results)),
        tables.bullets(verdicts(results)),
        "The ECE of all is compared with float64 in the same run: ours must be within "
        f"{measured.OURS_WITHIN:.0e}, the others, some of which add up in single precision, within "
        f"{measured.OTHERS_WITHIN:.0e}; and 2/N more for every example that single precision puts into another bin.",
    ]


def _record(results: BenchResults, item: CalibrationResult, entry: CalibrationEntry) -> dict[str, Any]:
    return {
        **vars(item.case),
        "threads": item.threads,
        "contestant": entry.name,
        "status": entry.status,
        "reason": entry.reason,
        **tables.timing_fields(entry.time),
        "times_ours": item.ratio(entry.name),
        "speed_over_cpu": gain(results, item, entry.name),
        "ece": entry.ece,
        "off_float64_by": entry.error,
        "memory_quarter": _peak(entry, 0),
        "memory_all": _peak(entry, 1),
        "session": item.session,
    }


def _peak(entry: CalibrationEntry, place: int) -> int | None:
    return entry.memory[place].peak if place < len(entry.memory) else None


def _time(entry: CalibrationEntry) -> str:
    if entry.time is None:
        return "out of memory" if entry.reason == "out of memory" else entry.status
    return duration(entry.time.median) + (" *" if entry.status == "disagrees" else "")
