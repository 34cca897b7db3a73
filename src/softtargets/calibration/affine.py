"""The best softmax(scale * logits + bias): what vector scaling and bias-corrected temperatures have in common.

With a ridge on biases, and on scales where each class has its own, so that nothing runs away (see `vector_scaling`). By
L-BFGS (scipy), starting from the temperature where that is better than to change nothing, in coordinates in which the
curvature there is about 1 in every direction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays import ArrayLike, as_tensor, single_or_double
from softtargets.calibration.chunks import Chunks, WeightedPiece, fold_of
from softtargets.calibration.temperature import HIGHEST, LOWEST, TemperatureFit, temperature_scaling
from softtargets.exceptions import PrecisionError

RIDGE = 0.01  # as if each number were known beforehand to lie about 10 around the one that changes nothing
MOST_PASSES = 300
STEPS = 12  # before curvatures are looked at again
DENSE = 2048  # parameters up to which their curvatures fit a matrix

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class AffineFit:
    """What both ways of scaling tell of their fit, with the biases (K,), in double precision.

    `nll_before` and `nll_after` are the mean negative log-likelihood in nats of the examples it was fitted to, as
    they were and after scaling: how well it fits other examples is what `cross_fit` estimates. `absent` are classes
    without an example, of which only the ridge says something. `passes` says how often the data was read.
    """

    bias: Tensor
    nll_before: float
    nll_after: float
    examples: int
    absent: tuple[int, ...]
    converged: bool
    passes: int

    def __repr__(self) -> str:
        told = f"{len(self.bias)} classes, {self.examples} examples, NLL {self.nll_before:.4g} -> {self.nll_after:.4g}"
        temperature = getattr(self, "temperature", None)
        return f"{type(self).__name__}({told}{'' if temperature is None else f', T = {temperature:.4g}'})"

    @property
    def note(self) -> str:
        """What to know about this fit, in a sentence; empty where there is nothing unusual."""
        if not self.converged:
            return (
                f"The fit did not converge in {MOST_PASSES} passes over the data, so a better likelihood may be "
                "possible."
            )
        if self.absent:
            return (
                f"{len(self.absent)} of the {len(self.bias)} classes, such as class {self.absent[0]}, have no "
                "examples here, so their numbers are decided by the ridge alone."
            )
        return ""

    def _scaled(self, logits: ArrayLike, scale: Tensor | float) -> Tensor:
        """scale * logits + bias, in the precision of the logits, at least single, and on their device."""
        z, classes = single_or_double(as_tensor(logits)), len(self.bias)
        if z.ndim == 0 or z.shape[-1] != classes:
            raise ValueError(f"logits must be (..., {classes}) for {classes} classes, not {tuple(z.shape)}")
        factor = scale.to(z) if isinstance(scale, Tensor) else scale
        return z * factor + self.bias.to(z)


class Affine:
    """The best softmax(scale * logits + bias). Parameters are all biases, then all scales.

    `tied` has one scale for all classes, in the range of 1/T, and no ridge on it. It does not see a constant that is
    added to a row, so that the greatest logit counts as 0.
    """

    def __init__(self, chunks: Chunks, ridge: float, tied: bool) -> None:
        if not 0 <= ridge < math.inf:
            raise ValueError(f"ridge must be 0 or a positive number, not {ridge}")
        self.chunks, self.ridge, self.tied = chunks, ridge, tied
        self.passes = 0

    def fit(self) -> tuple[Tensor, dict[str, Any]]:
        """The scale of each class, and the fields of an `AffineFit`."""
        start = temperature_scaling(self.chunks)
        self.passes, self.examples = start.passes, start.examples
        self._count()
        scales = np.full(1 if self.tied else self.classes, self._begin(start))
        place = np.concatenate([np.zeros(self.classes), scales])
        value, slope = self._loss(place)
        converged = False
        while not converged and self.passes < MOST_PASSES:
            # Curvatures are looked at again on the way: those of the start say little about the end.
            with np.errstate(all="ignore"):  # a step too far is only not taken
                place, value, slope, converged = self._descend(place, value, slope)
        bias, scale = self._split(place)
        after = value - self._penalty(bias, scale)
        if after > start.nll_before:  # by rounding
            bias, scale, after = np.zeros_like(bias), np.ones_like(scale), start.nll_before
        return torch.from_numpy(scale), {
            "bias": torch.from_numpy(bias),
            "nll_before": start.nll_before,
            "nll_after": after,
            "examples": self.examples,
            "absent": tuple(np.flatnonzero(self.counts == 0).tolist()),
            "converged": converged,
            "passes": self.passes,
        }

    def _descend(self, origin: Numbers, value: float, slope: Numbers) -> tuple[Numbers, float, Numbers, bool]:
        """Some steps of L-BFGS: the best place, its loss and gradient, and whether that is the end of it."""
        from scipy.optimize import minimize  # takes a while to import, and most of this room can do without

        curvature = self._curvature(origin, slope)
        if not np.isfinite(curvature).all():
            largest = max(float(z.abs().max()) for z, _ in self.chunks)
            raise PrecisionError(
                f"the logits are too large for their precision (up to {largest:.3g}); divide all of them by the same "
                "number, or look for a row in which something went wrong"
            )
        units = Units(curvature)
        best = origin, value, slope

        def objective(u: Numbers) -> tuple[float, Numbers]:
            nonlocal best
            if not u.any():
                return value, units.solve(slope)
            here = (place := origin + units.solve(u, transposed=True)), *self._loss(place)
            if here[1] < best[1]:
                best = here
            return here[1], units.solve(here[2])

        bounds = None
        if self.tied:  # the last parameter is the last coordinate times a number
            ends = [(end - origin[-1]) / units.last for end in (1 / HIGHEST, 1 / LOWEST)]
            bounds = [(None, None)] * self.classes + [tuple(ends)]
        precision = {"gtol": 1e-8, "ftol": 1e-15} if self.double else {"gtol": 1e-5, "ftol": 1e-8}
        result = minimize(
            objective,
            np.zeros_like(origin),
            jac=True,
            bounds=bounds,
            method="L-BFGS-B",
            options={"maxfun": MOST_PASSES, "maxiter": STEPS, **precision},
        )
        # A line search that fails (status 2) when there is nothing left to gain has come down to rounding.
        ended = result.status == 0 or (result.status == 2 and value - best[1] <= 1e-7 * max(1.0, abs(value)))
        return *best, ended

    def _count(self) -> None:
        """How often each class is the label, and the mean of its logits then: all that a gradient needs of labels."""
        sums = torch.zeros(2, 1, dtype=torch.float64, device="cpu")
        self.double, self.total = True, 0.0
        for z, y, w in self._pieces():
            chosen = z.gather(1, y.unsqueeze(1)).squeeze(1).double()
            chosen = chosen if w is None else chosen * w
            counts = torch.bincount(y, w, minlength=z.shape[1]).double()
            self.total += float(len(z) if w is None else w.sum())
            sums = sums + torch.stack([counts, torch.bincount(y, chosen, minlength=z.shape[1])]).cpu()
            self.double &= z.dtype == torch.float64
        self.passes += 1
        self.counts, self.labelled = (sums / self.total).numpy()
        self.classes = len(self.counts)
        if self.ridge == 0 and (absent := np.flatnonzero(self.counts == 0)).size:
            raise ValueError(
                f"class {absent[0]} has no examples, so its bias has no optimum without a ridge; leave ridge at "
                f"{RIDGE:g}"
            )

    def _begin(self, start: TemperatureFit) -> float:
        inverse = 1 / start.temperature
        price = 0.0 if self.tied else self.ridge / 2 * self.classes * (inverse - 1) ** 2 / self.total
        return inverse if start.nll_after + price < start.nll_before else 1.0

    def _curvature(self, place: Numbers, slope: Numbers) -> Numbers:
        """Second derivatives of the mean loss at a place, of a sample: a matrix, or its diagonal if that is large.

        With p the probabilities and J the derivatives of scaled logits by parameters, J' (diag(p) - p p') J.
        """
        k, size = self.classes, self.classes + (1 if self.tied else self.classes)
        every = max(1, self.examples // max(4096, 8 * size))
        matrix = torch.zeros((size, size) if size <= DENSE else (size,), dtype=torch.float64, device="cpu")
        sums = torch.zeros(3, k, dtype=torch.float64, device="cpu")
        start = rows = 0
        added, factor = map(torch.from_numpy, self._split(place))
        for z, _, _ in self._pieces():
            chosen = (fold_of(start, len(z), every) == 0).nonzero().flatten()
            start += len(z)
            rows += len(chosen)
            z = z[chosen.to(z.device)]
            added, factor = added.to(z), factor.to(z)
            p = torch.addcmul(added, z, factor).softmax(1)
            pz = p * z
            sums += torch.stack([p.sum(0), pz.sum(0), (pz * z).sum(0)]).cpu()
            x = torch.cat([p, pz.sum(1, keepdim=True) if self.tied else pz], dim=1)
            matrix -= (x.T @ x if matrix.ndim == 2 else (x * x).sum(0)).cpu()
        self.passes += 1
        p, pz, pzz = (sums / rows).numpy()
        found: Numbers = (matrix / rows).numpy()
        ridge = self.ridge / self.total + 1e-12
        # Where there is as yet little probability and so little curvature, the gradient says how much there will be.
        diagonal = np.concatenate([p, pzz.sum(keepdims=True) if self.tied else pzz]) + np.abs(slope) + ridge
        if found.ndim == 1:
            return np.maximum(found + diagonal, ridge)
        found[np.diag_indices(size)] += diagonal
        between = np.arange(k), (k if self.tied else k + np.arange(k))
        found[between] += pz
        found[between[::-1]] += pz
        # A constant for all biases changes nothing, but no direction may be without curvature.
        found[:k, :k] += p.mean() / k
        return found

    def _split(self, place: Numbers) -> tuple[Numbers, Numbers]:
        """A bias and a scale for each class; a constant for all biases changes nothing and is taken away."""
        bias, scale = place[: self.classes], place[self.classes :]
        return bias - bias.mean(), np.broadcast_to(scale, (self.classes,)).copy()

    def _penalty(self, bias: Numbers, scale: Numbers) -> float:
        squares = float((bias**2).sum()) + (0.0 if self.tied else float(((scale - 1) ** 2).sum()))
        return self.ridge / 2 * squares / self.total

    def _loss(self, place: Numbers) -> tuple[float, Numbers]:
        """The mean loss with its ridge, and its gradient, in one pass over the data."""
        bias, scale = self._split(place)
        nll = 0.0
        sums = torch.zeros(2, self.classes, dtype=torch.float64, device="cpu")
        added, factor = map(torch.from_numpy, (bias, scale))
        for z, y, w in self._pieces():
            added, factor = added.to(z), factor.to(z)
            a = torch.addcmul(added, z, factor)
            a -= a.amax(1, keepdim=True)
            own = a.gather(1, y.unsqueeze(1)).squeeze(1)
            share = a.exp_().sum(1)
            lost = share.double().log() - own
            nll += float(lost.sum() if w is None else lost @ w)
            share.reciprocal_()
            share = share if w is None else share.mul_(w.to(share))
            sums += torch.stack([share @ a, share @ a.mul_(z)]).cpu()
        self.passes += 1
        p, pz = (sums / self.total).numpy()
        ridge = self.ridge / self.total
        to_bias = p - self.counts + ridge * bias
        to_scale = pz - self.labelled
        last = to_scale.sum(keepdims=True) if self.tied else to_scale + ridge * (scale - 1)
        value = nll / self.total + self._penalty(bias, scale)
        return value, np.concatenate([to_bias - to_bias.mean(), last])

    def _pieces(self) -> Iterable[WeightedPiece]:
        """Those of ties have 0 as the greatest logit of each row."""
        pieces = self.chunks.weighted()
        return ((z - z.amax(1, keepdim=True), y, w) for z, y, w in pieces) if self.tied else pieces


class Units:
    """Coordinates u in which curvatures L L' are 1: parameters move by the inverse of L' times u."""

    def __init__(self, curvature: Numbers) -> None:
        if curvature.ndim == 1:
            self.root: Numbers = np.sqrt(curvature)
        else:
            try:
                root = np.linalg.cholesky(curvature + np.diag(curvature.diagonal() * 1e-7))
            except np.linalg.LinAlgError:  # in single precision sums of squares may come out below zero
                root = np.sqrt(curvature.diagonal())
            self.root = root.astype(np.float64)
        self.last = 1 / float(self.root.flat[-1])

    def solve(self, vector: Numbers, transposed: bool = False) -> Numbers:
        """The gradient by u, from that by parameters; transposed, the change of parameters from u."""
        from scipy.linalg import solve_triangular  # imported late as above

        if self.root.ndim == 1:
            return vector / self.root
        solved: Numbers = solve_triangular(
            self.root, vector, lower=True, trans=int(transposed), check_finite=False
        )
        return solved
