"""The page of `softtargets compare`: two models on the same examples, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from softtargets.calibration import Calibration
from softtargets.inspection.calibrate_figures import overlaid, sweep_figure
from softtargets.inspection.comparing import Comparison, Side
from softtargets.inspection.estimates import Estimate
from softtargets.inspection.looks import FOLDS
from softtargets.inspection.metric_rows import metric_rows
from softtargets.inspection.paired import Differences
from softtargets.inspection.words import count, estimated, number, percent, temperature
from softtargets.report import Column, Page, Section, Table, Verdict
from softtargets.report.drawing import BLUE, ORANGE


def compare_page(found: Comparison, command: str, provenance: Mapping[str, Any]) -> Page:
    """All of a comparison as a page."""
    a, b = names(found)
    return Page(
        name=f"{found.a.understood.path.name} {found.b.understood.path.name}",
        title=f"{a} against {b}",
        lead=(
            f"A is {a}, B is {b}; {count(found.overlap.examples, 'example')}, "
            f"{count(found.a.understood.classes, 'class')}. Both "
            "were asked the same, so differences are paired. Every interval is one of 95 %, and a difference "
            "is only claimed where "
            "it excludes 0."
        ),
        sections=(
            _diagrams(found),
            _differences(found),
            _mistakes(found),
            _metrics(found),
            _what_was_read(found),
        ),
        command=command,
        provenance=provenance,
        kind="compare",
        verdict=verdict_on_two(found),
    )


def names(found: Comparison) -> tuple[str, str]:
    """What the two are called: their files, with the directory in which they differ where files have the same "
    "name."""
    a, b = found.a.understood.path, found.b.understood.path
    return short_names(a, b)


def short_names(a: Path, b: Path) -> tuple[str, str]:
    """Two files by names that differ.

    >>> short_names(Path("x/a.npz"), Path("x/b.npz")), short_names(Path("x/y/a.npz"), Path("z/y/a.npz"))
    (('a.npz', 'b.npz'), ('x … a.npz', 'z … a.npz'))
    """
    if a.name != b.name:
        return a.name, b.name
    parents = zip(reversed(a.absolute().parts[:-1]), reversed(b.absolute().parts[:-1]), strict=False)
    for one, two in parents:
        if one != two:
            return f"{one} … {a.name}", f"{two} … {b.name}"
    return f"{a.name} (A)", f"{b.name} (B)"


def verdict_on_two(found: Comparison) -> Verdict:
    """Who is better at what, only as far as intervals say so."""
    d, s = found.differences, found.scaled
    accuracy = _winner(d.accuracy, lower_is_better=False)
    likelihood = _winner(d.nll)
    calibration = _winner(d.smooth_ece)
    sentences = [
        _claim(accuracy, "is more accurate", f"accuracy B − A = {estimated(d.accuracy, 2, sign=True)}"),
        _claim(calibration, "is better calibrated", _smooth(d)),
        *([_after_scaling(calibration, s)] if s else []),
        _claim(
            likelihood,
            "gives labels more probability",
            f"NLL B − A = {estimated(d.nll, 4, share=False, sign=True)}",
        ),
    ]
    winners = {w for w in (accuracy, calibration, likelihood) if w}
    if not winners:
        return Verdict("care", "No difference that these examples could show", tuple(sentences))
    if len(winners) == 2:
        both = (f"{one} is {_better(one, accuracy, calibration, likelihood)}" for one in ("A", "B"))
        return Verdict("care", ", ".join(both), tuple(sentences))
    (winner,) = winners
    return Verdict(
        "good", f"{winner} is {_better(winner, accuracy, calibration, likelihood)}", tuple(sentences)
    )


def _winner(difference: Estimate, lower_is_better: bool = True) -> str:
    """A or B, whichever is better for certain; empty if neither."""
    if difference.is_zero:
        return ""
    return "B" if difference.below_zero == lower_is_better else "A"


