"""Risk over coverage: how often predictions are wrong if only the most confident ones are used."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_tensor

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Examples from the most confident to the least (n,), and how many of the first k are expected to be wrong.

    `confidence` falls, and `errors` are the mistakes among the first k = 1 to n; `order` are the places in which these
    examples were given, `wrong` says which are wrong, in the order given; `group` numbers those of the same confidence.

    **Ties**: examples of the same confidence have no order, so that every number here is the expectation over a
    random order of them, exactly: each counts as the share of its group that is wrong. So duplicates, or
    probabilities that are all 1, do not make the numbers depend on chance.
    """

    confidence: Numbers
    errors: Numbers
    wrong: Numbers = field(repr=False)
    order: NDArray[np.int64] = field(repr=False)
    group: NDArray[np.int64] = field(repr=False)
    mistakes: int

    def __repr__(self) -> str:
        return f"RiskCoverage({self.examples} examples, accuracy {100 * self.accuracy:.2f} %, AURC {self.aurc:.4g})"

    @property
    def examples(self) -> int:
        """n."""
        return len(self.errors)

    @property
    def accuracy(self) -> float:
        """The share of all examples that are right."""
        return 1 - self.mistakes / self.examples

    @cached_property
    def risk(self) -> Numbers:
        """The share of the first k that are wrong, k = 1 to n: the risk at a coverage of k/n."""
        risk: Numbers = self.errors / np.arange(1, self.examples + 1)
        return risk

    @property
    def aurc(self) -> float:
        r"""The area under the curve, the mean risk :math:`\frac1n \sum_k r_k` over all coverages k/n.

        Geifman & El-Yaniv 2017 (the curve), Geifman, Uziel & El-Yaniv 2019 (its area). Less is better.
        """
        return float(self.risk.mean())

    @property
    def best_aurc(self) -> float:
        """The area if every mistake were less confident than everything right: no order of them has less."""
        return least_aurc(self.mistakes, self.examples)

    @property
    def excess_aurc(self) -> float:
        """E-AURC: the area less the least that so many mistakes allow (Geifman, Uziel & El-Yaniv 2019).

        It shows how well confidence separates mistakes from correct predictions, however many mistakes there are.
        """
        return max(self.aurc - self.best_aurc, 0.0)  # rounding

    @property
    def augrc(self) -> float:
        r"""The mean share :math:`\frac1n \sum_k \frac{k r_k}{n}` of all examples that are used and wrong.

        Traub et al. 2024: the rate of undetected mistakes, averaged over all coverages. The AURC divides by the
        number of used predictions and so gives much weight to the few most confident examples; AUGRC does not.
        """
        return float(self.errors.mean()) / self.examples

    @property
    def ends(self) -> NDArray[np.int64]:
        """How many examples have at least each confidence that occurs: what a threshold can accept."""
        last = np.flatnonzero(np.diff(self.group)) + 1
        return np.append(last, self.examples)

    def errors_at(self, coverage: float | Numbers) -> Numbers:
        """Expected mistakes among the most confident share of the examples; of a part of an example its part."""
        shares = np.asarray(coverage, dtype=np.float64)
        if not bool(np.all((shares > 0) & (shares <= 1))):
            raise ValueError(
                f"a coverage must lie above 0 and be at most 1, such as 0.8 for 80 %, not {coverage}"
            )
        found: Numbers = np.interp(
            shares * self.examples, np.arange(self.examples + 1), np.concatenate([[0.0], self.errors])
        )
        return found

    def accuracy_at(self, coverage: float) -> float:
        """The accuracy of the most confident share of the examples.

        >>> curve = risk_coverage([0.9, 0.8, 0.7, 0.6], [1, 1, 1, 0])
        >>> curve.accuracy_at(0.75), curve.accuracy_at(1.0)
        (1.0, 0.75)
        """
        return 1 - float(self.errors_at(coverage)) / (coverage * self.examples)

    def threshold_at(self, coverage: float) -> float:
        """The confidence of the last example of that share: use predictions with at least that much."""
        place = int(np.ceil(coverage * self.examples - 1e-9))
        return float(self.confidence[min(max(place, 1), self.examples) - 1])


def risk_coverage(
    confidence: ArrayLike | list[float], correct: ArrayLike | list[bool] | list[int]
) -> RiskCoverage:
    """The risk-coverage curve of examples with these confidences (n,) that are right (1) or wrong (0).

    A higher score must mean more confidence; it may be infinite, but not NaN.

    >>> curve = risk_coverage([0.9, 0.8, 0.8, 0.6], [1, 0, 1, 1])  # the second and third in a random order
    >>> curve.errors.tolist(), curve.aurc  # (0 + 1/4 + 1/3 + 1/4) / 4
    ([0.0, 0.5, 1.0, 1.0], 0.20833333333333331)
    """
    score, right = _numbers(confidence), _numbers(correct)
    if score.ndim != 1 or score.shape != right.shape or len(score) == 0:
        raise ValueError(
            "confidence and correct must have one value for each example, at least one of each, not "
            f"{score.shape} and {right.shape}"
        )
    if np.isnan(score).any():
        raise ValueError(
            f"the confidence of example {int(np.isnan(score).argmax())} is nan; it must be a number"
        )
    if not np.isin(right, (0.0, 1.0)).all():
        raise ValueError(
            f"each example must be right (1) or wrong (0), not {right[~np.isin(right, (0.0, 1.0))][0]:g}"
        )
    order = np.argsort(-score, kind="stable")
    return in_order(score[order], 1 - right, order)


def in_order(confidence: Numbers, wrong: Numbers, order: NDArray[np.int64]) -> RiskCoverage:
    """The curve of examples whose confidence falls; they are wrong in the order that they were given in."""
    n = len(confidence)
    first = np.ones(n, dtype=bool)
    first[1:] = confidence[1:] != confidence[:-1]
    group, starts = np.cumsum(first) - 1, np.flatnonzero(first)
    mistakes = np.add.reduceat(wrong[order], starts)
    share = mistakes / np.diff(np.append(starts, n))
    before = np.cumsum(mistakes) - mistakes
    errors = before[group] + (np.arange(1, n + 1) - starts[group]) * share[group]
    return RiskCoverage(confidence, errors, wrong, order, group, round(float(mistakes.sum())))


def least_aurc(mistakes: int, examples: int) -> float:
    r"""The area where all mistakes come last: :math:`\frac1n \sum_{k > n - e} \frac{k - (n - e)}{k}`.

    >>> least_aurc(1, 4), least_aurc(0, 4), least_aurc(4, 4)
    (0.0625, 0.0, 1.0)
    """
    right = examples - mistakes
    k = np.arange(right + 1, examples + 1)
    return float(((k - right) / k).sum()) / examples


def _numbers(values: ArrayLike | list[float] | list[bool] | list[int]) -> Numbers:
    given = as_tensor(np.asarray(values) if isinstance(values, list) else values).detach()
    found: Numbers = given.double().cpu().numpy()
    return found
