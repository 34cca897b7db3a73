"""Five pictures, each drawn on axes and given back with them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

from softtargets.calibration import (
    Calibration,
    Reliability,
    TemperatureSweep,
    calibration_of,
    logits_from_probabilities,
    zero_floor,
)
from softtargets.calibration import CalibrationSums as Sums
from softtargets.calibration import temperature_sweep as sweep_of
from softtargets.calibration.drawing import draw_diagram, draw_reliability, draw_sweep
from softtargets.distillation import Curve
from softtargets.distillation import curve as curve_of
from softtargets.distillation.drawing import draw_curves
from softtargets.geometry import PlaneView, fair_panels, plane_view
from softtargets.geometry.drawing import draw_panel, marks
from softtargets.plotting.given import Kind, named, scores_of
from softtargets.plotting.look import finished, prepared
from softtargets.selection import (
    RiskCoverage,
    Selection,
    least_risk,
    measure_selection,
    risk_points,
    shown_coverages,
)
from softtargets.selection.drawing import draw_risk_coverage

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BENEATH = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.14),
    "ncols": 2,
}  # bars and clusters may lie anywhere
PLANE = {"centres": "1 = mean distance of class means", "templates": "1 = mean distance of templates"}


def reliability_diagram(
    data: Any,
    labels: Any = None,
    *,
    ax: Axes | None = None,
    kind: Kind = "auto",
    ignore_index: int | None = None,
    bins: int = 15,
    level: float | None = 0.95,
    fewest: int = 1,
    dark: bool | None = None,
    title: str | None = None,
) -> Axes:
    """Accuracy over confidence: bars with their gaps for one model, a line for each of several.

    `data` is a `Reliability` or `Calibration`, scores (..., K) with `labels` (...), or a mapping from names to
    those (or to pairs of scores and labels). Scores are logits or probabilities (`kind`, guessed as `softtargets
    calibrate` does). Examples with the label `ignore_index` are left out. `level` is that of the intervals, None
    for none; bins with fewer than `fewest` examples are not drawn.

    >>> ax = reliability_diagram([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1])
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('confidence', 'accuracy')
    """

    def measured(scores: Any, true: Any) -> Reliability:
        rows, given, from_logits = scores_of(scores, true, kind, ignore_index)
        return calibration_of(
            Sums.of(rows, given, from_logits=from_logits, bins=bins), level=None
        ).reliability

    def taken(one: Any) -> Reliability:
        return one.reliability if isinstance(one, Calibration) else one

    curves = named(data, labels, (Reliability, Calibration), measured, taken)
    ax, look = prepared(ax, dark, (4.6, 5.2))
    if len(curves) == 1:
        (name, curve), *_ = curves.items()
        draw_diagram(ax, curve, look.curves[0], fewest, level, look.gap, look.ink)
        for text in ax.texts:
            text.set(color=look.ink, zorder=6)
            text.set_bbox({"facecolor": look.paper, "alpha": 0.85, "edgecolor": "none", "pad": 2})
        ax.set_aspect("equal")
        legend = {
            "handles": _diagram_marks(look, level),
            **BENEATH,
        }
        return finished(
            ax, look, title=title if title is not None else name or None, painted=bool(dark), legend=legend
        )
    draw_reliability(ax, curves, look.colours(curves), fewest, level)
    for line, (name, curve) in zip(
        [one for one in ax.lines if one.get_label() in curves], curves.items(), strict=True
    ):
        line.set_label(f"{name} (ECE {100 * curve.expected_calibration_error:.2f} %)")
    return finished(ax, look, title=title, painted=bool(dark), legend={})


def risk_coverage(
    data: Any,
    labels: Any = None,
    *,
    ax: Axes | None = None,
    kind: Kind = "auto",
    ignore_index: int | None = None,
    level: float = 0.95,
    best: bool = True,
    dark: bool | None = None,
    title: str | None = None,
) -> Axes:
    """How often the most confident predictions are wrong, over the share of predictions that are used.

    `data` is a `RiskCoverage` or `Selection`, scores with `labels`, or a mapping from names to those. Labels of
    `ignore_index` do not count. Bands are intervals of this `level`. `best` draws, for one model, what no order of its
    predictions could be better than.

    >>> ax = risk_coverage([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1])
    >>> ax.get_ylabel()
    'error rate of those'
    """

    def measured(scores: Any, true: Any) -> RiskCoverage:
        rows, given, from_logits = scores_of(scores, true, kind, ignore_index)
        return measure_selection(rows, given, from_logits=from_logits).curve

    def taken(one: Any) -> RiskCoverage:
        return one.curve if isinstance(one, Selection) else one

    found = named(data, labels, (RiskCoverage, Selection), measured, taken)
    curves = {f"{name or 'this model'} (AURC {one.aurc:.3g})": one for name, one in found.items()}
    coverages = shown_coverages(list(curves.values()))
    points = {name: risk_points(curve, coverages, level) for name, curve in curves.items()}
    alone = next(iter(curves.values())) if len(curves) == 1 and best else None
    ax, look = prepared(ax, dark, (5.4, 3.8))
    draw_risk_coverage(
        ax, points, look.colours(points), None if alone is None else least_risk(alone, coverages)
    )
    return finished(ax, look, title=title, painted=bool(dark), legend={})


def temperature_sweep(
    data: Any,
    labels: Any = None,
    *,
    ax: Axes | None = None,
    kind: Kind = "auto",
    ignore_index: int | None = None,
    measure: str = "ece",
    temperatures: Sequence[float] | None = None,
    dark: bool | None = None,
    title: str | None = None,
) -> Axes:
    """Calibration error ("ece") or likelihood ("nll") over the temperature that logits are divided by.

    `data` is a `TemperatureSweep`, scores with `labels`, or a mapping from names to those. Labels of `ignore_index`
    do not count. A point marks the lowest value of each line, and a dashed line T = 1, where nothing is changed.

    >>> ax = temperature_sweep([[4.0, 0.0]] * 4, [0, 0, 0, 1], temperatures=[1.0, 2.0, 4.0])
    >>> ax.get_xlabel()
    'temperature'
    """

    def measured(scores: Any, true: Any) -> TemperatureSweep:
        rows, given, from_logits = scores_of(scores, true, kind, ignore_index)
        if not from_logits:
            rows = logits_from_probabilities(rows, floor=zero_floor(rows, given), checked=True)
        return sweep_of(rows, given) if temperatures is None else sweep_of(rows, given, temperatures)

    sweeps = named(data, labels, (TemperatureSweep,), measured, lambda one: one)
    shown = {
        f"{name or 'this model'} (lowest at T = {one.best(measure):g})": one for name, one in sweeps.items()
    }
    ax, look = prepared(ax, dark, (5.4, 3.8))
    draw_sweep(ax, shown, look.colours(shown), measure)
    # A small temperature makes any likelihood huge: what matters is near the lowest and near T = 1.
    values = [one.values(measure) for one in shown.values()]
    usual = max(1.6 * max(map(min, values)), max(_near_one(one, measure) for one in shown.values()))
    if (top := min(max(map(max, values)), 2.2 * usual) * 1.04) > 0:
        ax.set_ylim(0, top)
    return finished(ax, look, title=title, painted=bool(dark), legend={})


def template_plane(
    data: Any,
    labels: Any = None,
    weights: Any = None,
    classes: Sequence[int] | None = None,
    *,
    ax: Axes | None = None,
    names: Mapping[int, str] | Sequence[str] | None = None,
    most: int | None = 300,
    units: str = "centres",
    dark: bool | None = None,
    title: str | None = None,
) -> Axes:
    """Penultimate activations of three classes on the plane through their templates (Müller et al. 2019, figure 1).

    `data` is a `PlaneView` (`softtargets.geometry.plane_view`), or activations (N, D) with `labels` (N,), the
    `weights` of the last layer (K, D) and the three `classes` (0, 1 and 2 if nothing is said). `units` says what 1
    is on both axes: the mean distance of class means, of ``templates``, or ``activations`` as they are.
    """
    view = data
    if not isinstance(data, PlaneView):
        if labels is None or weights is None:
            raise ValueError(
                "give activations, labels and the weights of the last layer, or a PlaneView from plane_view"
            )
        chosen = [0, 1, 2] if classes is None else list(classes)
        view = plane_view(_array(data), _array(labels), _array(weights), chosen, names=names, most=most)
    (panel,) = fair_panels([view], units)
    ax, look = prepared(ax, dark, (4.8, 5.0))
    three = (look.curves[0], look.curves[1], look.curves[4])
    draw_panel(ax, panel, three, units, look.ink)
    if units in PLANE:
        ax.set_ylabel(PLANE[units], fontsize="small")
    handles, known = ax.get_legend_handles_labels()
    more, words = marks(units, look.ink)
    legend = {
        "handles": [*handles, *more],
        "labels": [*known, *words],
        **BENEATH,
    }
    ax.set_title("")
    shown = title if title is not None else view.title or None
    return finished(ax, look, title=shown, painted=bool(dark), legend=legend)


def distillation_curves(
    curves: Mapping[str, Any],
    *,
    ax: Axes | None = None,
    xlabel: str = "smoothness index gamma",
    ylabel: str = "accuracy",
    dark: bool | None = None,
    title: str | None = None,
) -> Axes:
    """Means over seeds with a band from the lowest to the highest, one line for each name.

    Each curve is a `softtargets.distillation.Curve`, a mapping from x to its values, one for each seed (or a number, of
    one seed), or pairs of both.

    >>> ax = distillation_curves({"student": {0.0: [0.90, 0.91], 0.1: [0.92, 0.93]}})
    >>> ax.get_ylabel()
    'accuracy'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise ValueError("curves must be a mapping from names to curves, with at least one curve")
    ready = {f"{name}": _curve(one) for name, one in curves.items()}
    shown = {name if not name.startswith("_") else f" {name}": one for name, one in ready.items()}
    ax, look = prepared(ax, dark, (5.4, 3.8))
    draw_curves(ax, shown, look.colours(shown), xlabel, ylabel)
    return finished(ax, look, title=title, painted=bool(dark), legend={})


def _curve(given: Curve | Mapping[float, Iterable[float]] | Iterable[tuple[float, Iterable[float]]]) -> Curve:
    if isinstance(given, Curve):
        return given
    pairs = given.items() if isinstance(given, Mapping) else given
    return curve_of((x, [float(values)] if isinstance(values, Real) else values) for x, values in pairs)


def _near_one(sweep: TemperatureSweep, measure: str) -> float:
    place = min(range(len(sweep.temperatures)), key=lambda i: abs(sweep.temperatures[i] - 1))
    return sweep.values(measure)[place]


def _array(values: Any) -> Any:
    import numpy as np
    from torch import Tensor

    return values if isinstance(values, Tensor) else np.asarray(values)


def _diagram_marks(look: Any, level: float | None) -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found: list[Any] = [
        Patch(facecolor=look.curves[0], label="accuracy"),
        Patch(facecolor=(look.gap, 0.18), edgecolor=look.gap, hatch="///", label="gap to mean confidence"),
    ]
    if level is not None:
        found.append(Line2D([], [], color=look.ink, linewidth=1.2, label=f"{100 * level:g} % interval"))
    return [*found, Line2D([], [], color="0.6", linestyle="--", linewidth=1, label="perfectly calibrated")]
