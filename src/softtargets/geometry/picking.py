"""Which three classes to look at: three close ones, three far ones, or two close ones and a far one."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.geometry.activations import as_real

BLOCK = 1 << 21  # distances at a time: 16 MiB
GRID = 1e-12  # squared distances closer than this, in mean squared norms, are equal: the rest is rounding

_REASONS = {
    "close": "{x}, {y} and {z} are closer together ({xy}, {xz} and {yz}) than any other of {n} classes and its two "
    "nearest",
    "mixed": "{x} and {y} are the closest of {n} classes ({xy}), {z} is the farthest from both ({xz} and {yz})",
    "far": "{x} and {y} are the farthest of {n} classes ({xy}), {z} is the farthest from both ({xz} and {yz})",
}


@dataclass(frozen=True)
class Triple:
    """Three classes, the distances between them (first to second, first to third, second to third), and why these."""

    kind: str
    classes: tuple[int, int, int]
    sides: tuple[float, float, float]
    reason: str


@dataclass(frozen=True)
class Triples:
    """Three close classes; two close ones and one that is far from both; three far ones."""

    close: Triple
    mixed: Triple
    far: Triple


def pick_triples(vectors: ArrayLike, candidates: Iterable[int] | None = None) -> Triples:
    """Choose classes by the distances between their templates (K, D), or between class means.

    Müller et al. 2019, figure 1, has three different classes of ImageNet (tench, meerkat, cleaver) and two similar
    ones with a third (toy poodle, miniature poodle, tench), picked by what they mean. A model puts the templates of
    classes that it finds similar close together; so:

    - close: of all classes with their two nearest, those with the smallest sum of distances;
    - mixed: the two closest classes, and the one whose distance to the nearer of both is largest;
    - far: the two farthest classes, and the one whose distance to the nearer of both is largest.

    Distances are Euclidean. Of equal choices (up to rounding) that with the lowest classes is taken. Of classes that
    coincide only the first can be picked, since two of them span no plane with a third. Tokens that rarely occur
    have templates that were barely trained: pass as `candidates` those with enough examples, such as
    `(sums.counts >= 100).nonzero().flatten()`; with class means pass `sums.present`, since other classes have none.

    Distances are computed in blocks of rows, K^2 D multiplications in all, never K x K numbers at once.

    >>> found = pick_triples(torch.tensor([[0.0, 0.0], [0.0, 1.0], [2.0, 0.5], [9.0, 0.0], [0.0, 30.0]]))
    >>> found.close.classes, found.mixed.classes, found.far.classes
    ((0, 1, 2), (0, 1, 4), (3, 4, 1))
    >>> print(found.mixed.reason)
    0 and 1 are the closest of 5 classes (1), 4 is the farthest from both (30 and 29)
    """
    given = as_real(vectors, "vectors")
    if given.ndim != 2 or given.shape[1] < 2:
        raise ValueError(f"need vectors (K, D) with D of at least 2, not {tuple(given.shape)}")
    chosen = _candidates(candidates, len(given)).to(given.device)
    found = given[chosen].double()
    finite = torch.isfinite(found).all(1)
    if not bool(finite.all()):
        number = int(chosen[(~finite).nonzero()[0]])
        raise ValueError(
            f"the vector of class {number} is not finite; leave out classes without examples (candidates=sums.present)"
        )
    first = _first_of_each(found)
    found, names = found[first], chosen[first]
    while len(names) >= 3:
        distances = _BetweenVectors(found)
        swept = _sweep(distances)
        earlier = swept.nearest[:, 0] < torch.arange(len(names), device=names.device)
        different = (swept.near[:, 0] > 0) | ~earlier
        if bool(different.all()):
            return _pick(distances, swept, names.tolist())
        found, names = found[different], names[different]  # without those that differ only by rounding
    raise ValueError(
        f"need at least three different vectors among the {len(chosen)} classes, not {len(names)}"
    )


def pick_triples_by_confusion(counts: ArrayLike, candidates: Iterable[int] | None = None) -> Triples:
    """Choose classes by how often they are confused, from a confusion matrix (K, K) with true classes in rows.

    The distance of two classes is 1 minus the mean of the two rates at which one is taken for the other; the rules are
    those of `pick_triples`. Classes without examples are left out. Classes that are never confused are all equally
    far (1), and the lowest are taken.

    >>> found = pick_triples_by_confusion(torch.tensor([[8, 2, 0, 0], [1, 8, 1, 0], [0, 1, 9, 0], [0, 0, 0, 10]]))
    >>> found.close.classes, found.mixed.classes, found.far.classes
    ((0, 1, 2), (0, 1, 3), (0, 2, 3))
    """
    given = as_real(counts, "counts").double()
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise ValueError(f"a confusion matrix must be (classes, classes), not {tuple(given.shape)}")
    if not bool((torch.isfinite(given) & (given >= 0)).all()):
        raise ValueError("counts of a confusion matrix must be finite numbers of at least 0")
    seen = given.sum(1) > 0
    if candidates is None:
        candidates = seen.nonzero().flatten().tolist()
    chosen = _candidates(candidates, len(given)).to(given.device)
    if not bool(seen[chosen].all()):
        number = int(chosen[(~seen[chosen]).nonzero()[0]])
        raise ValueError(
            f"class {number} has no examples in the confusion matrix; leave it out of the candidates"
        )
    rates = given[chosen][:, chosen] / given[chosen].sum(1, keepdim=True)
    distances = _Distances(1 - (rates + rates.T) / 2)
    return _pick(distances, _sweep(distances), chosen.tolist())


class _Distances:
    """Distances between N classes, rounded so that equal ones are equal however they were computed.

    `rows` and `pairs` give ranks, which grow with distance; `lengths` makes distances of them. Of a matrix of distances
    (N, N) ranks are the distances themselves.
    """

    def __init__(self, distances: Tensor) -> None:
        self._rows = distances.round(decimals=12).clamp(min=GRID)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, start: int, stop: int) -> Tensor:
        return self._rows[start:stop].clone()

    def pairs(self, first: Tensor, second: Tensor) -> Tensor:
        return self._rows[first, second]

    def lengths(self, ranks: Tensor) -> Tensor:
        return ranks


class _BetweenVectors(_Distances):
    """Ranks are squared distances in steps of the grid, which are cheaper."""

    def __init__(self, vectors: Tensor) -> None:
        centred = vectors - vectors.mean(0)
        self._step = GRID * float(centred.square().sum(1).mean()) or 1.0
        self._rows = centred / math.sqrt(self._step)
        self._twice = -2 * self._rows.T
        self._squares = self._rows.square().sum(1)

    def rows(self, start: int, stop: int) -> Tensor:
        found = torch.addmm(self._squares, self._rows[start:stop], self._twice)
        return found.add_(self._squares[start:stop, None]).round_()

    def pairs(self, first: Tensor, second: Tensor) -> Tensor:
        return (self._rows[first] - self._rows[second]).square().sum(1).round()

    def lengths(self, ranks: Tensor) -> Tensor:
        return ranks.clamp(min=0).mul(self._step).sqrt()


def _first_of_each(vectors: Tensor) -> Tensor:
    """The places of rows that no earlier row equals, in order."""
    kinds, which = vectors.unique(dim=0, return_inverse=True)
    places = torch.arange(len(vectors), device=vectors.device)
    first = places.new_full((len(kinds),), len(vectors)).scatter_reduce(0, which, places, "amin")
    return first.sort().values


def _pick(distances: _Distances, swept: _Swept, names: list[int]) -> Triples:
    nearest, farthest, near, far = swept
    every = torch.arange(len(names), device=near.device)
    across = distances.pairs(nearest[:, 0], nearest[:, 1])
    around = distances.lengths(near).sum(1) + distances.lengths(across)
    # Sums of equal sides in another order differ in the last bit.
    middle = int((around / distances.lengths(far.max())).round(decimals=9).argmin())

    def third(pair: tuple[int, int]) -> int:
        reach = torch.minimum(*(distances.rows(one, one + 1)[0] for one in pair))
        return int(reach.index_fill_(0, torch.tensor(pair, device=reach.device), -1).argmax())

    def described(kind: str, places: tuple[int, int, int]) -> Triple:
        a, b, c = places
        one, other = every[[a, a, b]], every[[b, c, c]]
        ab, ac, bc = distances.lengths(distances.pairs(one, other)).tolist()
        x, y, z = (names[place] for place in places)
        numbers = {"xy": f"{ab:.3g}", "xz": f"{ac:.3g}", "yz": f"{bc:.3g}"}
        reason = _REASONS[kind].format(x=x, y=y, z=z, n=len(names), **numbers)
        return Triple(kind, (x, y, z), (ab, ac, bc), reason)

    first, second, last = sorted((middle, *nearest[middle].tolist()))
    start, end = int(near[:, 0].argmin()), int(far.argmax())
    close_pair, far_pair = (start, int(nearest[start, 0])), (end, int(farthest[end]))
    return Triples(
        close=described("close", (first, second, last)),
        mixed=described("mixed", (*close_pair, third(close_pair))),
        far=described("far", (*far_pair, third(far_pair))),
    )


class _Swept(NamedTuple):
    """For each class its two nearest (N, 2) and its farthest (N,), and their ranks; the first of equals."""

    nearest: Tensor
    farthest: Tensor
    near: Tensor
    far: Tensor


def _sweep(distances: _Distances) -> _Swept:
    count, like = len(distances), distances.rows(0, 1)
    # Made once: small tensors kept between large ones that come and go would leave holes in memory.
    found = _Swept(
        nearest=torch.empty(count, 2, dtype=torch.int64, device=like.device),
        farthest=torch.empty(count, dtype=torch.int64, device=like.device),
        near=like.new_empty(count, 2),
        far=like.new_empty(count),
    )
    rows = max(1, BLOCK // count)
    for start in range(0, count, rows):
        stop = min(start + rows, count)
        block = distances.rows(start, stop)
        itself = torch.arange(stop - start, device=block.device)
        block[itself, itself + start] = 0
        found.far[start:stop], found.farthest[start:stop] = block.max(1)
        block[itself, itself + start] = torch.inf
        for place in (0, 1):
            rank, which = block.min(1)
            found.near[start:stop, place], found.nearest[start:stop, place] = rank, which
            block[itself, which] = torch.inf
    return found


def _candidates(given: Iterable[int] | None, classes: int) -> Tensor:
    given = range(classes) if given is None else given.tolist() if isinstance(given, Tensor) else given
    chosen = sorted({operator.index(c) for c in given})
    if len(chosen) < 3 or chosen[0] < 0 or chosen[-1] >= classes:
        shown = chosen if len(chosen) <= 6 else [*chosen[:3], "...", *chosen[-2:]]
        raise ValueError(f"need at least three candidates from 0 to {classes - 1}, not {shown}")
    return torch.tensor(chosen, device="cpu")
