"""The quickstart's pictures, each with the numbers it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from softtargets.calibration import reliability
from softtargets.calibration.drawing import draw_reliability
from softtargets.geometry import common_limits, draw_plane
from softtargets.report import Column, Figure, Table
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, plain
from softtargets.studies.quickstart.grid import ALPHAS, PLANE, TEACHER_ALPHAS, TEMPERATURES, plane_points
from softtargets.studies.study import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

    from softtargets.claims import Sample

PLANE_ALPHA = 0.1
# Bins with fewer predictions than this are left out of the diagram: their accuracy is mostly chance.
FEWEST = 10


def sweep(results: Results) -> Figure:
    """Accuracy and calibration error over alpha."""
    nets = results.where(role="net")
    rows: tuple[dict[str, Any], ...] = tuple(
        {"alpha": alpha, **{key: nets.sample(key, alpha=alpha) for key in ("accuracy", "ece", "ece_scaled")}}
        for alpha in ALPHAS
    )

    def draw() -> Drawing:
        drawing, (left, right) = _panels(2, width=8.6, height=3.1)
        positions = range(len(ALPHAS))
        _errorbars(left, positions, [row["accuracy"] for row in rows], BLUE, "test accuracy", scale=100)
        left.set(title="Accuracy", ylabel="test accuracy, %")
        _errorbars(right, positions, [row["ece"] for row in rows], RED, "as trained (T = 1)")
        _errorbars(right, positions, [row["ece_scaled"] for row in rows], GREEN, "after temperature scaling")
        right.set(title="Calibration", ylabel="expected calibration error")
        right.set_ylim(bottom=0)
        right.legend(loc="upper left")
        for axes in (left, right):
            axes.set_xticks(list(positions), [f"{alpha:g}" for alpha in ALPHAS])
            axes.set_xlabel("label smoothing alpha")
        return drawing

    columns = tuple(Column(key, key) for key in rows[0])
    return Figure(
        "sweep",
        "Accuracy and calibration against the strength of smoothing.",
        draw,
        Table("sweep", "Sweep over alpha", columns, rows),
        "Points are means over seeds, bars one standard deviation. ECE has 15 bins; the temperature is fitted "
        "on the validation digits, never on the test digits.",
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
    colours = dict(zip(curves, (RED, GREEN, BLUE, PURPLE), strict=False))
    rows = tuple(
        {
            "curve": name,
            "bin_low": float(curve.edges[index]),
            "count": int(curve.counts[index]),
            "confidence": float(curve.confidence[index]),
            "accuracy": float(curve.accuracy[index]),
        }
        for name, curve in curves.items()
        for index in range(len(curve.counts))
        if curve.counts[index] > 0
    )

    def draw() -> Drawing:
        drawing, (left, right) = _panels(2, width=8.6, height=3.9)
        draw_reliability(left, curves, colours, fewest=FEWEST)
        left.set_title("Reliability diagram, 15 bins")
        for index, (name, curve) in enumerate(curves.items()):
            width = float(curve.edges[1] - curve.edges[0]) / (len(curves) + 0.6)
            x = (curve.edges[:-1] + (index + 0.5) * width).numpy()
            shares = (100 * curve.counts / curve.counts.sum()).numpy()
            right.bar(x, shares, width=width, color=colours[name], align="edge")
        right.set(
            title="How often each confidence occurs",
            xlabel="confidence",
            ylabel="predictions, %",
            xlim=(0, 1.02),
        )
        drawing.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return drawing

    columns = tuple(Column(key, key.replace("_", " ")) for key in rows[0])
    return Figure(
        "reliability",
        "Does confidence mean what it says?",
        draw,
        Table("reliability", "Reliability bins", columns, rows),
        "Below the diagonal a net is over-confident, above it under-confident. Predictions of all seeds are "
        "pooled; the area of a point is the share of predictions in its bin, and bins with fewer than "
        f"{FEWEST} predictions are left out of the diagram (they are in the CSV).",
        "Reliability diagram of several nets beside a histogram of their confidences.",
    )


def template_planes(results: Results) -> Figure:
    """Müller et al., figure 1, on digits: train and held-out, without and with smoothing."""
    names = {label: f"digit {label}" for label in PLANE}
    colours = dict(zip(PLANE, (BLUE, ORANGE, PURPLE), strict=True))
    panels = {}
    for alpha in (0.0, PLANE_ALPHA):
        run = results.first(role="net", alpha=alpha).run
        for split in ("train", "test"):
            panels[alpha, split] = plane_points(run, run.predictions(split))
    rows = tuple(
        {"alpha": alpha, "split": split, "label": int(label), "x": float(point[0]), "y": float(point[1])}
        for (alpha, split), (points, labels) in panels.items()
        for point, label in zip(points, labels, strict=True)
    )

    def draw() -> Drawing:
        drawing, axes = _panels(4, width=10.4, height=3.0)
        for panel, ((alpha, split), (points, labels)) in zip(axes, panels.items(), strict=True):
            draw_plane(panel, points, labels, {k: plain(v) for k, v in names.items()}, colours)
            limits = common_limits([panels[alpha, other][0] for other in ("train", "test")])
            panel.set(xlim=limits[0], ylim=limits[1])
            smoothing = "hard targets" if alpha == 0 else f"smoothing {alpha:g}"
            panel.set_title(f"{smoothing}: {'training' if split == 'train' else 'held out'}", fontsize=9.5)
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return drawing

    columns = tuple(Column(key, key) for key in rows[0])
    return Figure(
        "planes",
        "Penultimate activations on the plane through three class templates.",
        draw,
        Table("planes", "Projected activations", columns, rows),
        f"One net of each kind, seed {results.first(role='net').trial.recipe.seed}. The two panels of a net share "
        "their scale; the two nets do not, since smoothing also shrinks the activations.",
        "Four scatter plots of three digit classes: training and held out, with hard targets and with smoothing.",
    )


def distillation(results: Results) -> Figure:
    """Müller et al., figure 5 in small: which teacher teaches better?"""
    students, teachers = results.where(role="student"), results.where(role="teacher")
    baselines = results.where(role="baseline")
    rows = tuple(
        {"who": who, "alpha": alpha, "temperature": temperature, "accuracy": sample}
        for who, alpha, temperature, sample in [
            *(("teacher", a, None, teachers.sample("accuracy", alpha=a)) for a in TEACHER_ALPHAS),
            *(("no teacher", a, None, baselines.sample("accuracy", alpha=a)) for a in TEACHER_ALPHAS),
            *(
                ("student", a, t, students.sample("accuracy", alpha=a, temperature=t))
                for a in TEACHER_ALPHAS
                for t in TEMPERATURES
            ),
        ]
    )
    seen = {
        role: results.first(role=role).run.provenance["examples"]["train"] for role in ("student", "teacher")
    }
    kinds = dict(zip(TEACHER_ALPHAS, (("hard targets", RED), ("smoothing 0.1", BLUE)), strict=True))

    def draw() -> Drawing:
        drawing, (left, right) = _panels(2, width=8.6, height=3.3, ratios=[1, 2.1])
        for position, (alpha, (name, colour)) in enumerate(kinds.items()):
            sample = teachers.sample("accuracy", alpha=alpha)
            _errorbars(left, [position], [sample], colour, name, scale=100)
            curve = [students.sample("accuracy", alpha=alpha, temperature=t) for t in TEMPERATURES]
            beside = [place + 0.06 * position for place in range(len(TEMPERATURES))]
            _errorbars(right, beside, curve, colour, f"teacher: {name}", scale=100)
            alone = 100 * baselines.sample("accuracy", alpha=alpha).mean
            right.axhline(alone, color=colour, linestyle=":", linewidth=1.4, label=f"no teacher, {name}")
        left.set(title="The teachers", ylabel="test accuracy, %", xlim=(-0.6, 1.6))
        left.set_xticks([0, 1], [name for name, _ in kinds.values()])
        right.set(
            title="Their students", xlabel="temperature of the teacher's targets", ylabel="test accuracy, %"
        )
        right.set_xticks(range(len(TEMPERATURES)), [f"{t:g}" for t in TEMPERATURES])
        drawing.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return drawing

    columns = (
        Column("who", "who"),
        Column("alpha", "smoothing of the teacher (or of the net itself)", 1),
        Column("temperature", "temperature", 0),
        Column("accuracy", "test accuracy", percent=True),
    )
    return Figure(
        "distillation",
        "Two teachers and their students.",
        draw,
        Table("distillation", "Teachers and students", columns, rows),
        f"Students see {seen['student']} digits and only the teacher's probabilities; teachers saw "
        f"{seen['teacher']}. Dotted: the same small net trained on the true labels of the student's digits.",
        "Teacher accuracies beside student accuracies over temperature, for a hard and a smoothed teacher.",
    )


def _pooled(results: Results, alpha: float) -> dict[str, torch.Tensor]:
    results.first(role="net", alpha=alpha)  # says so where every seed of this strength failed
    outcomes = results.where(role="net", alpha=alpha).outcomes
    predictions = [outcome.run.predictions("test") for outcome in outcomes]
    return {
        "raw": torch.cat([p.logits for p in predictions]),
        "scaled": torch.cat(
            [p.logits / o.measures["temperature"] for p, o in zip(predictions, outcomes, strict=True)]
        ),
        "labels": torch.cat([p.labels for p in predictions]),
    }


def _panels(
    count: int, width: float, height: float, ratios: list[float] | None = None
) -> tuple[Drawing, Any]:
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(width, height), layout="constrained")
    return drawing, drawing.subplots(1, count, width_ratios=ratios)


def _errorbars(axes: Axes, x: Any, samples: list[Sample], colour: str, label: str, scale: float = 1) -> None:
    """Mean and deviation with every seed as a faint dot, so that the bar hides nothing."""
    for position, sample in zip(x, samples, strict=True):
        dots = [scale * value for value in sample.values]
        axes.scatter([position] * sample.n, dots, s=9, color=colour, alpha=0.3, linewidth=0, zorder=2)
    means = [scale * sample.mean for sample in samples]
    spreads = [0.0 if sample.n < 2 else scale * sample.spread for sample in samples]
    style: dict[str, Any] = {"marker": "o", "markersize": 5, "linewidth": 1.6, "capsize": 3, "zorder": 3}
    axes.errorbar(list(x), means, spreads, color=colour, label=label, ecolor=GREY, elinewidth=1, **style)
