"""The penultimate layers of models, from streams of activations: what `softtargets view` shows, as data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

import softtargets.geometry as geometry
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.shared.reading import Piece, Told, check_choice, quiet, telling
from softtargets.inspection.view.streams import Disagreement, gather
from softtargets.predictions import Activations

PICKS = ("close", "mixed", "far")
TRAINING = ("train", "training")
CANDIDATES = 2000  # classes that are compared with each other; more would take K^2 D multiplications
ENOUGH = 10  # examples of a class in each panel, for it to be picked
NC4_PRODUCTS = 10**11  # multiplications of two numbers that NC4 may take: about 10 s
BLOCK = 1 << 22  # numbers at a time from arrays in memory


@dataclass(frozen=True)
class Held:
    """Activations (N, D) that are in memory, with labels (N,), weights (K, D) and bias (K,) of the last layer."""

    activations: Tensor
    labels: Tensor
    weights: Tensor
    bias: Tensor | None = None
    source: str = "arrays"

    @property
    def examples(self) -> int:
        """How many there are."""
        return len(self.labels)

    def chunks(self, rows: int | None = None) -> Iterator[Piece]:
        """Activations and labels, `rows` at a time."""
        step = rows or max(1, BLOCK // self.activations.shape[1])
        return zip(self.activations.split(step), self.labels.split(step), strict=True)


@dataclass(frozen=True)
class Panel:
    """What is to be shown: a model's activations on some examples. Panels of one model have the same `net`."""

    net: str
    split: str
    source: Activations | Held

    @property
    def title(self) -> str:
        """The model and the split."""
        return ", ".join(part for part in (self.net, self.split) if part)


@dataclass(frozen=True)
class PanelView:
    """One panel as it was found, with the `counts` of the three classes.

    `places` says which examples the points are, counted from 0.
    NC1 to NC3 have the class means of the panel's own examples. NC4 is measured with the means of `nc4_means`, the
    model's first panel, on `nc4_examples` of the examples.
    """

    view: geometry.PlaneView
    places: Tensor
    counts: tuple[int, ...]
    collapse: geometry.NeuralCollapse
    nc4_examples: int
    nc4_means: str
    source: str


@dataclass(frozen=True)
class PenultimateView:
    """Panels of three classes. `kind` says how they were picked, or "given"; `reason` says why these.

    At most `most` examples of each class are shown in a panel.
    """

    panels: tuple[PanelView, ...]
    classes: tuple[int, int, int]
    names: tuple[str, str, str]
    kind: str
    reason: str
    most: int