def _claim(winner: str, what: str, difference: str) -> str:
    return f"{winner} {what}: {difference}." if winner else f"Which {what} cannot be said: {difference}."


def _better(winner: str, accuracy: str, calibration: str, likelihood: str) -> str:
    words = {"more accurate": accuracy, "better calibrated": calibration, "better by likelihood": likelihood}
    *most, last = (word for word, one in words.items() if one == winner)
    return f"{', '.join(most)} and {last}" if most else last


def _smooth(found: Differences) -> str:
    return f"smooth calibration error B − A = {estimated(found.smooth_ece, 2, sign=True)}"


def _after_scaling(calibration: str, scaled: Differences) -> str:
    """Whether a temperature for each changes who is better calibrated."""
    after = _winner(scaled.smooth_ece)
    when = "after scaling each by its own temperature"
    if not after:
        told = f"That advantage is gone {when}" if calibration else f"Nor can it be said {when}"
    elif after == calibration:
        told = f"It still is {when}"
    else:
        told = f"{'But' if calibration else 'Yet'} {after} is better calibrated {when}"
    return f"{told}: {_smooth(scaled)}."


def _diagrams(found: Comparison) -> Section:
    sides = dict(zip(names(found), (found.a, found.b), strict=True))
    colours = dict(zip(sides, (BLUE, ORANGE), strict=True))
    curves = {name: side.curves for name, side in sides.items()}
    best = {name: side.best for name, side in sides.items()}
    figure = overlaid({name: side.before.reliability for name, side in sides.items()}, curves, best, colours)
    return Section("Confidence against accuracy", exhibits=(figure, sweep_figure(curves, best, colours)))


def _differences(found: Comparison) -> Section:
    a, b = found.a, found.b
    rows = [*_difference_rows("as they are", a, b, found.differences, scaled=False)]
    if found.scaled:
        rows += _difference_rows("scaled", a, b, found.scaled, scaled=True)
    columns = (
        Column("predictions", "predictions"),
        Column("metric", "metric"),
        Column("a_shown", "A"),
        Column("b_shown", "B"),
        Column("shown", "B − A"),
        Column("better", "better"),
    )
    temperatures = ", ".join(_temperature(letter, side) for letter, side in (("A", a), ("B", b)))
    paragraphs = (
        "Scaled means: each example is scaled by a temperature fitted to the other parts of the examples "
        f"({FOLDS} parts), for "
        f"each model by itself. Fitted to all examples, temperatures are {temperatures}.",
        f"Accuracies: McNemar's test (mid-p) gives {_p(found.differences.accuracy_p)}. Differences of means are "
        "paired; the interval of a difference of calibration errors is put together from those of both, with "
        "their correlation.",
    )
    table = Table(
        "differences",
        "Differences",
        columns,
        tuple(rows),
        "with 95 % intervals; below 0 is in favour of B, but for accuracy.",
    )
    return Section("Differences", paragraphs if found.scaled else paragraphs[1:], (table,))


def _temperature(letter: str, side: Side) -> str:
    if side.scaled is None or not side.scaled.is_known:
        return f"none for {letter}"
    return f"{temperature(side.scaled.fit.temperature, *side.scaled.interval)} for {letter}"


def _difference_rows(title: str, a: Side, b: Side, d: Differences, scaled: bool) -> list[dict[str, Any]]:
    listed = (
        ("accuracy", "accuracy", d.accuracy, True),
        ("NLL", "negative_log_likelihood", d.nll, False),
        ("Brier score", "brier_score", d.brier, False),
        ("ECE", "expected_calibration_error", d.ece, True),
        ("smooth ECE", "smooth_calibration_error", d.smooth_ece, True),
    )
    rows = []
    for name, key, difference, share in listed:
        if scaled and key == "accuracy":
            continue  # it is the same
        values = []
        for side in (a, b):
            calibration = side.scaled.after if scaled and side.scaled else side.before
            values.append(float(getattr(calibration, key)))
        show = percent if share else number
        digits = 2 if share else 4
        rows.append(
            {
                "predictions": title,
                "metric": name,
                "a": values[0],
                "b": values[1],
                "difference": difference.value,
                "difference_low": difference.low,
                "difference_high": difference.high,
                "a_shown": show(values[0], digits),
                "b_shown": show(values[1], digits),
                "shown": estimated(difference, digits, share=share, sign=True),
                "better": _winner(difference, lower_is_better=key != "accuracy") or "cannot be said",
            }
        )
    return rows


