"""The page of `softtargets calibrate` for a file of confidences."""

from __future__ import annotations

from typing import Any

from softtargets.inspection.calibrate.rejecting import AREAS, area, at_accuracy, handed_over
from softtargets.inspection.confidences import words
from softtargets.inspection.confidences.figures import rejecting_figure, reliability_figure
from softtargets.inspection.confidences.finding import ConfidenceDiagnosis
from softtargets.inspection.shared.measured import metric_rows
from softtargets.inspection.shared.reading import read_table
from softtargets.report import Page, Section, Table


def confidences_page(found: ConfidenceDiagnosis) -> Page:
    """All of a diagnosis as a page."""
    name = found.path.name
    origin = {"file": str(found.path), "used": found.source, "read as": found.reason}
    sizes = {"predictions": f"{found.examples:,}"}
    return Page(
        name=name,
        title=f"Calibration of {name}",
        lead=words.lead(found),
        sections=(
            Section.of("Confidence against accuracy", reliability_figure(found)),
            Section.of("All metrics", words.NOT_KNOWN, words.DEPENDENT, _metrics(found)),
            Section.of("What to do", words.NO_CORRECTION, words.WHAT_TO_SAVE),
            Section.of(
                "Rejecting uncertain cases",
                handed_over(found.selection),
                rejecting_figure(found),
                at_accuracy(found.selection),
            ),
            Section.of("What was read", words.READ, read_table({"": {**origin, **sizes}})),
        ),
        kind="calibrate",
        verdict=words.verdict_on(found),
    )


def summary_rows(found: ConfidenceDiagnosis) -> list[tuple[str, str]]:
    """The table for a terminal: metric, value."""
    areas = [(AREAS[name][0], area(found.selection, name)) for name in ("aurc", "excess_aurc")]
    return [*((row["metric"], row["before_shown"]) for row in _rows(found)), *areas]


def _rows(found: ConfidenceDiagnosis) -> list[dict[str, Any]]:
    return metric_rows({"before": found.calibration}, found.bins, classes=2)


def _metrics(found: ConfidenceDiagnosis) -> Table:
    return Table.of(
        "metrics",
        "All metrics",
        "metric | before_shown: as they are | meaning: what it is",
        _rows(found),
        "with 95 % intervals in brackets. Scatter makes calibration errors larger than they are: they are corrected "
        "for that, and the uncorrected number stands beneath where it differs.",
    )
