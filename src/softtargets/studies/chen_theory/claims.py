"""The statements of the paper about its figures 1 to 4, each with one number that decides it."""

from __future__ import annotations

import numpy as np

from softtargets.claims import Claim, ComputedClaim, Region, Sample, above, below, sources
from softtargets.studies.chen_theory.figures import JUMPING, KINDS, MANY, RATES
from softtargets.studies.chen_theory.search import lowest_minima, printed_loss, searched_p
from softtargets.studies.words import listed
from softtargets.theory import gamma_transition, matrix_loss, optimal_matrix, uniform_matrix

# By rows: what becomes of each clean label (ERRATA.md, 3).
ASYMMETRIC = np.array([[0.9, 0.1], [0.4, 0.6]])

# p of 0.05, 0.10 and so on, and clean rates below the lowest of the figures.
MASSES = np.arange(1, 20) / 20
LOWEST = np.array([1e-6, 1e-4, 1e-3])
# Clean rates beyond every transition of the gamma type.
BEYOND = np.arange(160, 200) / 200

# A search for the lowest point of a curve finds it to about the root of the last digit of its values.
FOUND = 1e-6
# What cannot be seen in a figure of 5 inches, and what “well approximate each other” is taken for.
SEEN, WELL = 0.01, 0.05
# The step in a on either side of a transition over which a jump is looked for.
STEP = 1e-4

# The statement that the page's answer rests on.
OPTIMUM = "With a clean test set the best p is a."

_ACROSS = "largest distance between the p found by search and the formula"


def claims() -> tuple[Claim, ...]:
    """In the order of the paper."""
    return (*_figure_one(), *_figure_two(), *_figure_three(), *_figure_four(), *_printed_wrong())


def _figure_one() -> tuple[Claim, ...]:
    near_one = [printed_loss(np.array(1 - 10.0**-n), RATES, 2, kind) for kind in KINDS for n in (4, 8, 12)]
    rises = np.diff(np.array(near_one).reshape(len(KINDS), 3, -1), axis=1)
    minima = {kind: lowest_minima(RATES, 2, kind) for kind in KINDS}
    return (
        _claim(
            "Whenever labels are wrong, the loss has no bound as p tends to 1.",
            "figure-1/divergence",
            "least rise of the loss for each four more nines of p, over 199 a and three types",
            *above(0, rises.min()),
            digits=4,
        ),
        *(
            _claim(
                f"For every a there is one p with the lowest loss: {kind} type.",
                "figure-1/unique",
                "largest number of p in (0, 1) that are as good, over 199 a",
                *below(1.5, minima[kind].max()),
                remark="Two classes: which class is which is lost, so 1 − p is as good as p."
                if kind == "gamma"
                else "",
                digits=0,
            )
            for kind in KINDS
        ),
    )


def _figure_two() -> tuple[Claim, ...]:
    found = {kind: searched_p(RATES, 2, kind) for kind in KINDS}
    low = (RATES > 0.5) & (RATES < 0.75)
    return (
        _exact(
            OPTIMUM,
            "section-3.1/optimum",
            f"{_ACROSS}, over 199 a",
            np.abs(found["alpha"] - RATES).max(),
        ),
        _exact(
            "With a test set as corrupted as the training set the best p is 2a² − 2a + 1.",
            "section-3.2/optimum",
            f"{_ACROSS}, over 199 a",
            np.abs(found["beta"] - (2 * RATES**2 - 2 * RATES + 1)).max(),
        ),
        _claim(
            "A corrupted test set needs stronger smoothing than a clean one.",
            "section-3.2/stronger",
            "largest p for the corrupted minus p for the clean one, over a from 0.505 to 0.995",
            *below(0, (found["beta"] - found["alpha"])[RATES > 0.5].max()),
            remark="Below a = 1/M it is the other way round; the paper takes a above one half.",
            digits=4,
        ),
        _claim(
            "With the gamma type the best p is the same for all a between 0.5 and 0.75: one half.",
            "section-3.3/uniform",
            "largest distance of the best p from one half, over a from 0.505 to 0.745",
            # At a = 0.745 the curve is nearly flat at its lowest point, and p is found less exactly.
            *below(1e-3, np.abs(found["gamma"][low] - 0.5).max()),
            digits=6,
        ),
    )