def _mistakes(found: Comparison) -> Section:
    o = found.overlap
    n = o.examples
    listed = (
        ("both right", o.both_right),
        ("only A right", o.only_second_wrong),
        ("only B right", o.only_first_wrong),
        ("both wrong", o.both_wrong),
        ("both wrong, with the same class", o.same_mistake),
    )
    rows = tuple({"case": case, "examples": value, "share": value / n} for case, value in listed)
    columns = (
        Column("case", "case"),
        Column("examples", "examples"),
        Column("share", "share", digits=4, percent=True),
    )
    words = [f"They predict the same class for {percent(found.agreement)} of the examples."]
    if o.examples > o.both_right:
        times = o.both_wrong / o.expected_both_wrong if o.expected_both_wrong else 0.0
        words.append(
            f"Of the examples that at least one gets wrong, both get {percent(o.jaccard)} wrong; if the "
            "mistakes of one said nothing "
            f"about the other's, it would be {percent(o.expected_jaccard)}."
            + (f" They share {number(times, 1)} times as many mistakes as by chance." if times else "")
        )
    return Section(
        "Mistakes they share", (" ".join(words),), (Table("mistakes", "Who is right where", columns, rows),)
    )


def _p(value: float) -> str:
    return f"p = {number(value, 4)}" if value >= 0.0001 else "p < 0.0001"


def _metrics(found: Comparison) -> Section:
    tables = [_metric_table("metrics", "As they are", found, found.a.before, found.b.before)]
    if found.a.scaled and found.b.scaled:
        after = found.a.scaled.after, found.b.scaled.after
        tables.append(_metric_table("metrics_scaled", f"Scaled ({FOLDS}-fold)", found, *after))
    return Section("Each by itself", exhibits=tuple(tables))


def _metric_table(name: str, title: str, found: Comparison, a: Calibration, b: Calibration) -> Table:
    columns = (
        Column("metric", "metric"),
        Column("a_shown", "A"),
        Column("b_shown", "B"),
        Column("meaning", "what it is"),
    )
    rows = metric_rows({"a": a, "b": b}, found.bins, found.a.understood.classes)
    return Table(name, title, columns, rows, "with 95 % intervals in brackets.")


def _what_was_read(found: Comparison) -> Section:
    rows = tuple(
        {"model": letter, "what": what, "value": value}
        for letter, side in (("A", found.a), ("B", found.b))
        for what, value in (
            ("file", str(side.understood.path)),
            ("used", side.understood.source),
            ("taken for", f"{side.understood.kind}: {side.understood.reason}"),
        )
    )
    columns = (Column("model", "model"), Column("what", "what"), Column("value", "understood as"))
    return Section("What was read", exhibits=(Table("read", "Input", columns, rows),))


def difference_lines(found: Comparison) -> list[tuple[str, str, str, str, str]]:
    """The table for a terminal."""
    rows = _difference_rows("as they are", found.a, found.b, found.differences, scaled=False)
    if found.scaled:
        rows += _difference_rows("scaled", found.a, found.b, found.scaled, scaled=True)
    return [
        (
            row["metric"] + (" (scaled)" if row["predictions"] == "scaled" else ""),
            row["a_shown"],
            row["b_shown"],
            row["shown"],
            row["better"],
        )
        for row in rows
    ]
