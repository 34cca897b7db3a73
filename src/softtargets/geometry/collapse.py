"""Neural collapse: the four measures of Papyan, Han and Donoho 2020."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.geometry.activations import (
    CHUNK,
    LabelledActivations,
    as_activations,
    as_real,
    as_templates,
    evenly,
)
from softtargets.geometry.class_sums import ClassSums
from softtargets.geometry.simplex import Simplex, simplex


@dataclass(frozen=True)
class NeuralCollapse:
    """NC1 to NC4 over the classes that have examples; each number is 0 when collapse is complete.

    See `neural_collapse` for the formulas. `nc4` is NaN where nobody has looked at examples a second time.
    """

    classes: int
    examples: int
    nc1: float
    nc2_means: Simplex
    nc2_weights: Simplex
    nc3: float
    nc4: float

    def __repr__(self) -> str:
        return (
            f"NeuralCollapse({self.examples:,} examples, {self.classes} classes: NC1 {self.nc1:.3g}, NC2 of means "
            f"{_short(self.nc2_means)}, NC2 of weights {_short(self.nc2_weights)}, NC3 {self.nc3:.3g}, "
            f"NC4 {self.nc4:.3g})"
        )


def _short(found: Simplex) -> str:
    """Norms, angles and how far the angles are from the greatest, in this order."""
    return f"{found.equal_norms:.3g}/{found.equal_angles:.3g}/{found.maximal_angles:.3g}"


def neural_collapse(
    activations: ArrayLike,
    labels: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    ignore_index: int = -100,
    centre_weights: bool = False,
    nc4_most: int | None = None,
) -> NeuralCollapse:
    """How far the penultimate layer has collapsed; Papyan, Han and Donoho 2020 (PNAS 117, 24652), figures 2 to 7.

    Activations h (..., D) with labels (...), templates w (K, D) and bias (K,) of the last layer. With the means mu_c
    of the C classes that have examples, their mean mu_G, and M with rows mu_c - mu_G:

        Sigma_W = mean over examples of (h - mu_c) (h - mu_c)^T,      Sigma_B = mean over classes of M_c M_c^T
        NC1 = trace(Sigma_W pinv(Sigma_B)) / C                        variability within classes vanishes
        NC2 = equal norms, equal angles, maximal angles               of M, and of w: see `simplex`
        NC3 = |W / |W|_F - M / |M|_F|_F^2                             templates become means; from 0 to 4
        NC4 = share of h with argmax of w h + b != class of the nearest mean

    (Some programs leave out the division by C in NC1.) The paper's classes are balanced; where they are not, mu_G and
    Sigma_B count each class once and Sigma_W each example once. The rank of Sigma_B is taken to be C - 1 at most; its
    pseudo-inverse comes from the singular values of M: NC1 = sum over r of v_r^T Sigma_W v_r / s_r^2.

    As in the paper, templates are taken as they are. A vector common to all templates changes no probability but NC2
    and NC3; `centre_weights` takes it away first.

    Class means are those of the examples given; the paper's are of the training set. For NC4 on held-out examples, use
    `nearest_mean_disagreement` with the means of training. For translation, classes are tokens, and padding is what has
    the label `ignore_index`; classes without examples are left out everywhere, but for the decision w h + b in NC4.
    Examples are read twice, in chunks; NC4 compares each with every class, which for large vocabularies takes longest:
    `nc4_most` takes at most that many, evenly spaced. When activations do not fit into memory, add them to `ClassSums`
    batch by batch and ask `collapse_from_sums`.

    >>> means = torch.tensor([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)]])
    >>> labels = torch.arange(3).repeat(5)
    >>> noise = 0.1 * torch.randn(15, 2, generator=torch.Generator().manual_seed(0))
    >>> found = neural_collapse(7 * means[labels] + noise, labels, weights=2 * means)
    >>> f"{found.nc1:.5f} {found.nc2_means.equal_angles:.3f} {found.nc3:.5f} {found.nc4:.1f}"
    '0.00022 0.001 0.00000 0.0'
    """
    templates = as_templates(weights)
    shift = _checked_bias(bias, len(templates))
    count, size = templates.shape
    sums = ClassSums(count, size, device=templates.device)
    sums.add(activations, labels, ignore_index)
    _check_classes(sums)
    examples = LabelledActivations(activations, labels, count, size, ignore_index)
    chosen = evenly(len(examples), nc4_most)
    again = examples.chunks(chosen, width=count, device=templates.device)
    disagree = _disagreement((values for values, _ in again), sums.means, templates, shift)
    return collapse_from_sums(sums, templates, centre_weights=centre_weights, nc4=disagree)


def collapse_from_sums(
    sums: ClassSums, weights: ArrayLike, *, centre_weights: bool = False, nc4: float = math.nan
) -> NeuralCollapse:
    """The same from sums of one pass; NC4 needs the examples again, so pass it if you have it.

    >>> sums = ClassSums(classes=2, size=3)
    >>> sums.add(torch.tensor([[1.0, 0.0, 0.0], [3.0, 0.0, 0.0], [-2.0, 0.0, 0.0]]), torch.tensor([0, 0, 1]))
    >>> found = collapse_from_sums(sums, torch.tensor([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    >>> round(found.nc1, 6), found.nc3  # 2/3 within, 4 between, halved
    (0.083333, 0.0)
    """
    templates = as_templates(weights)
    if templates.shape != sums.means.shape:
        raise ValueError(
            f"weights must have the shape of the sums, {tuple(sums.means.shape)}, not {tuple(templates.shape)}"
        )
    _check_classes(sums)
    present = sums.present
    means = sums.means[present]
    centred = means - means.mean(0)
    size = float(torch.linalg.vector_norm(means))
    if float(torch.linalg.vector_norm(centred)) <= 1e-14 * size:
        raise ValueError("the means of all classes coincide, so there is nothing that could have collapsed")
    chosen = templates.to(centred.device)[present].double()
    if centre_weights:
        chosen = chosen - chosen.mean(0)
    if not bool(chosen.any()):
        raise ValueError("the templates of all classes are zero, so they have no direction")
    return NeuralCollapse(
        classes=len(present),
        examples=sums.examples,
        nc1=_within_over_between(sums.scatter / sums.examples, centred, size),
        nc2_means=simplex(centred),
        nc2_weights=simplex(chosen),
        nc3=float((_unit(chosen) - _unit(centred)).square().sum()),
        nc4=nc4,
    )


def nearest_mean_disagreement(
    activations: ArrayLike, means: ArrayLike, weights: ArrayLike, bias: ArrayLike | None = None
) -> float:
    """NC4: the share of activations (N, D) for which the model predicts another class than that of the nearest mean.

    Means (K, D) may be those of other examples, as of the training set. Classes whose mean is NaN are never the
    nearest. Ties go to the first class, for both.

    >>> means = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> activations, bias = torch.tensor([[3.0, 0.1], [3.0, 2.9]]), torch.tensor([0.0, 1.0])
    >>> nearest_mean_disagreement(activations, means, weights=means, bias=bias)
    0.5
    """
    templates = as_templates(weights)
    centres = as_real(means, "means").to(templates.device).double()
    if centres.shape != templates.shape:
        raise ValueError(
            f"means must have the shape of the weights, {tuple(templates.shape)}, not {tuple(centres.shape)}"
        )
    found = as_activations(activations, templates.shape[1])
    if len(found) == 0:
        raise ValueError("need at least one example")
    shift = _checked_bias(bias, len(templates))
    rows = max(1, CHUNK // max(templates.shape))
    chunks = (some.to(templates.device).double() for some in found.split(rows))
    return _disagreement(chunks, centres, templates, shift)


def _disagreement(chunks: Iterable[Tensor], means: Tensor, templates: Tensor, bias: Tensor | None) -> float:
    """|h - mu|^2 is smallest where (h - g) (mu - g) - |mu - g|^2 / 2 is largest; g, the middle, keeps numbers small."""
    known = (~means.isnan().any(1)).nonzero().flatten()
    if len(known) == 0:
        raise ValueError("no class has a mean")
    middle = means[known].mean(0)
    centred = means[known] - middle
    halves = centred.square().sum(1) / 2
    layer = templates.double()
    shift = None if bias is None else bias.to(device=layer.device, dtype=layer.dtype)
    apart, count = 0, 0
    for values in chunks:
        nearest = known[((values - middle) @ centred.T - halves).argmax(1)]
        logits = values @ layer.T
        said = (logits if shift is None else logits + shift).argmax(1)
        apart += int((nearest != said).sum())
        count += len(values)
    return apart / count


def _within_over_between(within: Tensor, centred: Tensor, size: float) -> float:
    classes, dimensions = centred.shape
    # The singular values and right vectors of many rows are those of the triangle of their QR decomposition.
    tall = torch.linalg.qr(centred, mode="r").R if classes > dimensions else centred
    _, values, axes = torch.linalg.svd(tall, full_matrices=False)
    rounding = torch.finfo(torch.float64).eps * max(max(classes, dimensions) * float(values[0]), size)
    rank = min(classes - 1, int((values > rounding).sum()))
    values, axes = values[:rank], axes[:rank]
    along = torch.linalg.vecdot(axes @ within, axes)
    return float((along / values.square()).sum())


def _unit(matrix: Tensor) -> Tensor:
    unit: Tensor = matrix / torch.linalg.vector_norm(matrix)
    return unit


def _check_classes(sums: ClassSums) -> None:
    found = len(sums.present)
    if found < 2:
        raise ValueError(f"need examples of at least two classes, not of {found}")


def _checked_bias(bias: ArrayLike | None, classes: int) -> Tensor | None:
    if bias is None:
        return None
    found = as_real(bias, "bias")
    if found.shape != (classes,):
        raise ValueError(f"bias must be ({classes},), one number for each class, not {tuple(found.shape)}")
    if not bool(torch.isfinite(found).all()):
        raise ValueError("bias contains NaN or infinite values")
    return found
