"""Reliability diagrams of the calibrate page, before and after scaling."""

from __future__ import annotations

from collections.abc import Mapping

from softtargets.calibration import Reliability
from softtargets.calibration.drawing import draw_counts, draw_diagram
from softtargets.inspection.calibrate.finding import Diagnosis
from softtargets.inspection.shared.numbers import LEVEL
from softtargets.inspection.shared.reliability_figures import reliability_figure
from softtargets.report import Figure
from softtargets.report.drawing import BLUE, Drawing, canvas


def before_and_after(found: Diagnosis) -> Figure:
    """Reliability diagrams of one file."""
    shown = {"as they are": found.before.reliability}
    if found.after and found.best is not None:
        shown["scaled"] = found.after.reliability
    return reliability_figure(
        {"predictions": found},
        shown,
        lambda: _draw(shown),
        "How often predictions of a given confidence are right. On the dashed line confidence means what it says; "
        "thin lines are 95 % intervals of the accuracy. Move the temperature to see what scaling does. The best "
        "temperature was fitted to these very examples: quote the held-out numbers of the table.",
        "Accuracy over confidence before and after scaling, with a histogram of confidences beneath.",
    )


def _draw(shown: Mapping[str, Reliability]) -> Drawing:
    figure = canvas(4.4 * len(shown), 5.4)
    axes = figure.subplots(2, len(shown), sharex=True, squeeze=False, gridspec_kw={"height_ratios": [3, 1]})
    for column, (name, curve) in enumerate(shown.items()):
        above, beneath = axes[:, column]
        draw_diagram(above, curve, BLUE, level=LEVEL)
        draw_counts(beneath, curve, BLUE)
        above.set(title=name, xlabel="")
        if column:
            above.set_ylabel("")
            beneath.set_ylabel("")
            beneath.get_legend().remove()
    return figure
