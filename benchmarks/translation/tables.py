"""Results of translation as tables: for a terminal, as Markdown, as CSV. No torch here."""

from __future__ import annotations

from typing import Any

from benchmarks import tables
from benchmarks.results import BenchResults
from benchmarks.tables import Column, Table
from benchmarks.text import NOTHING, duration, memory, rate, times
from benchmarks.translation.results import (
    COMPILED,
    EAGER,
    LABO,
    OURS,
    SMOOTHING,
    DecodingResult,
    StepResult,
    TrainingResult,
)
from benchmarks.translation.sizes import SIZES

TITLES = {OURS: "ours", EAGER: "nn.Transformer", COMPILED: "nn.Transformer compiled"}


def title(name: str) -> str:
    """A contestant as a person calls it."""
    return TITLES.get(name, name)


def rivals_of(results: BenchResults) -> list[str]:
    """Everybody but us in training, in the order of appearance."""
    return [name for name in results.names(TrainingResult) if name != OURS]


def overview(results: BenchResults) -> Table:
    """One line per pack: tokens per second, how many times the rivals', what is asked, set-up and memory."""
    items, rivals = results.of(TrainingResult), rivals_of(results)
    everybody = [OURS, *rivals]
    columns: list[Column[Any]] = [
        ("model", lambda item: _model(item.case.size)),
        *tables.attributes({name: f"case.{name}" for name in ("runs", "tokens", "precision", "data")}),
        *tables.each(everybody, TITLES, "{} tokens/s", _rate),
        *tables.each(rivals, TITLES, "ours / {}", lambda item, name: times(item.ratio(name))),
        ("asked", lambda item: _asked(item.asked, item.ratio(), at_least=True)),
        ("set-up", lambda item: duration(_of_ours(item, "setup"))),
    ]
    if any(_of_ours(item, "memory") for item in items):
        columns.append(("memory", lambda item: memory(_of_ours(item, "memory"))))
    return tables.table(columns, items)


def step_overview(results: BenchResults) -> Table:
    """One line per size: both steps, and what is asked."""
    columns: list[Column[Any]] = [
        ("model", lambda item: _model(item.case.size)),
        *tables.attributes({name: f"case.{name}" for name in ("tokens", "precision", "data")}),
        *tables.each((SMOOTHING, LABO), {}, "{}", _time),
        ("ratio", lambda item: times(item.ratio)),
        ("asked", lambda item: _asked(item.asked, item.ratio, at_least=False)),
    ]
    return tables.table(columns, results.of(StepResult))


def decoding_overview(results: BenchResults) -> Table:
    """One line per size: sentences per second, how many times the fastest rival's, what is asked."""
    items = results.of(DecodingResult)
    everybody = results.names(DecodingResult)
    columns: list[Column[Any]] = [
        ("model", lambda item: _model(item.case.size)),
        *tables.attributes({n: f"case.{n}" for n in ("beam", "length", "sentences", "precision", "data")}),
        *tables.each(everybody, {}, "{} sentences/s", _sentences),
        ("ours / fastest", lambda item: times(item.ratio)),
        ("asked", lambda item: _asked(item.asked, item.ratio, at_least=True)),
    ]
    return tables.table(columns, items)


def summary(item: Any) -> str:
    """One case in one line, for who watches."""
    if isinstance(item, StepResult):
        words = [f"{entry.name} {_time(item, entry.name)}" for entry in item.entries]
        ratio, at_least = item.ratio, False
    elif isinstance(item, DecodingResult):
        words = [f"{entry.name} {_sentences(item, entry.name)}" for entry in item.entries]
        ratio, at_least = item.ratio, True
    else:
        words = [f"{title(entry.name)} {_rate(item, entry.name)}" for entry in item.entries]
        ratio, at_least = item.ratio(), True
    words += [f"{times(ratio)} (asked: {_asked(item.asked, ratio, at_least)})"] if ratio else []
    return f"{item.case}: {'; '.join(words)}"


