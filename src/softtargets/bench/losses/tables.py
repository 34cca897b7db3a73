"""Results as tables: for a terminal, as Markdown, as CSV."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from softtargets.bench.losses.results import CaseResult, Entry, LinearResult, Results
from softtargets.bench.text import Table, csv_of, duration, memory, origin, pipes, times

# Where moving the data takes less than this, launching kernels is what takes the time.
LAUNCH_BOUND = 5e-6

TITLES = {
    "ours": "ours",
    "ours in place": "ours, in place",
    "eager": "torch eager",
    "compile": "torch.compile",
    "liger": "Liger",
    "materialised": "ours, materialised",
}

Show = Callable[[CaseResult | LinearResult, Entry], str]


def launch_bound(item: CaseResult) -> bool:
    """Whether the time per call, not the time on the device, is what a user waits for."""
    return item.floor < LAUNCH_BOUND


def seconds_of(entry: Entry, by_call: bool) -> float | None:
    """The time that counts: on the device, or per call where launches dominate."""
    if by_call:
        return entry.call
    return None if entry.time is None else entry.time.median


def overview(results: Results) -> Table:
    """One line per case: multiples of the floor (or time per call), the best rival, memory in logits."""
    names = results.names()
    weighed = [
        name
        for name in names
        if any((entry := item.entry(name)) and entry.memory is not None for item in results.cases)
    ]
    headings = ["loss", "rows x classes", "dtype", "floor", *map(_title, names), "best rival / ours"]
    headings += [f"memory {_title(name)}" for name in weighed]
    rows = []
    for item in results.cases:
        cells = [_cell(item, name, _shown) for name in names]
        weights = [_cell(item, name, _memory) for name in weighed]
        best = times(_advantage(item))
        rows.append(
            [item.case.loss, item.case.size, item.case.dtype, duration(item.floor), *cells, best, *weights]
        )
    return headings, rows


def linear_overview(results: Results) -> Table:
    """One line per contestant of the linear section."""
    headings = ["loss", "rows x hidden x classes", "dtype", "who", "time", "of three products"]
    headings += ["memory", "memory without gradients", "loss error", "gradient error"]
    rows = []
    for item in results.linear:
        for entry in item.entries:
            shown = (_median, _ratio, _absolute, _lean, _loss_error, _gradient_error)
            cells = [item.case.loss, item.case.size, item.case.dtype, _title(entry.name)]
            cells += [_cell(item, entry.name, show) for show in shown]
            rows.append(cells)
    return headings, rows


def summary(item: CaseResult | LinearResult) -> str:
    """One case in one line, for who watches."""
    shown = [
        f"{_title(entry.name)} {_cell(item, entry.name, _shown)}"
        for entry in item.entries
        if entry.status != "absent"
    ]
    return f"{item.case}: {'; '.join(shown)}"


def notes(results: Results) -> list[str]:
    """Who was not measured or disagrees, and why; one line per reason."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for item in results.everything():
        for entry in item.entries:
            if entry.status != "ok":
                found.setdefault((entry.name, entry.status, entry.reason), []).append(str(item.case))
    lines = []
    for (name, status, reason), cases in found.items():
        where = cases[0] if len(cases) == 1 else f"{cases[0]} and {len(cases) - 1} more"
        lines.append(f"{_title(name)} {status}: {reason} ({where})")
    return lines


def markdown(results: Results) -> str:
    """Everything a person wants to read, ready for a README."""
    parts = ["# Losses, forward + backward, mean reduction", *_origin(results)]
    names = results.names()
    if results.cases:
        parts += [
            "Floor: reading the logits once and writing their gradient once at the copy rate measured in the same "
            "run. Times are medians on the device, L2 flushed, contestants in turns, as multiples of the floor "
            f"(where that is under {duration(LAUNCH_BOUND)}, as they are); the largest spread between two "
            f"series of ours was {_largest_spread(results)}. `*`: measured, but its numbers differ; see the notes.",
            _grid(results, names, "floor", lambda item: duration(item.floor), _both),
            "## Time per call, back to back\n\nWhat a loop pays when launching kernels takes longer than running "
            "them: many calls, one wait at the end.",
            _grid(results, names, "", lambda item: "", _call),
        ]
        if any(entry.memory is not None for item in results.cases for entry in item.entries):
            parts += [
                "## Peak extra memory, in units of the logits\n\nThe gradient itself is 1.0; overwriting the logits "
                "needs none.",
                _grid(results, names, "logits", lambda item: memory(item.logits_bytes), _memory),
            ]
        parts += [
            "## Errors against float64: loss / gradient\n\nOf the loss relative to it; of the gradient, on a few "
            "rows, relative to the largest of its row.",
            _grid(results, names, "", lambda item: "", _errors),
        ]
    if results.linear:
        parts += [
            "## Projection and loss in one\n\nTimes as multiples of the three matrix products nobody can do without, "
            "timed beside. Memory beyond inputs; without gradients: less what these take, which is there at the end "
            "in any case.",
            pipes(linear_overview(results)),
        ]
    if lines := notes(results):
        parts += ["## Notes", "\n".join(f"- {line}" for line in lines)]
    return "\n\n".join(parts) + "\n"


