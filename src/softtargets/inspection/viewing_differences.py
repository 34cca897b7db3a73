"""What differs between panels, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from softtargets.inspection.viewing import Look, PanelView

ALIKE = 0.05  # differences below this share are not called differences


def headline(found: Look) -> str:
    """The first of the differences between nets, in a few words; empty for one net."""
    for one, two in _pairs(found):
        compared = _compared(two.view.measures.spread, one.view.measures.spread)
        return f"On the plane, the clusters of {two.view.title} are {compared} those of {one.view.title}"
    return ""


def between_nets(found: Look) -> tuple[str, ...]:
    """Each net against the first, on the splits both have; on their first panels where they share none.

    Spreads are in units of the distance between class means, so that nets of different scale can be compared.
    """
    return tuple(_against(*pair) for pair in _pairs(found))


def between_splits(found: Look) -> tuple[str, ...]:
    """The other panels of each net against its first."""
    first: dict[str, PanelView] = {}
    sentences = []
    for panel in found.panels:
        of = first.setdefault(panel.view.net, panel)
        if of is not panel:
            compared = _compared(panel.view.measures.spread, of.view.measures.spread)
            sentences.append(
                f"{panel.view.net}: clusters of {panel.view.split or 'the rest'} are {compared} those of "
                f"{of.view.split or 'the first file'} (spread {panel.view.measures.spread:.3f} against "
                f"{of.view.measures.spread:.3f})."
            )
    return tuple(sentences)


def _pairs(found: Look) -> Iterator[tuple[PanelView, PanelView]]:
    nets: dict[str, list[PanelView]] = {}
    for panel in found.panels:
        nets.setdefault(panel.view.net, []).append(panel)
    first, *others = nets.values()
    by_split = {panel.view.split: panel for panel in first}
    for other in others:
        shared = [(by_split[panel.view.split], panel) for panel in other if panel.view.split in by_split]
        yield from shared or [(first[0], other[0])]


def _against(one: PanelView, two: PanelView) -> str:
    a, b = one.view.measures, two.view.measures
    if one.view.split == two.view.split:
        whose = f"{two.view.net} against {one.view.net}" + (f" on {one.view.split}" if one.view.split else "")
    else:
        whose = f"{two.view.title} against {one.view.title}, which are different examples"
    return (
        f"{whose}: a spread of {b.spread:.3f} against {a.spread:.3f} on the plane, and of {b.spread_in_space:.3f} "
        f"against {a.spread_in_space:.3f} in the whole space. The triangle of class means is "
        f"{_shape(b.centres_equilateral, a.centres_equilateral)} ({b.centres_equilateral:.2f} against "
        f"{a.centres_equilateral:.2f}). Over all {two.collapse.classes:,} classes NC1, the variability within them, is "
        f"{two.collapse.nc1:.3g} against {one.collapse.nc1:.3g}."
    )


def _compared(value: float, other: float) -> str:
    """``0.42 times as wide as``.

    >>> _compared(0.21, 0.5), _compared(0.5, 0.49)
    ('0.42 times as wide as', 'about as wide as')
    """
    if not (math.isfinite(value) and math.isfinite(other)) or other == 0:
        return "not to be compared with"
    ratio = value / other
    if abs(ratio - 1) < ALIKE:
        return "about as wide as"
    return f"{ratio:.2f} times as wide as" if ratio < 10 else f"{ratio:.0f} times as wide as"


def _shape(value: float, other: float) -> str:
    if math.isnan(value) or math.isnan(other) or abs(value - other) < ALIKE:
        return "about as equilateral"
    return "more equilateral" if value > other else "less equilateral"
