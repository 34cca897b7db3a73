"""Pictures of a translation model: confidence against accuracy of tokens, and what temperature does."""

from __future__ import annotations

from softtargets.calibration.drawing import draw_counts, draw_diagram
from softtargets.inspection.shared.numbers import LEVEL
from softtargets.inspection.translate.finding import Assessment
from softtargets.report import Curve, Figure, Panel, lines
from softtargets.report.drawing import BLUE, GREEN, RED, Drawing, canvas


def reliability_figure(found: Assessment) -> Figure:
    """Accuracy over confidence of next-token predictions, with a histogram of confidences beneath."""
    return Figure.of(
        "reliability",
        "Reliability of tokens.",
        lambda: _draw(found),
        [vars(one) for one in found.calibration.reliability.table(LEVEL)],
        "How often predicted tokens of a given confidence are right. On the dashed line confidence means what it says; "
        "thin lines are 95 % intervals of the accuracy.",
        "Accuracy over confidence of predicted tokens, with a histogram of confidences beneath.",
        table="reliability_bins",
    )


def temperature_figure(found: Assessment) -> Figure:
    """BLEU, NLL and ECE over temperature."""
    assert found.sweep is not None
    every = list(found.sweep.temperatures)
    decoded = list(found.bleu_at)
    ends = (min(every), max(every))
    panels = [
        Panel(
            "BLEU",
            "temperature",
            "BLEU",
            [Curve("BLEU", BLUE, decoded, [found.bleu_at[t] for t in decoded], marker="circle")],
            xlimits=ends,
            digits=2,
        ),
        Panel(
            "NLL",
            "temperature",
            "nats per token",
            [Curve("NLL", GREEN, every, list(found.sweep.nll), marker="triangle")],
            xlimits=ends,
        ),
        Panel(
            "ECE",
            "temperature",
            "ECE in %",
            [Curve("ECE", RED, every, [100 * one for one in found.sweep.ece], marker="square")],
            limits=(0, None),
            xlimits=ends,
            digits=2,
        ),
    ]
    return lines(
        "temperatures",
        "BLEU, likelihood and calibration over temperature.",
        panels,
        found.rows(),
        "Logits are divided by the temperature; 1 changes nothing. BLEU is measured with beam search at the "
        "requested temperatures, NLL and ECE on tokens with correct prefixes.",
        "Three panels over temperature: BLEU, negative log-likelihood and expected calibration error.",
    )


def _draw(found: Assessment) -> Drawing:
    figure = canvas(7.4, 5.2)
    above, beneath = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
    draw_diagram(above, found.calibration.reliability, BLUE, level=LEVEL)
    draw_counts(beneath, found.calibration.reliability, BLUE)
    above.set(xlabel="", ylabel="share of predicted tokens that are right")
    return figure
