"""A page with every widget, of made-up but possible numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softtargets.claims import Claim, Published, Region, Sample, zone
from softtargets.report import (
    Code,
    Column,
    Curve,
    Figure,
    Map,
    Page,
    Panel,
    Section,
    Table,
    Verdict,
    Widget,
    lines,
    maps,
)
from softtargets.report.drawing import BLUE, ORANGE, PURPLE

TEMPERATURES = (0.5, 1.0, 1.5, 2.0, 4.0)
EDGES = np.linspace(0, 1, 11)
CLASSES = 6


def logits(scale: float, seed: int, examples: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Calibrated at scale 2, since the classes are unit normal and 2 apart; overconfident above."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=examples)
    z = rng.normal(size=(examples, CLASSES)) + 2 * np.eye(CLASSES)[labels]
    return scale * z, labels


def curve(name: str, colour: str, scale: float, seed: int) -> dict[str, Any]:
    z, labels = logits(scale, seed)
    found: dict[str, Any] = {"name": name, "colour": colour}
    for temperature in TEMPERATURES:
        p = np.exp(z / temperature)
        p /= p.sum(1, keepdims=True)
        sure, right = p.max(1), p.argmax(1) == labels
        place = np.minimum((10 * sure).astype(int), 9)
        counts = np.bincount(place, minlength=10)
        with np.errstate(invalid="ignore"):
            confidence = np.bincount(place, sure, 10) / counts
            accuracy = np.bincount(place, right, 10) / counts
            half = 1.96 * np.sqrt(accuracy * (1 - accuracy) / counts)
        values = {
            "counts": counts,
            "confidence": confidence,
            "accuracy": accuracy,
            "low": np.clip(accuracy - half, 0, 1),
            "high": np.clip(accuracy + half, 0, 1),
            "ece": np.nansum(counts * abs(confidence - accuracy)) / len(labels),
            "nll": -np.log(p[np.arange(len(labels)), labels]).mean(),
        }
        for key, value in values.items():
            found.setdefault(key, []).append(value)
    return found


def panel(title: str, spread: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    templates = np.array([[0.0, 0.58], [-0.5, -0.29], [0.5, -0.29]])
    points = [
        [*(templates[k] + spread * rng.normal(size=2)), k, 100 * k + i] for k in range(3) for i in range(20)
    ]
    return {
        "title": title,
        "points": points,
        "templates": templates,
        "centres": templates,
        "limits": [[-1.1, 1.1], [-1.0, 1.2]],
        "notes": [f"spread {spread}"],
    }


def widgets(name: str = "hard targets") -> dict[str, Widget]:
    curves = [curve(name, BLUE, 4.0, 0), curve("label smoothing", ORANGE, 1.5, 1)]
    sweep = {
        "temperatures": TEMPERATURES,
        "curves": [{key: c[key] for key in ("name", "colour", "ece", "nll")} for c in curves],
        "best": [2.0, 0.75],
    }
    coverages = [0.25, 0.5, 0.75, 1.0]
    risks = ([0.0, 0.02, 0.05, 0.1], [0.01, 0.03, 0.06, 0.12])
    coverage = {
        "coverages": coverages,
        "curves": [
            {**{key: c[key] for key in ("name", "colour")}, "risk": r, "low": [0.0] * 4, "high": [0.2] * 4}
            for c, r in zip(curves, risks, strict=True)
        ],
        "best": [0.0, 0.0, 0.0, 0.1],
    }
    return {
        "coverage": Widget("coverage", coverage),
        "plane": Widget(
            "plane",
            {
                "panels": [panel("training", 0.1, 2), panel("held out", 0.2, 3)],
                "classes": [
                    {"name": "cat", "colour": BLUE},
                    {"name": "dog", "colour": ORANGE},
                    {"name": name, "colour": PURPLE},
                ],
                "unit": "1 = mean distance of class means",
            },
        ),
        "reliability": Widget(
            "reliability",
            {
                "edges": EDGES,
                "temperatures": TEMPERATURES,
                "start": 1,
                "best": 3,
                "curves": curves,
                "unit": "examples",
            },
        ),
        "sweep": Widget("sweep", sweep),
        "sweep_again": Widget("sweep", sweep),
    }


WIDGETS = widgets()


def draw():
    from matplotlib.figure import Figure as Drawing

    drawing = Drawing(figsize=(4, 2))
    drawing.subplots().plot([0, 1], [0, 1])
    return drawing


def page(
    name: str = "hard targets",
    figures: tuple[str, ...] = ("coverage", "plane", "reliability", "sweep"),
    widgets: Mapping[str, Widget] | None = None,
    **changes: Any,
) -> Page:
    """One figure per widget, in a page that is no study."""
    there = widgets or globals()["widgets"](name)
    exhibits = tuple(
        Figure(
            figure,
            f"The {figure}",
            draw,
            Table(figure, "Numbers", (Column("x", "x"),), ({"x": 1.0},)),
            alt=f"a picture of the {figure}",
            widget=there[figure],
        )
        for figure in figures
    )
    parts: dict[str, Any] = {
        "kind": "calibrate",
        "name": "predictions.npz",
        "title": "How sure may this model be?",
        "lead": "900 examples of 6 classes.",
        "sections": (Section("Figures", (), exhibits),),
        "command": "softtargets calibrate predictions.npz",
        "provenance": {"made": "today"},
    }
    return Page(**(parts | changes))


VERDICT = Verdict(
    "care", "Overconfident: divide the logits by 2", ("It is surer than it is right.", "Scale it.")
)
CODE = Code("probabilities = (logits / 2).softmax(-1)", title="What to change")


CURVES = (
    Curve.of("measured", BLUE, [0.5, 0.9], [Sample.of([1.0, 3.0]), Sample.of([4.0, 4.0])], group="a = 0.5"),
    Curve("predicted", BLUE, [0.0, 1.0], [1.0, 5.0], line="dashed", group="a = 0.5"),
    Curve("other", ORANGE, [0.5, 0.9], [2.5, 3.5], marker="square"),
)
PANELS = (Panel("Loss", "p", "test loss, nats", CURVES), Panel("Again", "p", "loss", CURVES[2:]))
PLANE = Map(
    "Map",
    "rate",
    "p",
    [0.1, 0.2, 0.3],
    [0.5, 0.6],
    [[0.0, 1.0, None], [2.0, 3.0, 4.0]],
    0.0,
    3.0,
    unit="nats",
)
CLAIMS = (
    Claim(
        "Smoothing gains 1 % of accuracy.",
        (Published("1 %", "a network", "Somebody 2020, table 1", 0.01, "https://arxiv.org/abs/2010.12648"),),
        "gain",
        Sample.of([0.9, 1.0, 1.1]),
        Region(low=0),
        zone=zone(0.2),
        printed=1.5,
        margin=0.3,
        unit="points",
        digits=2,
    ),
    Claim("It costs nothing.", (), "cost", Sample.of([0.4, 0.5, 0.6]), Region(high=0)),
    Claim("It is quick.", (), "time", Sample.of([1.0]), Region(high=2)),
)


def study_page(**changes: Any) -> Page:
    """A study with claims and charts."""
    exhibits = (
        lines("curves", "Curves.", PANELS, [{"p": 0.5}], "A caption."),
        maps("plane", "A plane.", [PLANE], [{"a": 0.1}]),
        Table.of(
            "wide", "A table.", " | ".join(f"column_{i}" for i in range(12)), [{"column_0": "words " * 12}]
        ),
    )
    parts: dict[str, Any] = {
        "name": "made-up",
        "title": "Does it help?",
        "answer": "Yes: it helps.",
        "lead": "Somebody (2020) says so.",
        "papers": ("Somebody 2020, https://arxiv.org/abs/2010.12648",),
        "sections": (Section("Numbers", ("Text.",), exhibits), Section("What differs", ("Little.",))),
        "claims": CLAIMS,
        "command": "softtargets study run made-up",
        "provenance": {"made": "today"},
        "runs": Table.of("runs", "Runs", "run", [{"run": "a"}]),
    }
    return Page(**(parts | changes))
