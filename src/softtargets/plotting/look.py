"""What all figures share: colours, axes of one's own or of somebody else's, a dark look, legends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that stay apart for colour-blind readers (Okabe and Ito 2008), the dark ones first on white and last on black.
ON_LIGHT = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000")
ON_DARK = ("#56b4e9", "#e69f00", "#2fc79f", "#ff8a47", "#e3a1c6", "#f0e442", "#ffffff")


@dataclass(frozen=True)
class Look:
    """The colours of one picture: of its curves, of its words, of what is behind them."""

    curves: tuple[str, ...]
    gap: str
    ink: str
    faint: str
    paper: str
    dark: bool

    def colours(self, names: Iterable[str]) -> dict[str, str]:
        """A colour for each name, in order; beyond seven they begin again."""
        return {name: self.curves[place % len(self.curves)] for place, name in enumerate(names)}


LIGHT = Look(ON_LIGHT, "#d55e00", "#1f2937", "#9ca3af", "#ffffff", False)
DARK = Look(ON_DARK, "#ff8a47", "#e5e7eb", "#6b7280", "#111827", True)


def prepared(ax: Axes | None, dark: bool | None, size: tuple[float, float]) -> tuple[Axes, Look]:
    """Axes to draw on and the look that suits them.

    Axes that are given keep their figure and pyplot's state is left alone; None makes a new figure with pyplot, so
    that a notebook shows it. `dark` True paints these axes dark; None takes the look that fits how they are painted.
    """
    if ax is None:
        from matplotlib import pyplot

        figure, ax = pyplot.subplots(figsize=size, layout="constrained")
        if dark:
            figure.set_facecolor(DARK.paper)
    _refuse_no_axes(ax)
    if dark is None:
        return ax, DARK if _is_dark(ax) else LIGHT
    look = DARK if dark else LIGHT
    if dark:
        _paint(ax, look)
    return ax, look


def finished(
    ax: Axes, look: Look, *, title: str | None, painted: bool, legend: dict[str, Any] | None = None
) -> Axes:
    """The axes with a title and a legend, in the colours of the look if they were painted."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=look.faint, alpha=0.3, linewidth=0.7)
    ax.set_axisbelow(True)
    if title is not None:
        ax.set_title(plain(title), loc="left")
    if legend is not None:
        options = {"framealpha": 0.85, "edgecolor": "none", "fontsize": "small", "loc": "best", **legend}
        ax.legend(
            facecolor=look.paper if painted else "inherit",
            labelcolor=look.ink if painted else None,
            **options,
        )
    if painted:
        for text in (ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label, *ax.texts):  # type: ignore[attr-defined]
            text.set_color(look.ink)
    return ax


def plain(text: str) -> str:
    """Text for matplotlib to show as it is: ``$x$`` is no formula, and ``_x`` is not to be left out of a legend.

    >>> plain("_costs $5")
    ' _costs \\\\$5'
    """
    shown = text.replace("\\", "\\\\").replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _refuse_no_axes(ax: Any) -> None:
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        raise TypeError(
            f"ax must be one axes of matplotlib, such as plt.subplots()[1] or one entry of an array of them, not "
            f"{type(ax).__name__}"
        )
    if ax.name != "rectilinear":
        raise ValueError(f"ax must be flat axes with an x and a y, not those of projection={ax.name!r}")


def _paint(ax: Axes, look: Look) -> None:
    ax.set_facecolor(look.paper)
    ax.tick_params(colors=look.ink, which="both")
    for spine in ax.spines.values():
        spine.set_color(look.faint)


def _is_dark(ax: Axes) -> bool:
    from matplotlib.colors import to_rgba

    red, green, blue, opaque = to_rgba(ax.get_facecolor())
    if opaque == 0:
        red, green, blue, _ = to_rgba(ax.figure.get_facecolor())
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.4
