"""The quickstart's figures: the numbers they show, and what is said about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.calibration import Reliability, reliability
from softtargets.geometry.drawing import common_limits
from softtargets.report import Curve, Figure, Line, Panel, Widget, lines
from softtargets.report.drawing import BLUE, GREEN, RED
from softtargets.studies.quickstart import drawing
from softtargets.studies.quickstart.grid import (
    ALPHAS,
    PLANE,
    TEACHER_ALPHAS,
    TEMPERATURES,
    plane_points,
    plane_templates,
)
from softtargets.studies.results import Results, Row, matching, over

PLANE_ALPHA = 0.1
_KINDS: dict[float, tuple[str, str, Line]] = dict(
    zip(TEACHER_ALPHAS, (("hard targets", RED, "dashed"), ("smoothing 0.1", BLUE, "solid")), strict=True)
)
Clouds = Mapping[tuple[float, str], tuple[Tensor, Tensor]]


def sweep(results: Results) -> Figure:
    """Accuracy and calibration error over alpha."""
    rows = results.where(role="model").rows(over(alpha=ALPHAS), "accuracy", "ece", "ece_scaled")
    return lines(
        "sweep",
        "Accuracy and calibration against the strength of smoothing.",
        _sweep_panels(rows),
        rows,
        "Points are means over seeds, bars one standard deviation. ECE has 15 bins; the temperature is fitted "
        "on the validation digits, never on the test digits.",
        "Two line charts over alpha: test accuracy, and expected calibration error before and after scaling.",
    )


def reliability_diagram(results: Results, tuned: float) -> Figure:
    """Müller et al., figure 2, on digits: hard targets, the same with a temperature, two strengths of smoothing."""
    hard = _pooled(results, alpha=0.0)
    shown = {
        "hard targets": (hard["raw"], hard["labels"]),
        "hard targets, temperature-scaled": (hard["scaled"], hard["labels"]),
    }
    for alpha in sorted({tuned, PLANE_ALPHA}):
        soft = _pooled(results, alpha=alpha)
        shown[f"label smoothing {alpha:g}"] = (soft["raw"], soft["labels"])
    curves = {name: reliability(logits.softmax(-1), labels) for name, (logits, labels) in shown.items()}
    nll = {name: float(F.cross_entropy(logits, labels)) for name, (logits, labels) in shown.items()}
    rows = (
        {"curve": name, "bin_low": one.low, "count": one.count}
        | {"confidence": one.confidence, "accuracy": one.accuracy}
        for name, curve in curves.items()
        for one in curve.table()
        if one.count > 0
    )
    return Figure.of(
        "reliability",
        "Does confidence mean what it says?",
        lambda: drawing.draw_reliabilities(curves),
        rows,
        "Below the diagonal a model is overconfident, above it underconfident. Predictions of all seeds are "
        "pooled; the area of a point is the share of predictions in its bin. Bins with fewer than "
        f"{drawing.FEWEST} predictions are pale, and left out of the picture in files (they are in the CSV).",
        "Reliability diagram of several models beside a histogram of their confidences.",
        widget=Widget("reliability", _reliability_data(curves, nll)),
    )


def template_planes(results: Results) -> Figure:
    """Müller et al., figure 1, on digits: train and held-out, without and with smoothing."""
    runs = {alpha: results.first(role="model", alpha=alpha).run for alpha in (0.0, PLANE_ALPHA)}
    clouds = {
        (alpha, split): plane_points(run, run.predictions(split))
        for alpha, run in runs.items()
        for split in ("train", "test")
    }
    templates = {alpha: plane_templates(run) for alpha, run in runs.items()}
    rows = (
        {"alpha": alpha, "split": split, "label": int(label), "x": float(point[0]), "y": float(point[1])}
        for (alpha, split), (points, labels) in clouds.items()
        for point, label in zip(points, labels, strict=True)
    )
    return Figure.of(
        "planes",
        "Penultimate activations on the plane through three class templates.",
        lambda: drawing.draw_planes(clouds),
        rows,
        f"One network of each kind, seed {results.first(role='model').seed}, its training and its held-out digits. "
        "Smoothing also shrinks the activations.",
        "Four scatter plots of three digit classes: training and held out, with hard targets and with smoothing.",
        widget=Widget("plane", _plane_data(clouds, templates)),
    )


def distillation(results: Results) -> Figure:
    """Müller et al., figure 5 in small: which teacher teaches better?"""

    def row(who: str, role: str, alpha: float, temperature: float | None = None) -> Row:
        sample = results.sample("accuracy", role=role, alpha=alpha, temperature=temperature)
        return {"who": who, "alpha": alpha, "temperature": temperature, "accuracy": sample}

    rows = (
        *(row("teacher", "teacher", alpha) for alpha in TEACHER_ALPHAS),
        *(row("no teacher", "baseline", alpha) for alpha in TEACHER_ALPHAS),
        *(row("student", "student", alpha, t) for alpha in TEACHER_ALPHAS for t in TEMPERATURES),
    )
    seen = {
        role: results.first(role=role).run.provenance["examples"]["train"] for role in ("student", "teacher")
    }
    return lines(
        "distillation",
        "Two teachers and their students.",
        _distillation_panels(rows),
        rows,
        f"Students see {seen['student']} digits and only the teacher's probabilities; teachers saw "
        f"{seen['teacher']}. No teacher: the same small network trained on the true labels of the student's digits.",
        "Teacher accuracies beside student accuracies over temperature, for a hard and a smoothed teacher.",
    )


def _sweep_panels(rows: Sequence[Row]) -> list[Panel]:
    places = range(len(ALPHAS))
    ticks = [(place, f"{alpha:g}") for place, alpha in enumerate(ALPHAS)]

    def curve(key: str, colour: str, name: str, scale: float, line: Line = "solid") -> Curve:
        return Curve.of(name, colour, places, [row[key] for row in rows], scale=scale, line=line)

    accuracy = [curve("accuracy", BLUE, "test accuracy", 100)]
    errors = [
        curve("ece", RED, "ECE as trained (T = 1)", 1),
        curve("ece_scaled", GREEN, "ECE after temperature scaling", 1, "dashed"),
    ]
    name = "label smoothing alpha"
    return [
        Panel("Accuracy", name, "test accuracy, %", accuracy, ticks, digits=1),
        Panel("Calibration", name, "expected calibration error", errors, ticks, limits=(0, None)),
    ]


def _distillation_panels(rows: Sequence[Row]) -> list[Panel]:
    teachers, students = [], []
    ends = (-0.2, len(TEMPERATURES) - 0.8)
    for position, (alpha, (name, colour, line)) in enumerate(_KINDS.items()):
        teacher, alone, *taught = (row["accuracy"] for row in matching(rows, alpha=alpha))
        teachers.append(Curve.of(f"teacher, {name}", colour, [position], [teacher], scale=100, line="none"))
        students += [
            Curve.of(
                f"student of the teacher with {name}",
                colour,
                range(len(taught)),
                taught,
                scale=100,
                line=line,
            ),
            Curve.level(f"no teacher, {name}", colour, 100 * alone.mean, ends, "dotted"),
        ]
    kinds = [(position, name) for position, (name, *_) in enumerate(_KINDS.values())]
    ticks = [(place, f"{t:g}") for place, t in enumerate(TEMPERATURES)]
    heat, accuracy = "temperature of the teacher's targets", "test accuracy, %"
    return [
        Panel("The teachers", "", accuracy, teachers, kinds, xlimits=(-0.6, 1.6), digits=1),
        Panel("Their students", heat, accuracy, students, ticks, xlimits=ends, digits=1),
    ]


def _reliability_data(curves: Mapping[str, Reliability], nll: Mapping[str, float]) -> dict[str, Any]:
    """For the widget, without a temperature to turn."""
    found = []
    for (name, one), colour in zip(curves.items(), drawing.CURVES, strict=False):
        low, high = one.accuracy_interval()
        bins = {"counts": [one.counts], "confidence": [one.confidence], "accuracy": [one.accuracy]}
        errors = {"ece": [one.expected_calibration_error], "nll": [nll[name]]}
        found.append({"name": name, "colour": colour, **bins, "low": [low], "high": [high], **errors})
    shared = {"temperatures": [1.0], "start": 0, "best": None, "unit": "predictions"}
    return {"edges": next(iter(curves.values())).edges, "curves": found, **shared}


def _plane_data(clouds: Clouds, templates: Mapping[float, Tensor]) -> dict[str, Any]:
    panels = []
    for (alpha, split), (points, labels) in clouds.items():
        limits = common_limits([clouds[alpha, other][0] for other in ("train", "test")])
        panels.append(
            {
                "title": drawing.plane_title(alpha, split),
                "points": [
                    [float(x), float(y), PLANE.index(int(label)), place]
                    for place, ((x, y), label) in enumerate(zip(points, labels, strict=True))
                ],
                "templates": templates[alpha],
                "limits": limits,
                "notes": [],
            }
        )
    classes = [{"name": f"digit {label}", "colour": colour} for label, colour in drawing.CLASSES.items()]
    return {"classes": classes, "unit": "activations as they are", "panels": panels}


def _pooled(results: Results, alpha: float) -> dict[str, torch.Tensor]:
    results.first(role="model", alpha=alpha)  # says so where every seed of this strength failed
    outcomes = results.where(role="model", alpha=alpha).outcomes
    predictions = [outcome.run.predictions("test") for outcome in outcomes]
    temperatures = [outcome.measures["temperature"] for outcome in outcomes]
    return {
        "raw": torch.cat([p.logits for p in predictions]),
        "scaled": torch.cat([p.logits / t for p, t in zip(predictions, temperatures, strict=True)]),
        "labels": torch.cat([p.labels for p in predictions]),
    }
