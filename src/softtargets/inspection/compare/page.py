"""The page of `softtargets compare`: two models on the same examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from softtargets.calibration import Calibration
from softtargets.inspection.compare import words
from softtargets.inspection.compare.figures import overlaid, rejecting_figure
from softtargets.inspection.compare.finding import Comparison
from softtargets.inspection.compare.paired import METRICS, Differences
from softtargets.inspection.shared.measured import BY_KEY, metric_rows
from softtargets.inspection.shared.numbers import Estimate, count, estimated, percent, points
from softtargets.inspection.shared.reading import read_table
from softtargets.inspection.shared.reliability_figures import sweep_figure
from softtargets.inspection.shared.two_passes import FOLDS
from softtargets.report import Page, Section, Table


def compare_page(found: Comparison) -> Page:
    """All of a comparison as a page."""
    a, b = words.short_names(found.a.understood.path, found.b.understood.path)
    files = {a: found.a, b: found.b}
    origins = {a: found.a.understood.origin(), b: found.b.understood.origin()}
    return Page(
        name=f"{found.a.understood.path.name} {found.b.understood.path.name}",
        title=f"{a} against {b}",
        lead=(
            f"Two models on the same {count(found.overlap.examples, 'example')} of "
            f"{count(found.a.understood.classes, 'class')}: {a} and {b}. Intervals, in brackets, are 95 % "
            "intervals. One model is called better only where the interval of the difference excludes 0."
        ),
        sections=(
            Section.of("Confidence against accuracy", overlaid(files), sweep_figure(files)),
            Section.of("Differences", *words.difference_words(found), _differences(found)),
            Section.of("Rejecting uncertain cases", *words.rejecting_words(found), rejecting_figure(files)),
            Section.of("Mistakes they share", words.mistakes_words(found), _mistakes(found)),
            Section.of("Each by itself", *_metrics(found)),
            Section.of("What was read", read_table(origins)),
        ),
        warnings=words.zero_warnings(found),
        kind="compare",
        verdict=words.verdict_on_two(found),
    )


def _differences(found: Comparison) -> Table:
    names = words.names_of(found)
    table = Table.of(
        "differences",
        "Differences.",
        "predictions | metric | a_shown | b_shown | shown: difference | better",
        _difference_rows(found),
        f"The difference is {names['B']} minus {names['A']}, with its 95 % interval in brackets. A difference above "
        f"0 favours {names['B']} for accuracy, and {names['A']} for all other metrics.",
    )
    return _named(table, names)


def _named(table: Table, names: Mapping[str, str]) -> Table:
    """With the models' names over their columns; a name may hold what separates columns."""
    headings = {"a_shown": names["A"], "b_shown": names["B"]}
    columns = (replace(one, heading=headings.get(one.key, one.heading)) for one in table.columns)
    return replace(table, columns=tuple(columns))


def _difference_rows(found: Comparison) -> list[dict[str, Any]]:
    names = words.names_of(found)
    rows = _rows_of(names, "as they are", found.differences, found.a.before, found.b.before)
    rows += _aurc_rows(found)
    if found.scaled and found.a.after and found.b.after:
        # Scaling does not change the accuracy.
        rows += _rows_of(names, "scaled", found.scaled, found.a.after, found.b.after)[1:]
    return rows


def _rows_of(
    names: Mapping[str, str], title: str, differences: Differences, a: Calibration, b: Calibration
) -> list[dict[str, Any]]:
    rows = []
    for name, key in METRICS.items():
        metric, difference = BY_KEY[key], getattr(differences, name)
        values = {"a": float(getattr(a, key)), "b": float(getattr(b, key))}
        rows.append(
            {
                "predictions": title,
                "metric": metric.name,
                **values,
                **difference.cells("difference"),
                **{f"{side}_shown": metric.show(value) for side, value in values.items()},
                "shown": points(difference, metric.digits)
                if metric.share
                else estimated(difference, metric.digits, share=False, sign=True),
                "better": words.shown_winner(
                    names, words.winner(difference, lower_is_better=key != "accuracy")
                ),
            }
        )
    return rows


def _aurc_rows(found: Comparison) -> list[dict[str, Any]]:
    """The AURC as they are and, where it helps one of them, with normalised logits."""
    names = words.names_of(found)
    values = {"a": found.a.selection.aurc, "b": found.b.selection.aurc}
    rows = [{"predictions": "as they are", "metric": "AURC", **values, **_area(names, found.aurc)}]
    rows[0] |= {f"{side}_shown": percent(value, 3) for side, value in values.items()}
    if found.repaired is not None:
        shown = {f"{side}_shown": "–" for side in values}
        rows.append(
            {"predictions": "normalised logits", "metric": "AURC", **shown, **_area(names, found.repaired)}
        )
    return rows


def _area(names: dict[str, str], difference: Estimate) -> dict[str, Any]:
    return {
        **difference.cells("difference"),
        "shown": points(difference, 3),
        "better": words.shown_winner(names, words.winner(difference)),
    }


def _mistakes(found: Comparison) -> Table:
    o, names = found.overlap, words.names_of(found)
    cases = {
        "both right": o.both_right,
        f"only {names['A']} right": o.only_second_wrong,
        f"only {names['B']} right": o.only_first_wrong,
        "both wrong": o.both_wrong,
        "both wrong, with the same class": o.same_mistake,
    }
    rows = [{"case": case, "examples": value, "share": value / o.examples} for case, value in cases.items()]
    return Table.of("mistakes", "Who is right where.", "case | examples | share .2%", rows)


def _metrics(found: Comparison) -> tuple[Table, ...]:
    tables = {("metrics", "As they are."): {"a": found.a.before, "b": found.b.before}}
    if found.a.after and found.b.after:
        tables["metrics_scaled", f"Scaled ({FOLDS}-fold)."] = {"a": found.a.after, "b": found.b.after}
    sides = {"a": found.a.nll_with_floor, "b": found.b.nll_with_floor}
    floored = {side: one for side, one in sides.items() if one is not None}
    columns, names = "metric | a_shown | b_shown | meaning: what it is", words.names_of(found)
    return tuple(
        _named(
            Table.of(
                *named,
                columns,
                metric_rows(
                    both, found.bins, found.a.understood.classes, floored if named[0] == "metrics" else {}
                ),
                "95 % intervals in brackets. Calibration errors are corrected for what scatter adds to them; the "
                "uncorrected number stands beneath where it differs.",
            ),
            names,
        )
        for named, both in tables.items()
    )


def difference_lines(found: Comparison) -> list[tuple[str, ...]]:
    """The table for a terminal."""
    return [
        (
            row["metric"] + (" (scaled)" if row["predictions"] == "scaled" else ""),
            *(row[key] for key in ("a_shown", "b_shown", "shown", "better")),
        )
        for row in _difference_rows(found)
    ]
