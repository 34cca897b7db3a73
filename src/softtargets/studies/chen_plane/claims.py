"""The paper's statements about its figures 5 to 11, each with one number for each seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softtargets.claims import Claim, Region, Sample, published
from softtargets.studies.chen_plane.optima import AWAY, Grid
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


@dataclass(frozen=True)
class Cell:
    """Means over seeds at one a and p."""

    a: float
    p: float
    deviation: float
    trained: float
    explained: float
    position: float
    by_heart: float
    accuracy: float


def counted(grid: Grid) -> list[Cell]:
    """The cells away from p = 1."""
    found = []
    for a in grid.rates:
        for p in grid.masses:
            outcomes = grid.results.where(a=a, p=p).outcomes
            if p > AWAY or not outcomes:
                continue

            def mean(key: str, outcomes: tuple = outcomes) -> float:  # type: ignore[type-arg]
                return Sample.of(o.measures[key] for o in outcomes if key in o.measures).mean

            keys = ("deviation_alpha", "deviation_trained", "explained", "position_alpha", "by_heart")
            found.append(Cell(a, p, *map(mean, (*keys, "accuracy"))))
    return found


def claims(grid: Grid, classes: int, losses_only: bool = False) -> tuple[Claim, ...]:
    """In the order of the paper; those whose cells the grid does not have are left out."""
    found = _losses(grid)
    if not losses_only:
        found = (*found, *_optima(grid, classes), *_accuracies(grid))
    return tuple(claim for claim in found if claim.sample.n)


def _losses(grid: Grid) -> tuple[Claim, ...]:
    def worst(kind: str, rates: tuple[float, ...]) -> Sample:
        def of(seed: int) -> float:
            cells = grid.values(seed, f"deviation_{kind}")
            return max(abs(value) for (a, p), value in cells.items() if p <= AWAY and a in rates)

        return _each(grid, of)

    def mean(seed: int) -> float:
        cells = [abs(v) for (_, p), v in grid.values(seed, "deviation_alpha").items() if p <= AWAY]
        return sum(cells) / len(cells)

    away = f"up to p = {AWAY:g}"
    return (
        _claim(
            "The measured test loss is that which the alpha type predicts, everywhere on the plane away from p = 1.",
            "figure-5/agreement",
            f"largest distance from the prediction over the grid {away}",
            worst("alpha", grid.rates),
            Region(high=CLOSE),
            f"“That” is taken for within {CLOSE:.0%}.",
        ),
        _claim(
            "It is so in the mean.",
            "figure-6/agreement",
            f"mean distance from the prediction over the grid {away}",
            _each(grid, mean),
            Region(high=CLOSE),
        ),
        _claim(
            "Against a corrupted test set the beta type predicts the loss, at a = 0.5 and 0.95.",
            "figure-7/agreement",
            f"largest distance from the prediction {away}",
            worst("beta", BETA_RATES),
            Region(high=CLOSE),
        ),
    )


def _optima(grid: Grid, classes: int) -> tuple[Claim, ...]:
    step = max(after - before for before, after in zip(grid.masses, grid.masses[1:], strict=False))

    def away_from(kind: str, seed: int) -> float:
        found = [(a, grid.best(seed, "loss_alpha", a)) for a in grid.rates]
        gaps = [abs(p - optimal_p(a, classes, kind, limits=True)) for a, p in found if p is not None]
        return float(sum(gaps) / len(gaps))

    def apart(seed: int) -> float:
        both = [(grid.best(seed, "loss_alpha", a), grid.best(seed, "accuracy", a)) for a in grid.rates]
        gaps = [loss - right for loss, right in both if loss is not None and right is not None]
        return sum(gaps) / len(gaps)

    return (
        _claim(
            "The p with the lowest test loss is the clean rate a.",
            "section-3.1/optimum",
            "mean distance of the best p of the grid from a",
            _each(grid, lambda seed: away_from("alpha", seed)),
            Region(high=step),
            f"A step of the grid, at most {step:g}, is the least that can be told apart.",
        ),
        _claim(
            "The gamma type predicts the p with the lowest test loss better than the alpha type.",
            "figure-9/gamma",
            "mean distance from the prediction of gamma minus that from alpha's",
            _each(grid, lambda seed: away_from("gamma", seed) - away_from("alpha", seed)),
            Region(high=0),
        ),
        _claim(
            "The p with the highest accuracy is smaller than the p with the lowest loss.",
            "figure-8/discrepancy",
            "p of the lowest loss minus p of the highest accuracy, mean over a",
            _each(grid, apart),
            Region(low=0),
        ),
    )


def _accuracies(grid: Grid) -> tuple[Claim, ...]:
    noisy = tuple(a for a in grid.rates if a <= TWO_MINIMA)
    mild = tuple(a for a in grid.rates if MILD <= a < 1)

    def mean_over(rates: tuple[float, ...], of: Callable[[dict[float, float]], float], key: str) -> Sample:
        def each(seed: int) -> float:
            cells = grid.values(seed, key)
            rows = [{p: v for (rate, p), v in cells.items() if rate == a} for a in rates]
            values = [of(row) for row in rows]
            return sum(values) / len(values)

        return _each(grid, each)

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
            mean_over(grid.rates, gain, "early_accuracy"),
            Region(high=POINT),
            "The best of several p is above the one at p = 1 by chance already; less than one point is taken for none.",
        ),
        _claim(
            "With much noise, strong smoothing has the lowest test error.",
            "figure-10/small",
            f"accuracy at the best p up to {SMALL:g} minus that without smoothing, mean over a up to {TWO_MINIMA:g}",
            mean_over(noisy, small, "accuracy"),
            Region(low=0),
        ),
        _claim(
            "There, no smoothing is a minimum of its own: weak smoothing is worse than none.",
            "figure-11/weak",
            f"accuracy at p = {weakly}, the worse of them, minus that without, mean over a up to {TWO_MINIMA:g}",
            mean_over(noisy, weak, "accuracy"),
            Region(high=0),
        ),
        _claim(
            "With little noise weak smoothing is of use.",
            "figure-11/mild",
            f"accuracy at the better of p = {weakly} minus that without, mean over a from {MILD:g}",
            mean_over(mild, lambda row: max(row[p] for p in WEAK) - row[1.0], "accuracy"),
            Region(low=0),
        ),
    )


def _each(grid: Grid, of: Callable[[int], float]) -> Sample:
    """One number for each seed; seeds without some of the cells it needs are left out."""
    found = []
    for seed in grid.seeds:
        try:
            found.append(of(seed))
        except (KeyError, ValueError, ZeroDivisionError):
            continue
    return Sample.of(found)


def _claim(
    statement: str, key: str, quantity: str, sample: Sample, region: Region, remark: str = ""
) -> Claim:
    return Claim(
        statement, (published(f"chen-2020/{key}"),), quantity, sample, region, "", remark.replace("%", " %")
    )
