"""What one panel of a penultimate-layer picture shows, and the numbers beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.geometry.activations import LabelledActivations, as_templates, evenly, three_classes
from softtargets.geometry.plane import equilateral, sides, template_plane


@dataclass(frozen=True)
class PlaneMeasures:
    """The numbers shown with a picture, from all examples of the three classes, whether drawn or not.

    A spread is the deviation of examples from the mean of their class, sqrt(mean of |x - mean|^2), as a share of

    - the mean distance between the three class means: `spread` on the plane (what `cluster_spread` gives for the
      points), `spread_in_space` before projecting. It does not change when a model scales its activations.
    - the mean distance between the three templates: `spread_over_templates`, `spread_over_templates_in_space`. It
      grows with activations and shrinks with templates, while logits depend on their product alone: for the same model,
      or for models of one scale.

    `centres_equilateral` and `templates_equilateral` say how equilateral the triangle of class means on the plane and
    that of templates are, from 0 to 1 (see `equilateral`).
    """

    examples: int
    spread: float
    spread_in_space: float
    spread_over_templates: float
    spread_over_templates_in_space: float
    centres_equilateral: float
    templates_equilateral: float


@dataclass(frozen=True)
class PlaneView:
    """One panel: points (N, 2) with labels (N,) of three classes, and where templates and class means (3, 2) lie.

    `net` and `split` say whose activations these are; panels of one model are drawn on one scale.
    """

    points: Tensor
    labels: Tensor
    classes: tuple[int, int, int]
    names: tuple[str, str, str]
    templates: Tensor
    centres: Tensor
    measures: PlaneMeasures
    net: str = ""
    split: str = ""

    def __repr__(self) -> str:
        shown, of = len(self.labels), self.measures.examples
        return (
            f"PlaneView({', '.join(self.names)}: {shown} of {of} examples, spread {self.measures.spread:.3g}, "
            f"triangle {self.measures.centres_equilateral:.3g})"
        )

    @property
    def title(self) -> str:
        """The model and the split."""
        return ", ".join(part for part in (self.net, self.split) if part)


def plane_view(
    activations: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike,
    classes: Sequence[int],
    *,
    names: Mapping[int, str] | Sequence[str] | None = None,
    most: int | None = 300,
    net: str = "",
    split: str = "",
    ignore_index: int = -100,
) -> PlaneView:
    """Examples of three classes on the plane through their templates; Müller et al. 2019, figures 1 and 7.

    Activations (..., D) with labels (...) and templates (K, D). At most `most` examples of each class are shown, evenly
    spaced in the order of the data, so that the picture is the same each time; the measures come from all of them.
    `names` are by class. For a translation model, classes are tokens and activations those of the positions at which
    the tokens are to be predicted; padding has the label `ignore_index`. Only the rows of the three classes are read,
    in chunks.

    >>> points = torch.tensor([[3.0, 0.0, 0.0], [5.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
    >>> view = plane_view(points, torch.tensor([0, 0, 1, 2]), torch.eye(3), [0, 1, 2], most=1, split="training")
    >>> view.labels, view.measures.examples, round(view.measures.centres_equilateral, 6)
    (tensor([0, 1, 2]), 4, 1.0)
    """
    layer = as_templates(weights, least=2)
    chosen = three_classes(classes, len(layer))
    examples = LabelledActivations(activations, labels, len(layer), layer.shape[1], ignore_index)
    places = [(examples.labels == c).nonzero().flatten() for c in chosen]
    for c, found in zip(chosen, places, strict=True):
        if len(found) == 0:
            raise ValueError(f"there are no examples of class {c}; choose classes that have some")
    examples.check(torch.cat(places))

    template_plane(layer, chosen)  # refuses templates that are on one line in their own precision
    exact = layer[chosen].double().cpu()
    basis = template_plane(exact, [0, 1, 2])
    means, scatter, flat_scatter = _moments(examples, places, basis)
    centres, templates = means @ basis, exact @ basis
    count = sum(map(len, places))
    deviation, flat_deviation = math.sqrt(scatter / count), math.sqrt(flat_scatter / count)
    between_templates = sum(sides(exact)) / 3

    shown = torch.cat([found[evenly(len(found), most)] for found in places])
    shown = shown.sort().values
    points = torch.cat([values.cpu() @ basis for values, _ in examples.chunks(shown)])
    a, b, c = chosen
    return PlaneView(
        points=points,
        labels=examples.labels[shown],
        classes=(a, b, c),
        names=(_name(names, a), _name(names, b), _name(names, c)),
        templates=templates,
        centres=centres,
        measures=PlaneMeasures(
            examples=count,
            spread=_ratio(flat_deviation, sum(sides(centres)) / 3),
            spread_in_space=_ratio(deviation, sum(sides(means)) / 3),
            spread_over_templates=flat_deviation / between_templates,
            spread_over_templates_in_space=deviation / between_templates,
            centres_equilateral=equilateral(centres) if sum(sides(centres)) > 0 else math.nan,
            templates_equilateral=equilateral(templates),
        ),
        net=net,
        split=split,
    )


def _moments(
    examples: LabelledActivations, places: list[Tensor], basis: Tensor
) -> tuple[Tensor, float, float]:
    """Means (3, D), and the sum of squared distances from them in space and on the plane; two passes, no D x D."""
    means, total, flat = [], 0.0, 0.0
    for found in places:
        sums = [values.sum(0).cpu() for values, _ in examples.chunks(found)]
        mean = torch.stack(sums).sum(0) / len(found)
        for values, _ in examples.chunks(found):
            apart = values.cpu() - mean
            total += float(apart.square().sum())
            flat += float((apart @ basis).square().sum())
        means.append(mean)
    return torch.stack(means), total, flat


def _name(names: Mapping[int, str] | Sequence[str] | None, c: int) -> str:
    if names is None:
        return str(c)
    try:
        return str(names[c])
    except (KeyError, IndexError):
        raise ValueError(f"there is no name for class {c} among the {len(names)} names") from None


def _ratio(deviation: float, distance: float) -> float:
    if distance:
        return deviation / distance
    return math.inf if deviation else math.nan
