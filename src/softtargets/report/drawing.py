"""The look all figures share."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import matplotlib.axes
    import matplotlib.figure

# For annotations alone: matplotlib is imported where something is drawn.
Drawing: TypeAlias = "matplotlib.figure.Figure"
Axes: TypeAlias = "matplotlib.axes.Axes"

# What every picture is written as.
KINDS = ("png", "svg")

# Colours that stay apart in grey and for colour-blind readers (Okabe and Ito 2008).
BLUE = "#0072b2"
ORANGE = "#e69f00"
GREEN = "#009e73"
RED = "#d55e00"
PURPLE = "#cc79a7"
SKY = "#56b4e9"
GREY = "#6b7280"

_STYLE: dict[Any, Any] = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#9ca3af",
    "axes.labelcolor": "#374151",
    "xtick.color": "#4b5563",
    "ytick.color": "#4b5563",
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "svg.fonttype": "path",
    "svg.hashsalt": "softtargets",
}


def canvas(width: float, height: float) -> Drawing:
    """A picture of so many inches whose parts do not overlap."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@contextmanager
def house_style() -> Iterator[None]:
    """Draw inside this to get the project's look, whatever the user's matplotlib settings are."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def rendered(drawing: Drawing, kind: str, **options: Any) -> bytes:
    """A drawing as the content of a file; without a date in it the same numbers give the same bytes."""
    buffer = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    drawing.savefig(buffer, format=kind, metadata=metadata, **options)
    return buffer.getvalue()


def plain(text: str) -> str:
    """Text for matplotlib to show as it is: a class called ``$x$`` is not a formula.

    >>> plain("costs $5")
    'costs \\\\$5'
    """
    return text.replace("\\", "\\\\").replace("$", r"\$")
