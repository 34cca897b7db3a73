"""What the study of the theory says: figures 1 to 4, what is printed wrong and what that costs, and the claims."""

from __future__ import annotations

from softtargets.claims import Claim, judge
from softtargets.report import Section, Table
from softtargets.studies.chen_theory import figures
from softtargets.studies.chen_theory.claims import ASYMMETRIC, OPTIMUM, claims
from softtargets.studies.chen_theory.figures import JUMPING
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import answered
from softtargets.theory import gamma_transition, generalization_loss, matrix_loss, optimal_matrix, optimal_p


def findings(results: Results) -> Findings:
    """Figures, tables and claims; there are no results to look at."""
    made = claims()
    return Findings(_sections(), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """How much smoothing is best?"""
    judged = {one.claim.statement: one.verdict for one in judge(made)}
    return answered(
        judged[OPTIMUM],
        "As much as there are wrong labels, for a network that memorises its labels and is tested on clean ones.",
        "Not as much as there are wrong labels, although the paper says so.",
        whether="the best p is the share of right labels",
    )


def _sections() -> tuple[Section, ...]:
    return (
        Section.of(
            "Two classes",
            "A label is right with probability a and otherwise another class. The network is trained on p for its "
            "label and (1 − p)/(M − 1) for each of the M − 1 others, and puts out exactly that. It is tested "
            "against clean labels (alpha), against labels that are wrong as often and independently (beta), or "
            "against clean labels that are smoothed like those it learned (gamma).",
            figures.landscapes(),
            figures.two_classes(),
        ),
        Section.of(
            "More classes",
            "For the alpha type the best p is a, whatever the number of classes. For the beta type it tends to "
            "the square of a. For the gamma type it is best to learn nothing below some clean rate, where p = 1/M, and "
            "beyond that rate the best p jumps.",
            figures.many_classes(),
            figures.gamma_classes(),
            _transition_table(),
        ),
        Section.of(
            "What is printed and does not hold",
            "Some equations of the paper do not follow from its own assumptions. The table has what it would cost "
            "to go by them. ERRATA.md has each of these derived, and others that cost nothing.",
            _errata_table(),
        ),
        Section.of(
            "How the claims are judged",
            "Nothing here is random, so there are no seeds: each claim rests on one computed number, the worst of "
            "all that were looked at, and is “reproduced” if that lies in its region, and not on the edge of it. The "
            "best p is searched for in the equations as they are printed, and not taken from the formulas that are to "
            "be checked.",
        ),
    )


def _transition_table() -> Table:
    rows = (
        {"classes": int(one.classes), "a": one.a, "low": one.low, "high": one.high}
        | {"how": "jumps" if one.jump > 0 else "bends"}
        for one in map(gamma_transition, (2, *JUMPING))
    )
    return Table.of(
        "transitions",
        "Where the best p of the gamma type leaves 1/M.",
        "classes | a .4f: clean rate a | low .4f: best p up to there | high .4f: best p beyond | how: what it does",
        rows,
    )


def _errata_table() -> Table:
    right = optimal_p(0.8, 10, "beta")
    best = optimal_matrix(ASYMMETRIC, "alpha")
    rows = (
        {
            "printed": "p* = Tr[TTᵗ]/(2M), beta type (equation 17)",
            "holds": "p* = Tr[TTᵗ]/M",
            "at": "10 classes, a = 0.8",
            "theirs": generalization_loss(right / 2, 0.8, 10, "beta"),
            "best": generalization_loss(right, 0.8, 10, "beta"),
        },
        {
            "printed": "S* = T, alpha type (section 4.1)",
            "holds": "S* by Bayes' rule",
            "at": "T = ((0.9, 0.1), (0.4, 0.6)) by rows",
            "theirs": matrix_loss(ASYMMETRIC, ASYMMETRIC, "alpha"),
            "best": matrix_loss(best, ASYMMETRIC, "alpha"),
        },
    )
    return Table.of(
        "errata",
        "What it costs to go by the equations as printed, in nats.",
        "printed | holds | at: for example | theirs: loss as printed | best: lowest loss",
        rows,
    )
