"""The quickstart's figures: the numbers they show, and what is said about them."""

from __future__ import annotations

import torch

from softtargets.calibration import reliability
from softtargets.report import Figure
from softtargets.studies.quickstart import drawing
from softtargets.studies.quickstart.grid import ALPHAS, TEACHER_ALPHAS, TEMPERATURES, plane_points
from softtargets.studies.results import Results, Row, over

PLANE_ALPHA = 0.1


def sweep(results: Results) -> Figure:
    """Accuracy and calibration error over alpha."""
    rows = results.where(role="net").rows(over(alpha=ALPHAS), "accuracy", "ece", "ece_scaled")
    return Figure.of(
        "sweep",
        "Accuracy and calibration against the strength of smoothing.",
        lambda: drawing.draw_sweep(rows),
        rows,
        "Points are means over seeds, bars one standard deviation. ECE has 15 bins; the temperature is fitted "
        "to the validation digits, never to the test digits.",
        "Two line charts over alpha: test accuracy, and expected calibration error before and after scaling.",
    )


def reliability_diagram(results: Results, tuned: float) -> Figure:
    """Müller et al., figure 2, on digits: hard targets, the same with a temperature, two strengths of smoothing."""
    hard = _pooled(results, alpha=0.0)
    curves = {
        "hard targets": reliability(hard["raw"].softmax(-1), hard["labels"]),
        "hard targets, temperature-scaled": reliability(hard["scaled"].softmax(-1), hard["labels"]),
    }
    for alpha in sorted({tuned, PLANE_ALPHA}):
        soft = _pooled(results, alpha=alpha)
        curves[f"label smoothing {alpha:g}"] = reliability(soft["raw"].softmax(-1), soft["labels"])
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
        "pooled. The area of a point is the share of predictions in its bin, and bins with fewer than "
        f"{drawing.FEWEST} predictions are left out of the diagram (they are in the CSV).",
        "Reliability diagram of several models beside a histogram of their confidences.",
    )


def template_planes(results: Results) -> Figure:
    """Müller et al., figure 1, on digits: train and held-out, without and with smoothing."""
    runs = {alpha: results.first(role="net", alpha=alpha).run for alpha in (0.0, PLANE_ALPHA)}
    clouds = {
        (alpha, split): plane_points(run, run.predictions(split))
        for alpha, run in runs.items()
        for split in ("train", "test")
    }
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
        f"One model of each kind, seed {results.first(role='net').seed}. The two panels of a model share "
        "their scale; the two models do not, since smoothing also shrinks the activations.",
        "Four scatter plots of three digit classes: training and held out, with hard targets and with smoothing.",
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
    return Figure.of(
        "distillation",
        "Two teachers and their students.",
        lambda: drawing.draw_distillation(rows),
        rows,
        f"Students see {seen['student']} digits and only the teacher's probabilities; teachers saw "
        f"{seen['teacher']}. Dotted: the same small model trained on the true labels of the student's digits.",
        "Teacher accuracies beside student accuracies over temperature, for a hard and a smoothed teacher.",
    )


def _pooled(results: Results, alpha: float) -> dict[str, torch.Tensor]:
    results.first(role="net", alpha=alpha)  # says so where every seed of this strength failed
    outcomes = results.where(role="net", alpha=alpha).outcomes
    predictions = [outcome.run.predictions("test") for outcome in outcomes]
    temperatures = [outcome.measures["temperature"] for outcome in outcomes]
    return {
        "raw": torch.cat([p.logits for p in predictions]),
        "scaled": torch.cat([p.logits / t for p, t in zip(predictions, temperatures, strict=True)]),
        "labels": torch.cat([p.labels for p in predictions]),
    }
