"""Results of trainings as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, stdev
from typing import Any

from benchmarks import tables
from benchmarks.results import BenchResults
from benchmarks.tables import Column, Table
from benchmarks.text import NOTHING, duration, memory, rate, times
from benchmarks.training import results as measured
from benchmarks.training.results import EAGER, OURS, AccuracyResult, TrainingEntry, TrainingResult

TITLES = {OURS: "ours", EAGER: "torch eager", f"{EAGER} bf16": "torch eager, bf16"}


def title(name: str) -> str:
    """A contestant as a person calls it."""
    return TITLES.get(name, name)


def rivals_of(results: BenchResults) -> list[str]:
    """Everybody but us, in the order of appearance."""
    return [name for name in results.names(TrainingResult) if name != OURS]


def overview(results: BenchResults) -> Table:
    """One line per case: images per second, how many times the rivals', set-up and memory."""
    items, rivals = results.of(TrainingResult), rivals_of(results)
    everybody = [OURS, *rivals]
    weighed = [name for name in everybody if any(_memory(item, name) for item in items)]
    case = {name: f"case.{name}" for name in ("net", "batch", "runs", "arrangement", "precision")}
    columns = tables.attributes(case)
    columns.insert(-1, ("engine's choice", lambda item: "yes" if item.chosen else "no"))
    columns += tables.each(everybody, TITLES, "{} images/s", _rate)
    columns += tables.each(rivals, TITLES, "ours / {}", lambda item, name: times(item.ratio(name)))
    columns += [("set-up", lambda item: duration(_setup(item)))]
    columns += tables.each(weighed, TITLES, "memory {}", lambda item, name: memory(_memory(item, name)))
    return tables.table(columns, items)


def accuracy_overview(results: BenchResults) -> Table:
    """One line per comparison: both sides in per cent, and whether the difference is noise."""
    case = {name: f"case.{name}" for name in ("data", "epochs", "seeds", "precision")}
    shows: dict[str, Callable[[AccuracyResult], str]] = {
        "ours": lambda item: _side(item.ours),
        "torch eager": lambda item: _side(item.eager),
        "difference": difference,
        "allowed": lambda item: f"{100 * item.allowed:.2f} points",
    }

    def unless_failed(show: Callable[[AccuracyResult], str]) -> Callable[[AccuracyResult], str]:
        return lambda item: NOTHING if item.status == "failed" else show(item)

    columns: list[Column[Any]] = [(heading, unless_failed(show)) for heading, show in shows.items()]
    return tables.table(
        [*tables.attributes(case), *columns, ("verdict", verdict)], results.of(AccuracyResult)
    )


def summary(item: TrainingResult | AccuracyResult) -> str:
    """One case in one line, for who watches."""
    if isinstance(item, AccuracyResult):
        if item.status == "failed":
            return f"{item.case}: {item.reason}"
        return f"{item.case}: ours {_side(item.ours)}; torch eager {_side(item.eager)}; {verdict(item)}"
    words = [f"{title(entry.name)} {_rate(item, entry.name)}" for entry in item.entries]
    words += [times(item.ratio())] if item.ratio() else []
    words += [f"set-up {duration(_setup(item))}"] if _setup(item) is not None else []
    return f"{item.case}: {'; '.join(words)}"


def remarks(results: BenchResults) -> list[str]:
    """Who was not measured, and why."""
    return tables.notes(results, TITLES)


def texts(results: BenchResults) -> dict[str, str]:
    """The files of text: a line per case and contestant, in seconds and bytes; tables to read; accuracies by seed."""
    records = [_record(*row) for row in tables.pairs(results.of(TrainingResult))]
    heading = "Training, augmentation and evaluation included"
    found = {
        "results.csv": tables.csv_of(records, "net"),
        "results.md": tables.document(heading, results, _parts(results), remarks(results)),
    }
    return found | ({"accuracy.csv": _accuracy_csv(results)} if results.of(AccuracyResult) else {})


def _parts(results: BenchResults) -> list[str]:
    parts = []
    if results.of(TrainingResult):
        parts += [
            "Images per second of training, all runs together. The eager loop took turns before and after ours, and "
            "ratios are against the mean of the two; between them it differed by at most "
            f"{_largest_spread(results)}. Set-up: making nets, compiling, recording and one epoch.",
            tables.pipes(overview(results)),
        ]
    if results.of(AccuracyResult):
        parts += [
            "## Accuracy of the same training\n\nTest accuracy in per cent at the end, mean and standard deviation "
            f"over seeds; the difference ± its standard error. Allowed: {measured.ERRORS:g} standard errors and "
            f"{100 * measured.MARGIN:g} points.",
            tables.pipes(accuracy_overview(results)),
        ]
    return parts


def _record(item: TrainingResult, entry: TrainingEntry) -> dict[str, Any]:
    return {
        **vars(item.case),
        "engine_would": item.chosen,
        "contestant": entry.name,
        "status": entry.status,
        "reason": entry.reason,
        "images_per_second": entry.rate,
        "spread": entry.spread,
        "times_slower_than_ours": None if entry.name == OURS else item.ratio(entry.name),
        "setup": entry.setup,
        "memory": entry.memory,
        "session": item.session,
    }


def _accuracy_csv(results: BenchResults) -> str:
    """One line per side and seed."""
    lines = [
        {**vars(item.case), "side": side, "seed": seed, "test_accuracy": value, "session": item.session}
        for item in results.of(AccuracyResult)
        for side, values in ((OURS, item.ours), (EAGER, item.eager))
        for seed, value in enumerate(values)
    ]
    return tables.csv_of(lines, "data")


def difference(item: AccuracyResult) -> str:
    """Our mean less theirs, with its standard error, in percentage points."""
    return f"{100 * item.difference:+.2f} ± {100 * item.error:.2f} points".replace("-", "−")


def verdict(item: AccuracyResult) -> str:
    """Whether both sides reach the same."""
    if item.status == "failed":
        return "out of memory" if item.reason == "out of memory" else "failed"
    if item.agrees is None:
        return "cannot tell"
    within = f"the allowed {100 * item.allowed:.2f} points"
    return f"within {within}" if item.agrees else f"DIFFERENT: beyond {within}"


def _side(values: Sequence[float]) -> str:
    spread = f" ± {100 * stdev(values):.2f}" if len(values) > 1 else ""
    return f"{100 * fmean(values):.2f}{spread} %" if values else NOTHING


def _rate(item: TrainingResult, name: str) -> str:
    return tables.shown(item.entry(name), lambda entry: rate(entry.rate))


def _setup(item: TrainingResult) -> float | None:
    ours = item.entry(OURS)
    return None if ours is None else ours.setup


def _memory(item: TrainingResult, name: str) -> int | None:
    entry = item.entry(name)
    return None if entry is None else entry.memory


def _largest_spread(results: BenchResults) -> str:
    spreads = [
        entry.spread for _, entry in tables.pairs(results.of(TrainingResult)) if entry.spread is not None
    ]
    return f"{100 * max(spreads):.1f} %" if spreads else "an unknown amount"
