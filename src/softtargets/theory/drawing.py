"""Pictures of the theory. Drawing only: computing is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from softtargets.theory.arguments import Array
from softtargets.theory.landscape import Landscape, OptimumCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Losses rise without bounds at the edges: colours end at this share of the values, so that the valley is seen.
_SHOWN = 0.9


def draw_landscape(axes: Axes, found: Landscape, colours: str = "viridis") -> Any:
    """The loss as colours over a (across) and p (up), dark where it is low, with the best p as a line.

    Returns what a colour bar is made of: ``figure.colorbar(draw_landscape(axes, found))``. Colours end at the
    loss that nine tenths of the plane stay below.
    """
    if len(found.a) < 2 or len(found.p) < 2:
        raise ValueError(
            f"a picture needs at least two a and two p, but the landscape has {len(found.a)} and {len(found.p)}"
        )
    finite = found.loss[np.isfinite(found.loss)]
    mesh = axes.pcolormesh(
        found.a,
        found.p,
        np.where(np.isfinite(found.loss), found.loss, finite.max()),
        shading="nearest",
        cmap=colours,
        vmin=float(finite.min()),
        vmax=float(np.quantile(finite, _SHOWN)),
        rasterized=True,
    )
    for piece in _pieces(found.a, found.jump):
        axes.plot(found.a[piece], found.best_p[piece], color="white", linewidth=2, label="best p", zorder=3)
    axes.set(
        xlim=(found.a[0], found.a[-1]), ylim=(found.p[0], found.p[-1]), xlabel="clean rate a", ylabel="p"
    )
    axes.grid(visible=False)
    return mesh


def draw_optimum(axes: Axes, curves: Mapping[str, OptimumCurve], colours: Mapping[str, str]) -> None:
    """The best p against a, one line for each named curve; where it jumps the line is dotted.

    The grey diagonal is p = a.
    """
    axes.plot([0, 1], [0, 1], linestyle="--", color="0.7", linewidth=1, zorder=1)
    for name, curve in curves.items():
        pieces = _pieces(curve.a, curve.jump)
        for piece in pieces:
            label = name if piece is pieces[0] else "_nolegend_"
            axes.plot(curve.a[piece], curve.p[piece], color=colours[name], linewidth=1.6, label=label)
        for piece in pieces[1:]:
            ends = slice(piece.start - 1, piece.start + 1)
            axes.plot(curve.a[ends], curve.p[ends], color=colours[name], linewidth=1, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="clean rate a", ylabel="best p")


def _pieces(a: Array, jump: float | None) -> list[slice]:
    """The parts of a curve that are drawn without lifting the pen."""
    if jump is None or not a[0] <= jump < a[-1]:
        return [slice(0, len(a))]
    beyond = int(np.searchsorted(a, jump, side="right"))
    return [slice(0, beyond), slice(beyond, len(a))]
