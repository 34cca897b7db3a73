"""The paper's statements about its figures 5 to 11, each with one number for each seed and what decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from softtargets.claims import Claim, Region, Sample, above, below, sources, zone
from softtargets.studies.chen_plane.grid import AWAY, Plane, Scope, best_of, plane_of, plane_to_judge
from softtargets.studies.chen_plane.measures import with_gamma
from softtargets.studies.results import Results, Row, mean
from softtargets.studies.words import percent
from softtargets.theory import optimal_p

# Seeds that judge; one more, the first, chooses the cells that are not named here.
SEEDS = 3
# Within so much the measured loss is taken for the predicted one.
CLOSE = 0.10
_PERCENT = 100 * CLOSE
# Clean rates of figure 7; up to TWO_MINIMA the paper finds two minima of the error, from MILD on smoothing is of use.
BETA_RATES = (0.5, 0.95)
TWO_MINIMA, MILD = 0.85, 0.9
# p that is “very small” and p that is weak smoothing.
SMALL, WEAK = 0.5, (0.9, 0.95)
# Points of accuracy that are worth having, and that are too few to count: of 10,000 images ten.
POINT, NOTHING = 1.0, 0.1
# The largest drop in accuracy in points, which the paper prints as “8 %”, and how near ours must come.
DROP, DROP_MARGIN = 8.0, 2.0

# Accuracies at the best epoch and at the end.
EARLY, LATE = "early_accuracy", "accuracy"

# Behind the point, by unit.
_DIGITS = {"": 3, "%": 1, "points": 2}

_CHOSEN = "Chosen with the first seed, and judged on the others."

# A cell of the plane beside another of the same clean rate.
Pair = tuple[Row, Row]


def claims(
    results: Results, classes: int, losses_only: bool = False, scope: Scope | None = None
) -> tuple[Claim, ...]:
    """In the order of the paper, about the whole grid of the scope; a seed without all of it is left out."""
    results = with_gamma(results, classes)
    plane = plane_to_judge(results, scope)
    found = _losses(results, plane)
    return found if losses_only else (*found, *_optima(results, plane, classes), *_accuracies(results, plane))


def _losses(results: Results, plane: Plane) -> tuple[Claim, ...]:
    rates, masses = plane.rates, plane.masses

    def deviations(kind: str, among: Iterable[float]) -> dict[str, Sample]:
        cells = [{"a": a, "p": p} for a in among for p in masses if p <= AWAY]
        return {_named(cell): results.sample(f"deviation_{kind}", **cell).times(100) for cell in cells}

    def distance(own: Results) -> float:
        found = plane_of(own, "deviation_alpha")
        return mean(abs(found[a, p]) for a in rates for p in masses if p <= AWAY)

    away = f"up to p = {AWAY:g}"
    return (
        _every(
            "The measured test loss is that which the alpha type predicts, everywhere on the plane away from p = 1.",
            "figure-5/agreement",
            f"deviation from the prediction, in every cell of the grid {away}",
            deviations("alpha", rates),
            Region(-_PERCENT, _PERCENT),
            f"“That” means within {percent(CLOSE)}.",
            unit="%",
        ),
        _claim(
            "On average over the plane the test loss is near the prediction of the alpha type.",
            "figure-6/agreement",
            f"mean distance from the prediction over the grid {away}",
            *below(_PERCENT, results.each_seed(distance).times(100)),
            f"“Near” means within {percent(CLOSE)}. This tests the number, not the trend.",
            unit="%",
        ),
        _every(
            "Against a corrupted test set the beta type predicts the loss, at a = 0.5 and 0.95.",
            "figure-7/agreement",
            f"deviation from the prediction, in every cell {away}",
            deviations("beta", BETA_RATES),
            Region(-_PERCENT, _PERCENT),
            f"“Predicts” means within {percent(CLOSE)}.",
            unit="%",
        ),
        _every(
            "Against clean test labels that are smoothed like those of the training, the gamma type predicts the loss.",
            "",
            f"deviation from the prediction, in every cell of the grid {away}",
            deviations("gamma", rates),
            Region(-_PERCENT, _PERCENT),
            f"“Predicts” means within {percent(CLOSE)}. The paper has this loss in theory only.",
            unit="%",
        ),
    )


def _optima(results: Results, plane: Plane, classes: int) -> tuple[Claim, ...]:
    rates, masses = plane.rates, plane.masses
    near = 1.5 * max((after - before for before, after in pairwise(masses)), default=0.0)

    def off(a: float) -> Sample:
        return results.each_seed(lambda own: best_of(_row(own, "loss_alpha", a, masses), "loss_alpha") - a)

    def away_from(kind: str, own: Results) -> float:
        found = {a: best_of(_row(own, "loss_alpha", a, masses), "loss_alpha") for a in rates}
        return float(mean(abs(p - optimal_p(a, classes, kind, limits=True)) for a, p in found.items()))

    def nearer_than(kind: str) -> Sample:
        return results.each_seed(lambda own: away_from("gamma", own) - away_from(kind, own))

    choosing, judging = results.split()
    smaller = _pairs(rates, lambda a: _smaller(choosing, a, masses))
    return (
        _every(
            "The p with the lowest test loss is the clean rate a.",
            "section-3.1/optimum",
            "best p of the grid minus a, for every a",
            {f"a = {a:g}": off(a) for a in rates},
            Region(-near, near),
            f"The next p of the grid still counts: up to {near:.2g}, one and a half of its largest steps.",
        ),
        _every(
            "The gamma type predicts the p with the lowest test loss best.",
            "figure-9/gamma",
            "mean distance from the prediction of gamma minus that from another type's",
            {kind: nearer_than(kind) for kind in ("alpha", "beta")},
            Region(high=0),
            "Against each of the two other types.",
        ),
        _claim(
            "Smaller p than that of the lowest loss give a higher accuracy.",
            "figure-8/discrepancy",
            "accuracy at the best of the smaller p minus that at the p of the lowest loss, mean over a",
            *above(0, judging.gain("accuracy", smaller, scale=100)),
            _CHOSEN,
            zone=zone(NOTHING),
            unit="points",
        ),
    )


def _accuracies(results: Results, plane: Plane) -> tuple[Claim, ...]:
    rates, masses = plane.rates, plane.masses
    choosing, judging = results.split()
    noisy, mild = [a for a in rates if a <= TWO_MINIMA], [a for a in rates if MILD <= a < 1]

    def gain(cell: Row) -> Sample:
        return results.gain("accuracy", [(cell, {"a": cell["a"], "p": 1.0})], scale=100)

    def weak(among: Iterable[float]) -> dict[str, Sample]:
        return {_named(cell): gain(cell) for a in among for p in WEAK if (cell := {"a": a, "p": p})}

    early = _pairs(rates, lambda a: _best_beside(choosing, EARLY, a, masses, (1.0,)))
    small, large = ([p for p in masses if inside == (p <= SMALL)] for inside in (True, False))

    def minimum(a: float) -> Sample:
        pair = _best_beside(choosing, "accuracy", a, small, large)
        return judging.gain("accuracy", [pair] if pair else [], scale=100)

    def scatter(own: Results) -> float:
        early, late = ([best_of(_row(own, key, a, masses), key) for a in rates] for key in (EARLY, LATE))
        return unsteadiness(early) - unsteadiness(late)

    weakly = " and ".join(f"{p:g}" for p in WEAK)
    return (
        _claim(
            "With early stopping, smoothing is not needed.",
            "figure-9/early",
            "accuracy at the best p minus that without smoothing, each at its best epoch, mean over a",
            *below(POINT, judging.gain("early_accuracy", early, scale=100)),
            f"A gain of less than one point counts as none. {_CHOSEN}",
            unit="points",
        ),
        _claim(
            "With early stopping, the most accurate p is scattered.",
            "figure-9/dispersion",
            "mean step of the most accurate p from one clean rate to the next, at the best epoch minus at the end",
            *above(0, results.each_seed(scatter)),
            "“Scattered” means more so than without early stopping.",
        ),
        _every(
            "With much noise, strong smoothing has the lowest test error.",
            "figure-10/small",
            f"accuracy at the best p up to {SMALL:g} minus that at the best p above, for every a up to {TWO_MINIMA:g}",
            {f"a = {a:g}": minimum(a) for a in noisy},
            Region(low=0),
            _CHOSEN,
            unit="points",
        ),
        _every(
            f"Weak smoothing helps only from a = {MILD:g} on: with more noise it lowers the accuracy.",
            "figure-11/mild",
            f"accuracy at p = {weakly} minus that without smoothing, for every a up to {TWO_MINIMA:g}",
            weak(noisy),
            Region(high=0),
            "So no smoothing is a minimum of its own.",
            unit="points",
        ),
        _every(
            f"Between a = {MILD:g} and 1 weak smoothing raises the accuracy.",
            "figure-11/mild",
            f"accuracy at p = {weakly} minus that without smoothing, for every a from {MILD:g} and below 1",
            weak(mild),
            Region(low=0),
            unit="points",
        ),
        _every(
            "Weak smoothing raises the accuracy also where all labels are right.",
            "figure-11/mild",
            f"accuracy at p = {weakly} minus that without smoothing, at a = 1",
            weak([a for a in rates if a == 1]),
            Region(low=0),
            "The paper's range ends at a = 1, without saying whether it belongs to it.",
            unit="points",
            zone=zone(NOTHING),
        ),
        _drop(choosing, judging, noisy),
    )


def _drop(choosing: Results, judging: Results, noisy: Sequence[float]) -> Claim:
    """The largest drop that weak smoothing costs."""
    cells = [{"a": a, "p": p} for a in noisy for p in WEAK]
    pairs = [(cell, {"a": cell["a"], "p": 1.0}) for cell in cells]
    known = [(gain.mean, pair) for pair in pairs if (gain := choosing.gain("accuracy", [pair])).n]
    worst = [min(known, key=lambda both: both[0])[1]] if known else []
    return _claim(
        "Weak smoothing costs up to 8 points of accuracy.",
        "figure-11/weak",
        f"accuracy where it costs most{f', {_named(worst[0][0])},' if worst else ''} minus that without smoothing",
        judging.gain("accuracy", worst, scale=100),
        Region(-DROP - DROP_MARGIN, -DROP + DROP_MARGIN),
        _CHOSEN,
        printed=-DROP,
        margin=DROP_MARGIN,
        unit="points",
    )


def _pairs(rates: Iterable[float], chosen: Callable[[float], Pair | None]) -> list[Pair]:
    """For each clean rate the cells that were chosen; none at all where one of them has none."""
    found = [chosen(a) for a in rates]
    return [pair for pair in found if pair is not None] if None not in found else []


def _smaller(choosing: Results, a: float, masses: Sequence[float]) -> Pair | None:
    """The most accurate of the p below that of the lowest loss, beside it; where it is the smallest, beside itself."""
    try:
        losses, accuracies = (_row(choosing, key, a, masses) for key in ("loss_alpha", "accuracy"))
    except KeyError:
        return None
    lowest = best_of(losses, "loss_alpha")
    below_it = {p: value for p, value in accuracies.items() if p < lowest} or {lowest: 0.0}
    return {"a": a, "p": best_of(below_it, "accuracy")}, {"a": a, "p": lowest}


def _best_beside(
    choosing: Results, measure: str, a: float, these: Iterable[float], those: Iterable[float]
) -> Pair | None:
    """The best of these p beside the best of those."""
    try:
        both = [_row(choosing, measure, a, among) for among in (these, those)]
    except KeyError:
        return None
    if not all(both):
        return None
    this, that = (best_of(found, measure) for found in both)
    return {"a": a, "p": this}, {"a": a, "p": that}


def _row(own: Results, measure: str, a: float, masses: Iterable[float]) -> dict[float, float]:
    """By p; a KeyError where one is missing: the best of some cells is not the best of all."""
    found = plane_of(own, measure)
    return {p: found[a, p] for p in masses}


def unsteadiness(best: Sequence[float]) -> float:
    """How far the best p moves from one clean rate to the next, on average.

    >>> unsteadiness([0.5, 0.25, 1.0])
    0.5
    """
    return mean(abs(after - before) for before, after in pairwise(best))


def _named(cell: Mapping[str, float]) -> str:
    return f"a = {cell['a']:g}, p = {cell['p']:g}"


def _claim(
    statement: str, key: str, quantity: str, sample: Sample, region: Region, remark: str = "", **fixed: object
) -> Claim:
    options = {"seeds": SEEDS, "digits": _DIGITS[str(fixed.get("unit", ""))], **fixed}
    return Claim(statement, sources(f"chen-2020/{key}"), quantity, sample, region, "", remark, **options)  # type: ignore[arg-type]


def _every(
    statement: str,
    key: str,
    quantity: str,
    cells: Mapping[str, Sample],
    region: Region,
    remark: str = "",
    unit: str = "",
    **fixed: Any,
) -> Claim:
    """Without a key the question is ours: nothing was printed."""
    published = sources(f"chen-2020/{key}") if key else ()
    fixed |= {"seeds": SEEDS, "unit": unit, "digits": _DIGITS[unit]}
    return Claim.every(statement, published, quantity, cells, region, "", remark, **fixed)
