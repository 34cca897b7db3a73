"""What the view page says: why these classes, what differs between panels, what to beware of."""

from __future__ import annotations

import math
from collections.abc import Iterator

from softtargets.inspection.shared.numbers import listed, number, percent
from softtargets.inspection.view.finding import PanelView, PenultimateView
from softtargets.report import Verdict

ALIKE = 0.05  # differences below this share are not called differences
FEW = 10  # examples of a class below which its cluster says little
CAUTION = (
    "These numbers describe the examples and the models that were given, and nothing else. Another seed gives other "
    "numbers. For a claim about a method, train several models and see how much the numbers vary."
)
CLUSTERS = (
    "In a broad cluster, examples of one class differ in how similar they are to the other classes. In tight clusters "
    "at the corners of a regular triangle, they differ little. Label smoothing leads to tight clusters of training "
    "examples, and a teacher trained with it has less to tell a student (Müller et al. 2019, sections 2 and 4)."
)
MEASURES = (
    "Spread is the root mean square distance of examples from the mean of their class, divided by the mean distance "
    "between the three class means. It is measured on the plane, and in the whole space before projecting. Spread does "
    "not change if a model scales its activations, so models can be compared by it. “Over templates” divides by the "
    "mean distance between templates instead. That depends on the scale of activations and weights: compare it within "
    "one model only.",
    "A triangle is 1 if its three sides are equal, and 0 if its corners lie on one line.",
)
COLLAPSE = (
    "Four measures of Papyan, Han and Donoho (2020). NC1: variability within classes, relative to the variability "
    "between classes. NC2: how unequal the norms of class means and templates are, and how much the angles between "
    "them vary. NC3: how far templates are from class means, from 0 to 4. NC4: how often the model predicts a class "
    "other than the one with the nearest mean."
)


def collapse_words(found: PenultimateView) -> tuple[str, str]:
    """What neural collapse is, and which class means it is measured with."""
    first = listed(list(dict.fromkeys(panel.nc4_means for panel in found.panels)))
    return COLLAPSE, (
        "Class means are those of the panel's own examples, except for NC4, which uses those of the model's first "
        f"panel ({first}). Classes without examples are left out."
    )


def why(found: PenultimateView) -> str:
    """Which classes, and how they came to be these."""
    numbered = zip(found.classes, found.names, strict=True)
    named = [f"{number} is {name}" for number, name in numbered if str(number) != name]
    meaning = f" Class {listed(named)}." if named else ""
    if found.kind == "given":
        return f"Why these classes: {found.reason}.{meaning}"
    nets = {panel.view.net for panel in found.panels}
    of = f" of {found.panels[0].view.net}" if len(nets) > 1 else ""
    return f"Why these classes: by the distances between templates{of}, {found.reason}.{meaning}"


def warnings(found: PenultimateView) -> tuple[str, ...]:
    """What a reader must know before trusting the numbers."""
    notes = []
    for panel in found.panels:
        title, used, examples = panel.view.title, panel.nc4_examples, panel.collapse.examples
        few = [name for name, count in zip(found.names, panel.counts, strict=True) if count < FEW]
        if few:
            notes.append(
                f"{title} has fewer than {FEW} examples of {listed(few)}: too few to judge its clusters."
            )
        if used < examples:
            notes.append(
                f"NC4 of {title} is measured on {used:,} of {examples:,} examples, evenly spaced, since each example "
                "is compared with every class."
            )
    return tuple(notes)


def verdict_on(found: PenultimateView) -> Verdict | None:
    """What differs between models; of one model, how tight its clusters are, and None where that is unknown."""
    told = between_nets(found)
    if told:
        return Verdict("plain", headline(found), (*told, CAUTION))
    first = found.panels[0].view
    spread = first.measures.spread
    if not math.isfinite(spread):
        return None
    alone = (
        f"On the plane below, the root mean square distance of {first.title} examples from the mean of their class "
        f"is {percent(spread, 0)} of the mean distance between two class means."
    )
    return Verdict("plain", f"Clusters are {percent(spread, 0)} as wide as classes are far apart", (alone,))


def headline(found: PenultimateView) -> str:
    """The first of the differences between models, in a few words; empty for one model."""
    for one, two in _pairs(found):
        compared = _compared(two.view.measures.spread, one.view.measures.spread)
        return f"The clusters of {two.view.title} are {compared} those of {one.view.title} on the plane"
    return ""


def between_nets(found: PenultimateView) -> tuple[str, ...]:
    """Each model against the first, on the splits both have; on their first panels where they share none.

    Spreads are in units of the distance between class means, so that models of different scale can be compared.
    """
    return tuple(_against(*pair) for pair in _pairs(found))


def between_splits(found: PenultimateView) -> tuple[str, ...]:
    """The other panels of each model against its first."""
    first: dict[str, PanelView] = {}
    sentences = []
    for panel in found.panels:
        of = first.setdefault(panel.view.net, panel)
        if of is not panel:
            compared = _compared(panel.view.measures.spread, of.view.measures.spread)
            sentences.append(
                f"{panel.view.net}: the clusters of {panel.view.split or 'the rest'} are {compared} those of "
                f"{of.view.split or 'the first file'} (a spread of {panel.view.measures.spread:.3f} against "
                f"{of.view.measures.spread:.3f})."
            )
    return tuple(sentences)


def _pairs(found: PenultimateView) -> Iterator[tuple[PanelView, PanelView]]:
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
        whose = f"{two.view.title} against {one.view.title}, which have different examples"
    return (
        f"{whose}: the spread is {b.spread:.3f} against {a.spread:.3f} on the plane, and {b.spread_in_space:.3f} "
        f"against {a.spread_in_space:.3f} in the whole space. The triangle of class means is "
        f"{_shape(b.centres_equilateral, a.centres_equilateral)} ({b.centres_equilateral:.2f} against "
        f"{a.centres_equilateral:.2f}). Over all {two.collapse.classes:,} classes, NC1 (the variability within "
        f"classes) is {two.collapse.nc1:.3g} against {one.collapse.nc1:.3g}."
    )


def _compared(value: float, other: float) -> str:
    """``58 % tighter than``.

    >>> _compared(0.21, 0.5), _compared(0.5, 0.49), _compared(0.75, 0.5), _compared(2.0, 0.5)
    ('58 % tighter than', 'about as wide as', '50 % wider than', '4.0 times as wide as')
    """
    if not (math.isfinite(value) and math.isfinite(other)) or other == 0:
        return "not comparable with"
    ratio = value / other
    if abs(ratio - 1) < ALIKE:
        return "about as wide as"
    if ratio < 1:
        return f"{percent(1 - ratio, 0)} tighter than"
    if ratio < 2:
        return f"{percent(ratio - 1, 0)} wider than"
    return f"{number(ratio, 1 if ratio < 10 else 0)} times as wide as"


def _shape(value: float, other: float) -> str:
    if math.isnan(value) or math.isnan(other) or abs(value - other) < ALIKE:
        return "about as equilateral"
    return "more equilateral" if value > other else "less equilateral"
