"""The reliability diagram of confidences, and what rejecting does."""

from __future__ import annotations

from softtargets.calibration.drawing import draw_counts, draw_diagram
from softtargets.inspection.confidences.finding import ConfidenceDiagnosis
from softtargets.inspection.shared.coverage_figure import coverage_figure
from softtargets.inspection.shared.numbers import LEVEL
from softtargets.report import Figure
from softtargets.report.drawing import BLUE, Drawing, canvas


def reliability_figure(found: ConfidenceDiagnosis) -> Figure:
    """Accuracy over confidence, with a histogram of confidences beneath."""
    return Figure.of(
        "reliability",
        "Reliability.",
        lambda: _draw(found),
        [vars(one) for one in found.calibration.reliability.table(LEVEL)],
        "How often predictions of a given confidence are right. On the dashed line confidence means what it says; thin "
        "lines are 95 % intervals of the accuracy.",
        "Accuracy over confidence, with a histogram of confidences beneath.",
        table="reliability_bins",
    )


def rejecting_figure(found: ConfidenceDiagnosis) -> Figure:
    """Error rate over coverage."""
    return coverage_figure(
        {"confidence": found.selection.curve},
        (BLUE,),
        "How often the most confident predictions are wrong, over the share of predictions that are used; bands are "
        "95 % intervals. The closer to the dashed line, the better confidence tells mistakes from the rest.",
    )


def _draw(found: ConfidenceDiagnosis) -> Drawing:
    figure = canvas(4.6, 5.4)
    above, beneath = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
    draw_diagram(above, found.calibration.reliability, BLUE, level=LEVEL)
    draw_counts(beneath, found.calibration.reliability, BLUE)
    above.set_xlabel("")
    return figure