def _figure_three() -> tuple[Claim, ...]:
    alpha = [searched_p(RATES, m, "alpha") for m in MANY]
    beta = {m: searched_p(RATES, m, "beta") for m in MANY}
    losses = {m: printed_loss(MASSES[:, None], RATES, m, "alpha") for m in MANY}
    shifts = [losses[m] - losses[2] - (1 - RATES) * np.log(m - 1) for m in MANY]
    whole = np.concatenate([LOWEST, RATES])
    high = RATES >= 0.8
    return (
        _exact(
            "With a clean test set the best p does not depend on the number of classes.",
            "figure-3/alpha",
            f"largest difference of the best p between {listed(MANY)} classes",
            np.ptp(alpha, axis=0).max(),
        ),
        _exact(
            "More classes add (1 − a) log(M − 1) to the loss of the alpha type, whatever p.",
            "section-4.1/shift",
            f"largest difference from that, 19 p and 199 a, {listed(MANY)} classes",
            np.abs(shifts).max(),
        ),
        _exact(
            "With a corrupted test set the best p is (1 − 2a + a²M)/(M − 1).",
            "section-4.2/optimum",
            f"{_ACROSS}, {listed(MANY)} classes",
            max(np.abs(beta[m] - (1 - 2 * RATES + RATES**2 * m) / (m - 1)).max() for m in MANY),
        ),
        _claim(
            "With more and more classes the best p of the beta type tends to a².",
            "figure-3/limit",
            "largest distance from a² with 10,001 classes, a from 0.000001",
            *below(SEEN / 10, np.abs(searched_p(whole, 10_001, "beta") - whole**2).max()),
            remark="It is (1 − a)²/(M − 1), largest where a is smallest: 1/(M − 1) at most.",
            digits=6,
        ),
        _claim(
            "Beyond 100 classes no difference of the best p of the beta type from a² can be seen.",
            "figure-3/limit",
            "largest distance from a² with 101 classes, a from 0.000001",
            *below(SEEN, np.abs(searched_p(whole, 101, "beta") - whole**2).max()),
            remark=f"“Seen” means {SEEN:g} or more, two line widths in a figure of 5 inches; at a = 0 it is just that.",
            digits=4,
        ),
        _claim(
            "From a = 0.8 on, the best p for different numbers of classes approximate each other well.",
            "section-4.2/close",
            f"largest difference between {listed(MANY)} classes",
            *below(WELL, np.ptp([beta[m][high] for m in MANY], axis=0).max()),
            remark=f"“Well” means within {WELL:g}.",
            digits=4,
        ),
    )


def _figure_four() -> tuple[Claim, ...]:
    places = {m: gamma_transition(m).a for m in (2, *JUMPING)}
    jumps = {m: _jump(place, m) for m, place in places.items()}
    rising = np.diff([searched_p(BEYOND, m, "gamma") for m in (2, *JUMPING)], axis=0)
    return (
        _claim(
            "The best p of the gamma type jumps at some a: from three classes on.",
            "section-4.3/transition",
            f"smallest jump with {listed(JUMPING)} classes",
            *above(0.1, min(jumps[m] for m in JUMPING)),
            remark=f"By search, {STEP:g} in a to either side of the transition.",
        ),
        _claim(
            "The best p of the gamma type jumps at some a: two classes.",
            "section-4.3/transition",
            "jump with 2 classes",
            *above(0.1, jumps[2]),
            remark="It bends away from one half, like 1/2 + √(3(a − 3/4)): second order (ERRATA.md, 8).",
        ),
        _claim(
            "The transition of the gamma type lies at some a > 1/M.",
            "section-4.3/transition",
            f"smallest a of the transition minus 1/M, {listed((2, *JUMPING))} classes",
            *above(0, min(place - 1 / m for m, place in places.items())),
        ),
        _claim(
            "More classes draw the best p of the gamma type upwards.",
            "section-4.3/larger",
            f"smallest rise of the best p from each to the next of {listed((2, *JUMPING))} classes, a from 0.8",
            *above(0, rising.min()),
            remark="Beyond the transition; before it the best p is 1/M, and falls.",
            digits=6,
        ),
    )


def _printed_wrong() -> tuple[Claim, ...]:
    T = uniform_matrix(0.8, 10)
    found = searched_p(np.array([0.8]), 10, "beta")[0]
    lowest = matrix_loss(optimal_matrix(ASYMMETRIC, "alpha"), ASYMMETRIC, "alpha")
    return (
        _claim(
            "For uniform noise, the best p of the beta type is Tr[TTᵗ]/(2M).",
            "equation-17/half",
            "distance of that from the p found by search in equation 14, 10 classes, a = 0.8",
            *below(FOUND, abs(np.trace(T @ T.T) / 20 - found)),
            remark="Without the factor 1/2 it is (ERRATA.md, 1).",
        ),
        _claim(
            "With a clean test set the best smoothing matrix is T itself, also if T is not symmetric.",
            "section-4.1/matrix",
            "loss of S = T minus the loss of S by Bayes' rule, T = ((0.9, 0.1), (0.4, 0.6)) by rows, nats",
            *below(FOUND, matrix_loss(ASYMMETRIC, ASYMMETRIC, "alpha") - lowest),
            remark="It is if T is symmetric and classes are equally frequent (ERRATA.md, 3).",
        ),
    )


def _jump(place: float, classes: float) -> float:
    below, above = searched_p(np.array([place - STEP, place + STEP]), classes, "gamma")
    return float(above - below)


def _exact(statement: str, key: str, quantity: str, distance: float) -> Claim:
    """A claim of two numbers that must be the same but for what a search leaves open."""
    return _claim(statement, key, quantity, *below(FOUND, distance), digits=9)


def _claim(
    statement: str, key: str, quantity: str, sample: Sample, region: Region, remark: str = "", digits: int = 3
) -> Claim:
    return ComputedClaim(statement, sources(f"chen-2020/{key}"), quantity, sample, region, "", remark, digits)
