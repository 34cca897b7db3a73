"""The paper's statements about its figures 5 to 11, each with one number for each seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from softtargets.claims import Claim, Region, Sample, above, below, sources
from softtargets.studies.chen_plane.grid import AWAY, axes_of, best_p, plane_of
from softtargets.studies.results import Results, mean
from softtargets.studies.words import percent
from softtargets.theory import optimal_p

# Within so much the measured loss is taken for the predicted one.
CLOSE = 0.10
# Clean rates of figure 7; up to TWO_MINIMA the paper finds two minima of the error, from MILD on smoothing is of use.
BETA_RATES = (0.5, 0.95)
TWO_MINIMA, MILD = 0.85, 0.9
# p that is “very small” and p that is weak smoothing.
SMALL, WEAK = 0.5, (0.9, 0.95)
# A gain in accuracy that is worth having.
POINT = 0.01


def claims(results: Results, classes: int, losses_only: bool = False) -> tuple[Claim, ...]:
    """In the order of the paper; those whose cells the grid does not have are left out."""
    found = _losses(results)
    if not losses_only:
        found = (*found, *_optima(results, classes), *_accuracies(results))
    return tuple(claim for claim in found if claim.sample.n)


def _losses(results: Results) -> tuple[Claim, ...]:
    rates, _ = axes_of(results)

    def distances(own: Results, kind: str, among: Sequence[float]) -> list[float]:
        cells = plane_of(own, f"deviation_{kind}")
        return [abs(value) for (a, p), value in cells.items() if p <= AWAY and a in among]

    def worst(kind: str, among: Sequence[float]) -> Sample:
        return results.each_seed(lambda own: max(distances(own, kind, among)))

    away = f"up to p = {AWAY:g}"
    return (
        _claim(
            "The measured test loss is that which the alpha type predicts, everywhere on the plane away from p = 1.",
            "figure-5/agreement",
            f"largest distance from the prediction over the grid {away}",
            *below(CLOSE, worst("alpha", rates)),
            f"“That” is taken for within {percent(CLOSE)}.",
        ),
        _claim(
            "It is so in the mean.",
            "figure-6/agreement",
            f"mean distance from the prediction over the grid {away}",
            *below(CLOSE, results.each_seed(lambda own: mean(distances(own, "alpha", rates)))),
        ),
        _claim(
            "Against a corrupted test set the beta type predicts the loss, at a = 0.5 and 0.95.",
            "figure-7/agreement",
            f"largest distance from the prediction {away}",
            *below(CLOSE, worst("beta", BETA_RATES)),
        ),
    )


def _optima(results: Results, classes: int) -> tuple[Claim, ...]:
    _, masses = axes_of(results)
    step = max(after - before for before, after in pairwise(masses))

    def found(own: Results, measure: str) -> dict[float, float]:
        """The best p of each clean rate of which the seed has runs."""
        return {a: best_p(own, measure, a) for a in own.values("a")}

    def away_from(kind: str, own: Results) -> float:
        gaps = (
            abs(p - optimal_p(a, classes, kind, limits=True)) for a, p in found(own, "loss_alpha").items()
        )
        return float(mean(gaps))

    def apart(own: Results) -> float:
        loss, right = found(own, "loss_alpha"), found(own, "accuracy")
        return mean(loss[a] - right[a] for a in loss)

    return (
        _claim(
            "The p with the lowest test loss is the clean rate a.",
            "section-3.1/optimum",
            "mean distance of the best p of the grid from a",
            *below(step, results.each_seed(lambda own: away_from("alpha", own))),
            f"A step of the grid, at most {step:g}, is the least that can be told apart.",
        ),
        _claim(
            "The gamma type predicts the p with the lowest test loss better than the alpha type.",
            "figure-9/gamma",
            "mean distance from the prediction of gamma minus that from alpha's",
            *below(0, results.each_seed(lambda own: away_from("gamma", own) - away_from("alpha", own))),
        ),
        _claim(
            "The p with the highest accuracy is smaller than the p with the lowest loss.",
            "figure-8/discrepancy",
            "p of the lowest loss minus p of the highest accuracy, mean over a",
            *above(0, results.each_seed(apart)),
        ),
    )


def _accuracies(results: Results) -> tuple[Claim, ...]:
    rates, _ = axes_of(results)
    noisy = [a for a in rates if a <= TWO_MINIMA]
    mild = [a for a in rates if MILD <= a < 1]

    def mean_over(
        among: list[float], of: Callable[[dict[float, float]], float], key: str = "accuracy"
    ) -> Sample:
        """The mean of `of` over clean rates; it is given a measure by p."""

        def each(own: Results) -> float:
            cells = plane_of(own, key)
            return mean(of({p: value for (rate, p), value in cells.items() if rate == a}) for a in among)

        return results.each_seed(each)

    def weak(row: dict[float, float]) -> float:
        return min(row[p] for p in WEAK) - row[1.0]

    def small(row: dict[float, float]) -> float:
        return max(value for p, value in row.items() if p <= SMALL) - row[1.0]

    def gain(row: dict[float, float]) -> float:
        return max(row.values()) - row[1.0]

    weakly = " or ".join(f"{p:g}" for p in WEAK)
    return (
        _claim(
            "Whoever stops early needs no smoothing.",
            "figure-9/early",
            "highest accuracy of any p minus that without smoothing, each at its best epoch, mean over a",
            *below(POINT, mean_over(rates, gain, "early_accuracy")),
            "The best of several p is above the one at p = 1 by chance already; less than one point is taken for none.",
        ),
        _claim(
            "With much noise, strong smoothing has the lowest test error.",
            "figure-10/small",
            f"accuracy at the best p up to {SMALL:g} minus that without smoothing, mean over a up to {TWO_MINIMA:g}",
            *above(0, mean_over(noisy, small)),
        ),
        _claim(
            "There, no smoothing is a minimum of its own: weak smoothing is worse than none.",
            "figure-11/weak",
            f"accuracy at p = {weakly}, the worse of them, minus that without, mean over a up to {TWO_MINIMA:g}",
            *below(0, mean_over(noisy, weak)),
        ),
        _claim(
            "With little noise weak smoothing is of use.",
            "figure-11/mild",
            f"accuracy at the better of p = {weakly} minus that without, mean over a from {MILD:g}",
            *above(0, mean_over(mild, lambda row: max(row[p] for p in WEAK) - row[1.0])),
        ),
    )


def _claim(
    statement: str, key: str, quantity: str, sample: Sample, region: Region, remark: str = ""
) -> Claim:
    return Claim(statement, sources(f"chen-2020/{key}"), quantity, sample, region, "", remark)