def look(
    panels: Sequence[Panel],
    *,
    classes: Sequence[int] | None = None,
    pick: str = "mixed",
    names: Mapping[int, str] | None = None,
    most: int = 300,
    told: Told = quiet,
) -> PenultimateView:
    """Look at the penultimate layer of one model or several; each panel's examples are read twice, in chunks.

    Without `classes` they are picked by the templates of the first model (`geometry.pick_triples`), among the classes
    with the most examples: at most 2,000, each with 10 examples in every panel if there are three such. At most `most`
    points of each class are drawn; measures come from all examples. NC4 compares each example with every class: where
    that would take more than 10^11 multiplications, evenly spaced examples are taken.

    Panels are arranged by model; training examples come first, since a model's first panel is the unit of its pictures
    (`geometry.fair_panels`) and has the means for NC4. `told` hears what is being done, and how much of it is.

    >>> labels = torch.arange(4).repeat(20)
    >>> noise = torch.randn(80, 4, generator=torch.Generator().manual_seed(0))
    >>> layer = torch.eye(4) + torch.tensor([0.0, 0.0, 0.5, 0.5])[:, None]
    >>> found = look([Panel("net", "train", Held(3 * torch.eye(4)[labels] + 0.1 * noise, labels, layer))])
    >>> found.classes, found.panels[0].collapse.nc4, len(found.panels[0].view.points)
    ((0, 1, 2), 0.0, 60)
    """
    chosen = _arranged(panels)
    _check(chosen)
    check_choice("pick", pick, PICKS)
    total, done = sum(panel.source.examples for panel in chosen), 0
    counts, collapses = [], []
    means: dict[str, tuple[str, Tensor]] = {}
    for panel in chosen:
        source = panel.source
        with _about(panel):
            sums = geometry.ClassSums(*source.weights.shape)
            for activations, labels in telling(source.chunks(), "class means", told, total, done):
                sums.add(activations, labels)
            collapses.append(geometry.collapse_from_sums(sums, source.weights))
        counts.append(sums.counts)
        means.setdefault(panel.net, (panel.split or panel.net, sums.means))
        done += source.examples
    least = torch.stack(counts).amin(0)
    if classes is None:
        triple = _pick(chosen[0], least, pick)
    else:
        triple = geometry.Triple("given", _three(classes, len(least)), (math.nan,) * 3, "they were asked for")
    found, done = [], 0
    for panel, of_classes, collapse in zip(chosen, counts, collapses, strict=True):
        source, (nc4_means, centres) = panel.source, means[panel.net]
        sample = geometry.evenly(int(of_classes.sum()), max(1, NC4_PRODUCTS // source.weights.numel()))
        nc4 = Disagreement(sample, centres, source.weights, source.bias)
        chunks = telling(nc4.watching(source.chunks()), "three classes", told, total, done)
        three = tuple(of_classes[list(triple.classes)].tolist())
        seen, places = _seen(panel, chunks, triple.classes, sum(three), names or {}, most)
        collapse = replace(collapse, nc4=nc4.share())
        found.append(PanelView(seen, places, three, collapse, len(sample), nc4_means, source.source))
        done += source.examples
    shown = found[0].view.names
    return PenultimateView(tuple(found), triple.classes, shown, triple.kind, triple.reason, most)


def _arranged(panels: Iterable[Panel]) -> list[Panel]:
    given = list(panels)
    nets = list(dict.fromkeys(panel.net for panel in given))
    return sorted(given, key=lambda panel: (nets.index(panel.net), panel.split.lower() not in TRAINING))


def _check(panels: list[Panel]) -> None:
    if not panels:
        raise ValueError("need at least one panel")
    first = {panel.net: panel for panel in reversed(panels)}
    titles = [panel.title for panel in panels]
    for panel in panels:
        if titles.count(panel.title) > 1:
            raise ValueError(
                f"two panels are called '{panel.title}'; give each model and split a name of its own"
            )
        weights, layer = panel.source.weights, first[panel.net].source.weights
        if weights.shape != layer.shape or not bool((weights == layer).all()):
            raise ValueError(
                f"'{panel.title}' and '{first[panel.net].title}' have different last layers, so they are different "
                "models; give them different names"
            )
        count, others = len(weights), len(panels[0].source.weights)
        if count != others:
            raise ValueError(
                f"'{panel.title}' has {count} classes and '{panels[0].title}' {others}; models can only be compared "
                "if they have the same classes"
            )


def _pick(panel: Panel, least: Tensor, kind: str) -> geometry.Triple:
    """By the templates of the first model, among classes that have been trained and can be seen in every panel."""
    for enough in (ENOUGH, 1):
        known = (least >= enough).nonzero().flatten()
        if len(known) >= 3:
            break
    else:
        raise ValueError(
            f"only {len(known)} classes have examples in every panel, but three are needed; give files with more "
            "classes"
        )
    if len(known) > CANDIDATES:
        known = known[least[known].argsort(descending=True, stable=True)[:CANDIDATES]]
    with _about(panel):
        triple: geometry.Triple = getattr(geometry.pick_triples(panel.source.weights, known), kind)
    left = len(least) - len(known)
    if left == 0:
        return triple
    few = f"fewer than {enough} examples" if enough > 1 else "no examples"
    why = f" or fewer examples than the {CANDIDATES:,} most frequent" if len(known) == CANDIDATES else ""
    return replace(
        triple, reason=f"{triple.reason}; {left:,} classes with {few} in some panel{why} were left out"
    )


def _three(classes: Sequence[int], count: int) -> tuple[int, int, int]:
    if len(classes) != 3 or len(set(classes)) != 3 or not all(0 <= c < count for c in classes):
        raise ValueError(f"need three different classes from 0 to {count - 1}, not {list(classes)}")
    a, b, c = classes
    return a, b, c


def _seen(
    panel: Panel,
    chunks: Iterable[Piece],
    classes: tuple[int, int, int],
    count: int,
    names: Mapping[int, str],
    most: int,
) -> tuple[geometry.PlaneView, Tensor]:
    """The examples of three classes, of which there are `count`, on their plane, and which examples those are."""
    named: dict[str, Any] = {"net": panel.net, "split": panel.split, "most": most}
    named["names"] = {c: str(names.get(c, c)) for c in classes}
    with _about(panel), gather(chunks, classes, count) as rows:
        view = geometry.plane_view(rows.activations, rows.labels, panel.source.weights, classes, **named)
        # Of each class `plane_view` shows evenly spaced examples, all in the order of the data.
        places = [(rows.labels == c).nonzero().flatten() for c in classes]
        chosen = torch.cat([found[geometry.evenly(len(found), most)] for found in places])
        return view, rows.places[chosen.sort().values]


@contextmanager
def _about(panel: Panel) -> Iterator[None]:
    """Say which panel an instrument complained about; errors of files name their file."""
    try:
        yield
    except SofttargetsError:
        raise
    except ValueError as problem:
        raise ValueError(f"{panel.title}: {problem}") from None