def remarks(results: BenchResults) -> list[str]:
    """What is asked and how it came out; who was not measured, and why."""
    packed = [item for item in results.of(TrainingResult) if item.case.runs > 1 and item.asked]
    best = max(packed, key=lambda item: item.ratio() or 0.0, default=None)
    chosen = [item for item in results.of(TrainingResult) if item.case.runs == 1 and item.asked]
    lines = [
        f"{item.case}: {times(item.ratio())} the eager loop (asked: {_asked(item.asked, item.ratio(), True)})"
        for item in (*chosen, *([best] if best else []))
    ]
    compared: list[tuple[Any, str, bool]] = [
        (found, "that of label smoothing", False) for found in results.of(StepResult)
    ]
    compared += [(found, "the fastest of Hugging Face", True) for found in results.of(DecodingResult)]
    for found, words, at_least in compared:
        met = _asked(found.asked, found.ratio, at_least)
        lines.append(f"{found.case}: {times(found.ratio)} {words} (asked: {met})")
    return [*lines, *tables.notes(results, TITLES)]


def texts(results: BenchResults) -> dict[str, str]:
    """The files of text: a line per case and contestant, in seconds and bytes; tables to read."""
    records = [_record(*row) for row in tables.pairs(results.everything())]
    heading = "Translation: training and beam search"
    return {
        "results.csv": tables.csv_of(records, "case"),
        "results.md": tables.document(heading, results, _parts(results), remarks(results)),
    }


def _parts(results: BenchResults) -> list[str]:
    parts = []
    if items := results.of(TrainingResult):
        parts += [
            "Target tokens per second without padding, all runs together. Rivals took turns before and after ours, and "
            "ratios are against the mean of the two; between them they differed by at most "
            f"{_largest_spread(results)}. Of target positions {100 * max(item.padding for item in items):.1f} % are "
            "padding, for everybody. Set-up and memory: of the runs that smaller packs did not have.",
            tables.pipes(overview(results)),
        ]
    if results.of(StepResult):
        parts += ["## LABO's step\n\nMedians over epochs in turns.", tables.pipes(step_overview(results))]
    if results.of(DecodingResult):
        parts += [
            "## Beam search\n\nFrom lists of tokens to lists of tokens. The end of a sentence is ruled out on both "
            "sides, so that every hypothesis has as many tokens. Hugging Face is given batches of several sizes.",
            tables.pipes(decoding_overview(results)),
        ]
    return parts


def _record(item: Any, entry: Any) -> dict[str, Any]:
    time = getattr(entry, "time", None)
    training = isinstance(item, TrainingResult)
    return {
        "case": str(item.case),
        "kind": item.SECTION if not training else "training",
        "contestant": entry.name,
        "status": entry.status,
        "reason": entry.reason,
        "tokens_per_second": entry.rate if training else None,
        "spread": entry.spread if training else None,
        **{f"seconds_{name}": value for name, value in tables.timing_fields(time).items()},
        "sentences_per_second": item.rate(entry.name) if isinstance(item, DecodingResult) else None,
        "asked": item.asked,
        "setup": getattr(entry, "setup", None),
        "memory": getattr(entry, "memory", None),
        "session": item.session,
    }


def _asked(bound: float | None, ratio: float | None, at_least: bool) -> str:
    """What is asked, and whether it is there.

    >>> _asked(4.0, 4.2, True), _asked(1.05, 1.1, False), _asked(3.0, None, True)
    ('at least 4x: met', 'at most 1.05x: MISSED', 'at least 3x')
    """
    if bound is None:
        return NOTHING
    words = f"{'at least' if at_least else 'at most'} {bound:g}x"
    if ratio is None:
        return words
    return f"{words}: {'met' if (ratio >= bound if at_least else ratio <= bound) else 'MISSED'}"


def _model(size: str) -> str:
    return f"{size} ({SIZES[size].title})" if size in SIZES else size


def _rate(item: TrainingResult, name: str) -> str:
    return tables.shown(item.entry(name), lambda entry: rate(entry.rate))


def _time(item: StepResult, name: str) -> str:
    return tables.shown(item.entry(name), lambda entry: duration(entry.time.median if entry.time else None))


def _sentences(item: DecodingResult, name: str) -> str:
    return tables.shown(item.entry(name), lambda entry: rate(item.rate(entry.name)))


def _of_ours(item: TrainingResult, what: str) -> Any:
    ours = item.entry(OURS)
    return None if ours is None else getattr(ours, what)


def _largest_spread(results: BenchResults) -> str:
    spreads = [
        entry.spread for _, entry in tables.pairs(results.of(TrainingResult)) if entry.spread is not None
    ]
    return f"{100 * max(spreads):.1f} %" if spreads else "an unknown amount"