def csv_text(results: Results) -> str:
    """One line per case and contestant, times in seconds, memory in bytes."""
    lines: list[dict[str, Any]] = []
    for item in results.everything():
        for entry in item.entries:
            time, again = entry.time, entry.again
            lines.append(
                {
                    "section": "linear" if isinstance(item, LinearResult) else "loss",
                    "loss": item.case.loss,
                    "rows": item.case.rows,
                    "hidden": item.case.hidden if isinstance(item, LinearResult) else None,
                    "classes": item.case.classes,
                    "dtype": item.case.dtype,
                    "contestant": entry.name,
                    "status": entry.status,
                    "reason": entry.reason,
                    "floor": item.floor,
                    "median": time and time.median,
                    "low": time and time.low,
                    "high": time and time.high,
                    "repetitions": time and time.repetitions,
                    "times_floor": _over(entry, item.floor),
                    "median_again": again and again.median,
                    "call": entry.call,
                    "memory": entry.memory,
                    "memory_in_logits": None if entry.memory is None else entry.memory / item.logits_bytes,
                    "memory_without_gradients": entry.lean,
                    "loss_error": entry.loss_error,
                    "gradient_error": entry.gradient_error,
                    "session": item.session,
                }
            )
    return csv_of(lines, "loss")


def _origin(results: Results) -> list[str]:
    """Who measured, when, with what, how to do it again; and how fast memory was."""
    described = origin(results.sessions)
    rates = sorted({item.copy_rate for item in results.cases})
    if rates:
        shown = " to ".join(f"{rate / 1e12:.2f}" for rate in dict.fromkeys((rates[0], rates[-1])))
        described.append(f"Copy rate: {shown} TB/s, bytes read plus bytes written.")
    return described


def _grid(
    results: Results,
    names: Sequence[str],
    extra: str,
    beside: Callable[[CaseResult], str],
    show: Show,
) -> str:
    headings = ["loss", "rows x classes", "dtype", *([extra] if extra else []), *map(_title, names)]
    rows = [
        [
            item.case.loss,
            item.case.size,
            item.case.dtype,
            *([beside(item)] if extra else []),
            *(_cell(item, name, show) for name in names),
        ]
        for item in results.cases
    ]
    return pipes((headings, rows))


def _cell(item: CaseResult | LinearResult, name: str, show: Show) -> str:
    entry = item.entry(name)
    if entry is None or entry.status == "absent":
        return "–"
    if entry.status == "failed":
        return "out of memory" if entry.reason == "out of memory" else "failed"
    return show(item, entry) + (" *" if entry.status == "disagrees" else "")


def _shown(item: CaseResult | LinearResult, entry: Entry) -> str:
    by_call = isinstance(item, CaseResult) and launch_bound(item)
    return duration(entry.call) if by_call else _ratio(item, entry)


def _ratio(item: CaseResult | LinearResult, entry: Entry) -> str:
    return times(_over(entry, item.floor))


def _median(item: CaseResult | LinearResult, entry: Entry) -> str:
    return duration(None if entry.time is None else entry.time.median)


def _both(item: CaseResult | LinearResult, entry: Entry) -> str:
    if isinstance(item, CaseResult) and launch_bound(item):
        return _median(item, entry)
    return f"{_ratio(item, entry)} ({_median(item, entry)})"


def _call(item: CaseResult | LinearResult, entry: Entry) -> str:
    return duration(entry.call)


def _memory(item: CaseResult | LinearResult, entry: Entry) -> str:
    # An allocation is 512 bytes at least: for small logits the ratio would say nothing.
    if entry.memory is None or (isinstance(item, CaseResult) and launch_bound(item)):
        return "–"
    return f"{entry.memory / item.logits_bytes:.2f}"


def _absolute(item: CaseResult | LinearResult, entry: Entry) -> str:
    return memory(entry.memory)


def _lean(item: CaseResult | LinearResult, entry: Entry) -> str:
    return memory(entry.lean)


def _loss_error(item: CaseResult | LinearResult, entry: Entry) -> str:
    return "–" if entry.loss_error is None else f"{entry.loss_error:.0e}"


def _gradient_error(item: CaseResult | LinearResult, entry: Entry) -> str:
    return "–" if entry.gradient_error is None else f"{entry.gradient_error:.0e}"


def _errors(item: CaseResult | LinearResult, entry: Entry) -> str:
    return f"{_loss_error(item, entry)} / {_gradient_error(item, entry)}"


def _over(entry: Entry, floor: float) -> float | None:
    return entry.time.median / floor if entry.time is not None and floor > 0 else None


def _advantage(item: CaseResult) -> float | None:
    """The fastest rival's time over ours; rivals whose numbers differ do not count."""
    by_call = launch_bound(item)
    ours = item.entry("ours")
    mine = None if ours is None else seconds_of(ours, by_call)
    others = [
        seconds
        for entry in item.entries
        if not entry.name.startswith("ours") and entry.status == "ok"
        if (seconds := seconds_of(entry, by_call)) is not None
    ]
    return min(others) / mine if mine and others else None


def _largest_spread(results: Results) -> str:
    spreads = [
        entry.spread
        for item in results.cases
        if not launch_bound(item)
        for entry in item.entries
        if entry.spread is not None
    ]
    return f"{100 * max(spreads):.1f} %" if spreads else "not measured"


def _title(name: str) -> str:
    return TITLES.get(name, name)
