"""Results as tables: for a terminal, as Markdown, as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Any

from softtargets.bench.text import NOTHING, Table, csv_of, duration, memory, origin, pipes, rate, times
from softtargets.bench.training.results import (
    EAGER,
    ERRORS,
    MARGIN,
    OURS,
    AccuracyResult,
    CaseResult,
    Entry,
    Results,
)

TITLES = {OURS: "ours", EAGER: "torch eager", f"{EAGER} bf16": "torch eager, bf16"}


def title(name: str) -> str:
    """A contestant as a person calls it."""
    return TITLES.get(name, name)


def overview(results: Results) -> Table:
    """One line per case: images per second, how many times the rivals', set-up and memory."""
    rivals = results.rivals()
    weighed = [name for name in (OURS, *rivals) if any(_memory(item, name) for item in results.cases)]
    headings = ["net", "batch", "runs", "arrangement", "engine's choice", "precision"]
    headings += [f"{title(name)} images/s" for name in (OURS, *rivals)]
    headings += [f"ours / {title(name)}" for name in rivals]
    headings += ["set-up", *(f"memory {title(name)}" for name in weighed)]
    rows = []
    for item in results.cases:
        case, ours = item.case, item.entry(OURS)
        row = [case.net, str(case.batch), str(case.runs), case.arrangement, "yes" if item.chosen else "no"]
        row += [case.precision, *(_rate(item.entry(name)) for name in (OURS, *rivals))]
        row += [times(item.ratio(name)) for name in rivals]
        row += [duration(ours.setup if ours else None)]
        row += [memory(_memory(item, name)) for name in weighed]
        rows.append(row)
    return headings, rows


def accuracy_overview(results: Results) -> Table:
    """One line per comparison: both sides in per cent, and whether the difference is noise."""
    headings = [
        "data",
        "epochs",
        "seeds",
        "precision",
        "ours",
        "torch eager",
        "difference",
        "allowed",
        "verdict",
    ]
    rows = []
    for item in results.accuracy:
        case = item.case
        row = [case.data, str(case.epochs), str(case.seeds), case.precision]
        if item.status == "failed":
            row += [NOTHING] * 4
        else:
            row += [_side(item.ours), _side(item.eager)]
            row += [difference(item), f"{100 * item.allowed:.2f} points"]
        rows.append([*row, verdict(item)])
    return headings, rows


def summary(item: CaseResult | AccuracyResult) -> str:
    """One case in one line, for who watches."""
    if isinstance(item, AccuracyResult):
        if item.status == "failed":
            return f"{item.case}: {item.reason}"
        return f"{item.case}: ours {_side(item.ours)}; torch eager {_side(item.eager)}; {verdict(item)}"
    ours = item.entry(OURS)
    shown = [f"{title(entry.name)} {_rate(entry)}" for entry in item.entries]
    shown += [times(item.ratio())] if item.ratio() else []
    shown += [f"set-up {duration(ours.setup)}"] if ours and ours.setup is not None else []
    return f"{item.case}: {'; '.join(shown)}"


def notes(results: Results) -> list[str]:
    """Who was not measured and why; one line per reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for item in results.cases:
        for entry in item.entries:
            if entry.status != "ok":
                found.setdefault((title(entry.name), entry.reason), []).append(str(item.case))
    for check in results.accuracy:
        if check.status != "ok":
            found.setdefault(("the comparison", check.reason), []).append(str(check.case))
    lines = []
    for (name, reason), cases in found.items():
        where = cases[0] if len(cases) == 1 else f"{cases[0]} and {len(cases) - 1} more"
        lines.append(f"{name} failed: {reason} ({where})")
    return lines


def markdown(results: Results) -> str:
    """Everything a person wants to read, ready for a README."""
    parts = ["# Training, augmentation and evaluation included", *origin(results.sessions)]
    if results.cases:
        parts += [
            "Images per second of training, all runs together. The eager loop took turns before and after ours, and "
            "ratios are against the mean of the two; between them it differed by at most "
            f"{_largest_spread(results)}. Set-up: making nets, compiling, recording and one epoch.",
            pipes(overview(results)),
        ]
    if results.accuracy:
        parts += [
            "## Accuracy of the same training\n\nTest accuracy in per cent at the end, mean and standard deviation "
            f"over seeds; the difference with its standard error. Allowed: {ERRORS:g} standard errors and "
            f"{100 * MARGIN:g} points.",
            pipes(accuracy_overview(results)),
        ]
    if lines := notes(results):
        parts += ["## Notes", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(parts) + "\n"


def csv_text(results: Results) -> str:
    """One line per case and contestant; seconds and bytes."""
    lines: list[dict[str, Any]] = []
    for item in results.cases:
        for entry in item.entries:
            ratio = item.ratio(entry.name) if entry.name != OURS else None
            lines.append(
                {
                    **vars(item.case),
                    "engine_would": item.chosen,
                    "contestant": entry.name,
                    "status": entry.status,
                    "reason": entry.reason,
                    "images_per_second": entry.rate,
                    "spread": entry.spread,
                    "times_slower_than_ours": ratio,
                    "setup": entry.setup,
                    "memory": entry.memory,
                    "session": item.session,
                }
            )
    return csv_of(lines, "net")


def accuracy_csv(results: Results) -> str:
    """One line per side and seed."""
    lines = [
        {**vars(item.case), "side": side, "seed": seed, "test_accuracy": value, "session": item.session}
        for item in results.accuracy
        for side, values in ((OURS, item.ours), (EAGER, item.eager))
        for seed, value in enumerate(values)
    ]
    return csv_of(lines, "data")


def difference(item: AccuracyResult) -> str:
    """Our mean less theirs, with its standard error, in percentage points."""
    return f"{100 * item.difference:+.2f} ± {100 * item.error:.2f} points"


def verdict(item: AccuracyResult) -> str:
    """Whether both sides reach the same."""
    if item.status == "failed":
        return "out of memory" if item.reason == "out of memory" else "failed"
    return {True: "the same within noise", False: "DIFFERENT", None: "cannot tell"}[item.agrees]


def _side(values: Sequence[float]) -> str:
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):.2f}{spread} %" if values else NOTHING


def _rate(entry: Entry | None) -> str:
    if entry is None:
        return NOTHING
    if entry.status == "failed":
        return "out of memory" if entry.reason == "out of memory" else "failed"
    return rate(entry.rate)


def _memory(item: CaseResult, name: str) -> int | None:
    entry = item.entry(name)
    return None if entry is None else entry.memory


def _largest_spread(results: Results) -> str:
    spreads = [
        spread for item in results.cases for entry in item.entries if (spread := entry.spread) is not None
    ]
    return f"{100 * max(spreads):.1f} %" if spreads else "an unknown amount"
