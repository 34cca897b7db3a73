"""What the study of the theory says: figures 1 to 4, what is printed wrong and what that costs, and the claims."""

from __future__ import annotations

from softtargets.report import Section, Table
from softtargets.studies.chen_theory import figures
from softtargets.studies.chen_theory.claims import ASYMMETRIC, claims
from softtargets.studies.chen_theory.figures import JUMPING
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.theory import gamma_transition, generalization_loss, matrix_loss, optimal_matrix, optimal_p


def findings(results: Results) -> Findings:
    """Figures, tables and claims; there are no results to look at."""
    return Findings(sections=_sections(), claims=claims())


def _sections() -> tuple[Section, ...]:
    return (
        Section.of(
            "Two classes",
            "A label is right with probability a, and otherwise another class. The model is trained on a target of p "
            "for its label and (1 − p)/(M − 1) for each of the M − 1 others, and predicts exactly that. It is tested "
            "against clean labels (alpha type), against labels that are wrong equally often and independently (beta "
            "type), or against clean labels that are smoothed like the training labels (gamma type).",
            figures.landscapes(),
            figures.two_classes(),
        ),
        Section.of(
            "More classes",
            "For the alpha type the best p is a, for any number of classes. For the beta type it tends to the square "
            "of a. For the gamma type it is best to learn nothing below some clean rate; there the best p jumps.",
            figures.many_classes(),
            figures.gamma_classes(),
            _transition_table(),
        ),
        Section.of(
            "Equations that do not hold as printed",
            "Some equations of the paper do not follow from its own assumptions. The table says what it costs to use "
            "them. ERRATA.md derives each of these, and others that cost nothing.",
            _errata_table(),
        ),
        Section.of(
            "How the claims are judged",
            "Nothing is random here, so there are no seeds. Each claim rests on one computed number, the worst of all "
            "that were looked at. It is “reproduced” if that number lies in its region and not on the edge. The best p "
            "is searched for in the equations as they are printed. It is not taken from the formulas that are checked.",
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
        "What it costs to use the equations as printed, in nats.",
        "printed | holds | at: for example | theirs: loss as printed | best: lowest loss",
        rows,
    )
