"""Results of losses as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks import tables
from benchmarks.losses.results import LAUNCH_BOUND, LinearResult, LossEntry, LossResult
from benchmarks.results import BenchResults
from benchmarks.tables import Column, Table
from benchmarks.text import NOTHING, duration, memory, scientific, times

TITLES = {
    "ours": "ours",
    "ours in place": "ours, in place",
    "eager": "torch eager",
    "compile": "torch.compile",
    "liger": "Liger",
    "materialised": "ours, materialised",
    "torch": "torch linear_cross_entropy",
    "cce": "Cut Cross-Entropy",
}

AnyResult = LossResult | LinearResult
Show = Callable[[AnyResult, LossEntry], str]

_CASE = tables.attributes({"loss": "case.loss", "rows x classes": "case.size", "dtype": "case.dtype"})
_FLOOR: Column[Any] = ("floor", lambda item: duration(item.floor))


def overview(results: BenchResults) -> Table:
    """One line per case: multiples of the floor (or time per call), the best rival, memory in logits."""
    items, names = results.of(LossResult), results.names(LossResult)
    weighed = [name for name in names if any(_weight(item, name) is not None for item in items)]
    columns = [
        *_CASE,
        _FLOOR,
        *_each(names, brief),
        ("best rival / ours", lambda item: times(item.advantage())),
    ]
    return tables.table([*columns, *_each(weighed, _memory, "memory {}")], items)


def linear_overview(results: BenchResults) -> Table:
    """One line per contestant of the linear section."""
    case = {"loss": "item.case.loss", "rows x hidden x classes": "item.case.size", "dtype": "item.case.dtype"}
    shows: dict[str, Show] = {
        "time": _median,
        "of three products": _ratio,
        "memory": lambda item, entry: memory(entry.memory),
        "memory without gradients": lambda item, entry: memory(entry.lean),
        "loss error": lambda item, entry: scientific(entry.loss_error),
        "gradient error": lambda item, entry: scientific(entry.gradient_error),
    }
    columns = [*tables.attributes(case), ("who", lambda row: title(row.entry.name))]
    columns += [(heading, lambda row, show=show: _cell(show, *row)) for heading, show in shows.items()]  # type: ignore[misc]
    return tables.table(columns, tables.pairs(results.of(LinearResult)))


def summary(item: AnyResult) -> str:
    """One case in one line, for who watches."""
    present = [entry for entry in item.entries if entry.status != "absent"]
    return (
        f"{item.case}: {'; '.join(f'{title(entry.name)} {_cell(brief, item, entry)}' for entry in present)}"
    )


def remarks(results: BenchResults) -> list[str]:
    """Who was not measured or disagrees, and why."""
    return tables.notes(results, TITLES)


def texts(results: BenchResults) -> dict[str, str]:
    """The files of text: a line per case and contestant, in seconds and bytes; and tables to read."""
    records = [_record(*row) for row in tables.pairs(results.everything())]
    parts = [*_loss_parts(results), *_linear_parts(results)]
    heading = "Losses, forward + backward, mean reduction"
    return {
        "results.csv": tables.csv_of(records, "loss"),
        "results.md": tables.document(heading, results, parts, remarks(results)),
    }


def _loss_parts(results: BenchResults) -> list[str]:
    items = results.of(LossResult)
    if not items:
        return []
    rates = sorted({item.copy_rate for item in items})
    rate = " to ".join(f"{rate / 1e12:.2f}" for rate in dict.fromkeys((rates[0], rates[-1])))
    parts = [
        f"Copy rate: {rate} TB/s, bytes read plus bytes written.",
        "Floor: reading the logits once and writing their gradient once at the copy rate measured in the same "
        "run. Times are medians on the device, L2 flushed, contestants in turns, as multiples of the floor "
        f"(where that is under {duration(LAUNCH_BOUND)}, as they are); the largest spread between two "
        f"series of ours was {_largest_spread(items)}. `*`: measured, but its numbers differ; see the notes.",
        _grid(results, _both, _FLOOR),
        "## Time per call, back to back\n\nWhat a loop pays when launching kernels takes longer than running "
        "them: many calls, one wait at the end.",
        _grid(results, lambda item, entry: duration(entry.call)),
    ]
    if any(entry.memory is not None for _, entry in tables.pairs(items)):
        parts += [
            "## Peak extra memory, in units of the logits\n\nThe gradient itself is 1.0; overwriting the logits "
            "needs none.",
            _grid(results, _memory, ("logits", lambda item: memory(item.logits_bytes))),
        ]
    return [
        *parts,
        "## Errors against float64: loss / gradient\n\nOf the loss relative to it; of the gradient, on a few "
        "rows, relative to the largest of its row.",
        _grid(
            results, lambda _, entry: f"{scientific(entry.loss_error)} / {scientific(entry.gradient_error)}"
        ),
    ]


def _linear_parts(results: BenchResults) -> list[str]:
    if not results.of(LinearResult):
        return []
    return [
        "## Projection and loss in one\n\nTimes as multiples of the three matrix products nobody can do without, "
        "timed beside. Memory beyond inputs; without gradients: less what these take, which is there at the end "
        "in any case.",
        tables.pipes(linear_overview(results)),
    ]


def _record(item: AnyResult, entry: LossEntry) -> dict[str, Any]:
    return {
        "section": "loss" if isinstance(item, LossResult) else "linear",
        "loss": item.case.loss,
        "rows": item.case.rows,
        "hidden": getattr(item.case, "hidden", None),
        "classes": item.case.classes,
        "dtype": item.case.dtype,
        "contestant": entry.name,
        "status": entry.status,
        "reason": entry.reason,
        "floor": item.floor,
        **tables.timing_fields(entry.time),
        "times_floor": entry.over(item.floor),
        "median_again": entry.again and entry.again.median,
        "call": entry.call,
        "memory": entry.memory,
        "memory_in_logits": None if entry.memory is None else entry.memory / item.logits_bytes,
        "memory_without_gradients": entry.lean,
        "loss_error": entry.loss_error,
        "gradient_error": entry.gradient_error,
        "session": item.session,
    }


def title(name: str) -> str:
    """A contestant as a person calls it."""
    return TITLES.get(name, name)


def _cell(show: Show, item: AnyResult, entry: LossEntry | None) -> str:
    return tables.shown(entry, lambda found: show(item, found))


def _each(names: Iterable[str], show: Show, heading: str = "{}") -> list[Column[Any]]:
    return tables.each(names, TITLES, heading, lambda item, name: _cell(show, item, item.entry(name)))


def _grid(results: BenchResults, show: Show, *beside: Column[Any]) -> str:
    columns = [*_CASE, *beside, *_each(results.names(LossResult), show)]
    return tables.pipes(tables.table(columns, results.of(LossResult)))


def brief(item: AnyResult, entry: LossEntry) -> str:
    """Multiples of the floor, or the time per call where launches dominate."""
    return duration(entry.call) if item.by_call else _ratio(item, entry)


def _ratio(item: AnyResult, entry: LossEntry) -> str:
    return times(entry.over(item.floor))


def _median(item: AnyResult, entry: LossEntry) -> str:
    return duration(entry.seconds())


def _both(item: AnyResult, entry: LossEntry) -> str:
    median = _median(item, entry)
    return median if item.by_call else f"{_ratio(item, entry)} ({median})"


def _weight(item: AnyResult, name: str) -> int | None:
    entry = item.entry(name)
    return None if entry is None else entry.memory


def _memory(item: AnyResult, entry: LossEntry) -> str:
    # An allocation is 512 bytes at least: for small logits the ratio would say nothing.
    return NOTHING if entry.memory is None or item.by_call else f"{entry.memory / item.logits_bytes:.2f}"


def _largest_spread(items: Iterable[LossResult]) -> str:
    spreads = [entry.spread for item in items if not item.by_call for entry in item.entries]
    known = [spread for spread in spreads if spread is not None]
    return f"{100 * max(known):.1f} %" if known else "not measured"
