"""Pictures of the template plane. Drawing only: computing is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from softtargets.geometry.panels import FairPanel, common_limits, fair_panels
from softtargets.geometry.views import PlaneView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["common_limits", "draw_panel", "draw_panels", "draw_plane", "marks"]

# Colours that stay apart in grey and for colour-blind readers (Okabe and Ito 2008).
COLOURS = ("#0072b2", "#e69f00", "#cc79a7")

# Marks that leave a tight cluster to be seen.
_MARK = {"markersize": 7, "markeredgewidth": 1.1, "linestyle": "none"}
_TEMPLATE: dict[str, Any] = {**_MARK, "marker": "D", "markerfacecolor": "none", "zorder": 4}
_CENTRE: dict[str, Any] = {**_MARK, "marker": "+", "zorder": 5}
_POINT: dict[str, Any] = {"s": 13, "alpha": 0.65, "linewidth": 0, "zorder": 2}

_AXIS = {
    "centres": "1 = mean distance of class means",
    "templates": "1 = mean distance of templates",
    "activations": "as activated",
}


def draw_plane(
    axes: Axes, points: Tensor, labels: Tensor, names: Mapping[int, str], colours: Mapping[int, str]
) -> None:
    """Scatter projected activations (N, 2), one colour per class."""
    points, labels = points.detach().cpu(), labels.detach().cpu()
    for label, name in names.items():
        chosen = points[labels == label].double().numpy()
        axes.scatter(*chosen.T, color=colours[label], label=name, **_POINT)
    axes.set_aspect("equal")
    axes.tick_params(labelsize=7.5)


def draw_panel(
    axes: Axes,
    panel: FairPanel,
    colours: Sequence[str] = COLOURS,
    units: str = "centres",
    ink: str = "black",
) -> None:
    """One panel of `fair_panels`: points of three classes, their means (+), the triangle of templates (diamonds).

    `ink` is the colour of both kinds of marks.
    """
    view = panel.view
    names = dict(zip(view.classes, map(_shown, view.names), strict=True))
    draw_plane(axes, view.points, view.labels, names, dict(zip(view.classes, colours, strict=True)))
    corners = view.templates.numpy()
    axes.plot(*corners[[0, 1, 2, 0]].T, color="0.45", linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    axes.plot(*corners.T, markeredgecolor=ink, **_TEMPLATE)
    axes.plot(*view.centres.numpy().T, markeredgecolor=ink, **_CENTRE)
    axes.set(xlim=panel.limits[0], ylim=panel.limits[1])
    axes.set_title(_shown(view.title), fontsize=9.5)
    numbers = f"spread {view.measures.spread:.2f}, triangle {view.measures.centres_equilateral:.2f}"
    scale = f"\none unit is {panel.unit:.3g}" if units != "activations" else ""
    axes.set_xlabel(numbers + scale, fontsize=8)


def draw_panels(
    figure: Figure,
    panels: Sequence[PlaneView],
    units: str = "centres",
    columns: int = 4,
    colours: Sequence[str] = COLOURS,
) -> tuple[FairPanel, ...]:
    """Panels in rows of four: a model's training and held-out examples without smoothing, then with.

    As in Müller et al. 2019, figure 1, and the replication's figure 2; several rows show other classes or models.
    Axes are fair (`fair_panels`, which also says what `units` are), and the drawn panels are returned. Below each
    panel are its spread (`PlaneMeasures.spread`) and how equilateral the triangle of class means is. For a figure
    with `layout="constrained"`; 2.6 inches wide and 3.3 high per panel is a good size.
    """
    if columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    drawn = fair_panels(panels, units)
    columns = min(columns, len(drawn))
    rows = -(-len(drawn) // columns)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(drawn) :]:
        axes.set_axis_off()
    for place, (axes, panel) in enumerate(zip(grid.flat, drawn, strict=False)):
        draw_panel(axes, panel, colours, units)
        before = drawn[place - 1].view.classes if place % columns else None
        if place % columns == 0:
            axes.set_ylabel(_AXIS[units], fontsize=8)
        if panel.view.classes != before:
            axes.legend(loc="best", fontsize=7, handletextpad=0.2, borderpad=0.3, framealpha=0.8)
    figure.legend(*marks(units), loc="outside lower center", ncols=2, fontsize=8)
    return drawn


def marks(units: str = "centres", ink: str = "black") -> tuple[list[Any], list[str]]:
    """The two marks of a panel and what they are, for a legend."""
    from matplotlib.lines import Line2D

    shape = "template (its direction, not its length)" if units == "centres" else "template"
    return [Line2D([], [], markeredgecolor=ink, **mark) for mark in (_TEMPLATE, _CENTRE)], [
        shape,
        "class mean",
    ]


def _shown(text: str) -> str:
    """Text as it is: a token called ``$x$`` is no formula, and one that begins with _ is not to be left out."""
    plain = text.replace("$", r"\$")
    return f" {plain}" if plain.startswith("_") else plain
