"""The figure of the study, and the pilot beside it."""

from __future__ import annotations

from softtargets.report import Curve, Figure, Marker, Panel, lines
from softtargets.report.drawing import BLUE, ORANGE
from softtargets.studies.distilling import LOOKS, against_smoothness, curve_of
from softtargets.studies.muller_figure_5.claims import MEASURE
from softtargets.studies.muller_figure_5.grid import VIEWS, Protocol
from softtargets.studies.results import Results, Row

_ACCURACY = "accuracy on held-out images, %"
NAMES = {"student": "student's images", "teacher": "its own views", "stored": "stored logits"}

# Of the pilot's teachers: colour, marker, and how far beside the tick.
_PILOT: tuple[tuple[str, Marker, float], ...] = ((BLUE, "circle", -0.08), (ORANGE, "square", 0.08))


def distillation(results: Results, protocol: Protocol) -> Figure:
    """Müller et al., figure 5."""
    scenarios = protocol.scenarios
    rows: list[Row] = [
        {
            "curve": curve.name,
            "what": curve.title,
            "alpha": labels["alpha"],
            "temperature": labels.get("temperature"),
            **{key: results.sample(key, **labels) for key in ("gamma", MEASURE, "accuracy")},
        }
        for curve in scenarios
        for labels in curve.points
    ]
    return lines(
        "distillation",
        "Teachers, students alone, and students of hard and of smoothed teachers.",
        (against_smoothness(results, scenarios, MEASURE, _ACCURACY), _against_temperature(results, protocol)),
        rows,
        "Points are means over seeds, bars one standard deviation, faint dots the seeds. Gamma is the mass that the "
        "targets put on wrong classes, counted as a strength of label smoothing: alpha itself for M1 and M2, for M3 "
        "and M4 measured on the teacher's predictions for the training images. M3 at T = 1 and M4 at alpha 0 are the "
        "same students.",
        "Accuracy of teachers, of students alone and of students of hard and of smoothed teachers over the smoothness "
        "index; beside it the students of the hard teacher over temperature.",
    )


def _against_temperature(results: Results, protocol: Protocol) -> Panel:
    _, alone, of_hard, _ = protocol.scenarios
    last = len(protocol.temperatures) - 1
    taught = curve_of(of_hard, range(last + 1), of_hard.samples(results, MEASURE))
    without = results.sample(MEASURE, **alone.points[0])
    level = Curve.level(
        "M2 at alpha 0", LOOKS[alone.name][0], 100 * without.mean, (-0.2, last + 0.2), "dotted"
    )
    ticks = [(place, f"{temperature:g}") for place, temperature in enumerate(protocol.temperatures)]
    return Panel(
        "M3 against temperature",
        "temperature of the hard teacher",
        _ACCURACY,
        (taught, level),
        ticks,
        xlimits=(-0.2, last + 0.2),
        digits=2,
    )


def pilot(results: Results, protocol: Protocol) -> Figure:
    """What the student learns when its teacher is shown its images, views of its own, or none of both."""
    rows: list[Row] = [
        {
            "alpha": alpha,
            "temperature": temperature,
            "view": view,
            MEASURE: results.sample(MEASURE, role="pilot", alpha=alpha, temperature=temperature, view=view),
        }
        for alpha, temperature in protocol.pilot
        for view in VIEWS
    ]
    curves = [
        Curve.of(
            f"teacher with alpha {alpha:g}, T = {temperature:g}",
            colour,
            [place + offset for place in range(len(VIEWS))],
            [row[MEASURE] for row in rows if (row["alpha"], row["temperature"]) == (alpha, temperature)],
            scale=100,
            line="none",
            marker=marker,
        )
        for (alpha, temperature), (colour, marker, offset) in zip(protocol.pilot, _PILOT, strict=True)
    ]
    ticks = [(place, NAMES[view]) for place, view in enumerate(VIEWS)]
    panel = Panel(
        "Students by view",
        "what the teacher is asked about",
        _ACCURACY,
        curves,
        ticks,
        xlimits=(-0.4, 2.4),
        digits=2,
    )
    return lines(
        "pilot",
        "The pilot: students by what their teachers are asked about.",
        (panel,),
        rows,
        "Points are means over two seeds, bars one standard deviation, dots the seeds. These seeds judge nothing else.",
        "Accuracy of students whose teachers see the student's images, views of their own, or the images once.",
    )
