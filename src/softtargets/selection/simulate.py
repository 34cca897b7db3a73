"""How often intervals of selective prediction hold the truth: ``python -m softtargets.selection.simulate``.

Examples are drawn, not predicted: confidences u are uniform and a prediction is wrong with probability
:math:`e(u) = r (a + 1) (1 - u)^a`, so that r is the error rate and a says how well confidence tells mistakes from the
rest (0: not at all). Then the risk at coverage c is :math:`r c^a`, and the true areas are known: AURC
:math:`r / (a + 1)`, AUGRC :math:`r / (a + 2)`, least AURC :math:`r + (1 - r) \\log(1 - r)`. The same ``--seed`` gives
the same tables.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from softtargets.selection.curve import Numbers, RiskCoverage, risk_coverage
from softtargets.selection.intervals import accuracy_intervals, area_intervals, aurc_difference

EXAMPLES = (200, 1000, 5000)
COVERAGES = (0.5, 0.8, 0.95)
TRUTH = 1_000_000  # examples that stand for all there are, where no formula is known
FLIPPED = 0.03  # answers in which two models differ


@dataclass(frozen=True)
class Case:
    """A model: its error rate, how well confidence tells its mistakes, and to how many digits it is rounded."""

    rate: float
    sharpness: float
    digits: int = 12

    def draw(self, random: np.random.Generator, n: int) -> tuple[Numbers, Numbers]:
        """Confidences and which predictions are right."""
        u = random.random(n)
        wrong = random.random(n) < self.rate * (self.sharpness + 1) * (1 - u) ** self.sharpness
        return np.round(u, self.digits), (~wrong).astype(np.float64)

    def truth(self) -> dict[str, float]:
        """Areas and accuracies of all examples; of rounded confidences, those of a million."""
        if self.digits < 6:
            curve = risk_coverage(*self.draw(np.random.default_rng(99), TRUTH))
            areas = {name: float(getattr(curve, name)) for name in ("aurc", "excess_aurc", "augrc")}
            return areas | {f"{c:g}": curve.accuracy_at(c) for c in COVERAGES}
        r, a = self.rate, self.sharpness
        least = r + (1 - r) * math.log1p(-r)
        areas = {"aurc": r / (a + 1), "excess_aurc": r / (a + 1) - least, "augrc": r / (a + 2)}
        return areas | {f"{c:g}": 1 - r * c**a for c in COVERAGES}


# The sharpest that a probability of at most 1 allows is (a + 1) r <= 1.
CASES = {
    "error rate 40 %, weak confidence": Case(0.4, 0.5),
    "error rate 40 %, strong confidence": Case(0.4, 1.5),
    "error rate 10 %, weak confidence": Case(0.1, 1.0),
    "error rate 10 %, strong confidence": Case(0.1, 6.0),
    "error rate 10 %, useless confidence": Case(0.1, 0.0),
    "error rate 10 %, confidence of 1 digit (ties)": Case(0.1, 2.0, digits=1),
    "error rate 3 %, strong confidence": Case(0.03, 6.0),
    "error rate 1 %, strong confidence": Case(0.01, 6.0),
}
AREAS = ("aurc", "excess_aurc", "augrc")


def coverage(case: Case, n: int, repetitions: int, seed: int, level: float = 0.95) -> dict[str, float]:
    """How often each interval held the truth."""
    random, truth = np.random.default_rng([seed, n]), case.truth()
    held = dict.fromkeys(truth, 0)
    for _ in range(repetitions):
        curve = risk_coverage(*case.draw(random, n))
        found = area_intervals(curve, level)
        bands = accuracy_intervals(curve, np.array(COVERAGES), level)
        ends = found | {f"{c:g}": (low, high) for c, low, high in zip(COVERAGES, *bands, strict=True)}
        for name, (low, high) in ends.items():
            held[name] += low <= truth[name] <= high
    return {name: count / repetitions for name, count in held.items()}


def two_models(case: Case, random: np.random.Generator, n: int) -> tuple[RiskCoverage, RiskCoverage]:
    """The same examples by two models whose answers differ for some, and whose confidences do a little for all."""
    u, right = case.draw(random, n)
    other = np.where(random.random(n) < FLIPPED, 1 - right, right)
    near = np.clip(u + random.normal(0, 0.05, n), 0, 1)
    return risk_coverage(u, right), risk_coverage(near, other)


def difference_coverage(case: Case, n: int, repetitions: int, seed: int) -> float:
    """How often the interval of a difference of AURC held the true difference."""
    a, b = two_models(case, np.random.default_rng(99), TRUTH)
    truth, random = b.aurc - a.aurc, np.random.default_rng([seed, n, 1])
    found = (aurc_difference(*two_models(case, random, n)) for _ in range(repetitions))
    return sum(low <= truth <= high for _, low, high in found) / repetitions


def table(repetitions: int, seed: int, examples: Sequence[int] = EXAMPLES) -> Iterator[str]:
    """Lines of Markdown."""
    accuracies = " | ".join(f"accuracy at {c:.0%}".replace("%", " %") for c in COVERAGES)
    yield f"| model | examples | AURC | excess AURC | AUGRC | {accuracies} | difference of AURC |"
    yield "|---" * (6 + len(COVERAGES)) + "|"
    for name, case in CASES.items():
        for n in examples:
            held = coverage(case, n, repetitions, seed)
            shares = [held[key] for key in (*AREAS, *(f"{c:g}" for c in COVERAGES))]
            shares.append(difference_coverage(case, n, repetitions, seed))
            yield f"| {name} | {n:,} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |"


def main(words: Sequence[str] | None = None) -> None:
    """Print the table."""
    told = "How often 95 % intervals of selective prediction hold the truth."
    parser = argparse.ArgumentParser(
        prog="python -m softtargets.selection.simulate", description=told.replace("%", "%%")
    )
    parser.add_argument("--repetitions", type=int, default=1000, help="drawings for each line")
    parser.add_argument(
        "--examples", type=int, nargs="+", default=EXAMPLES, help="how many each model predicts"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    drawn = f"{given.repetitions:,} repetitions each, seed {given.seed}"
    sys.stdout.write(f"{drawn}: how often 95 % intervals hold the truth.\n\n")
    for line in table(given.repetitions, given.seed, given.examples):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
