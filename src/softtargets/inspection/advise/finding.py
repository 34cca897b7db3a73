"""Everything `softtargets advise` finds out: how many labels are wrong, and how much smoothing is best for that."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import softtargets.theory as theory
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.evidence import Evidence
from softtargets.inspection.advise.suspects import Suspects, suspects_in
from softtargets.inspection.advise.uniformity import Uniformity, uniformity
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.reading import Told, Understood, check_choice, quiet
from softtargets.noise import NoiseAssessment, NoiseEstimate, assess_noise, estimate_noise

Matrix = NDArray[np.float64]

# What a model is tested against, as the theory calls it.
TYPES = {"clean": "alpha", "noisy": "beta"}
PURPOSES = ("classify", "teacher", "transfer")
USUAL = 0.1  # the alpha of Szegedy et al. 2016 and of most who came after them
RESAMPLES, FEWEST_RESAMPLES = 100, 20
RESAMPLED = 20_000_000  # entries of all resampled matrices together, which are in memory at once
MOST_CLASSES = 2000
LISTED = 100  # classes up to which matrices are written out; a thousand classes have a million entries
POSSIBLY_NONE = 0.001  # share of wrong labels that is as good as none
NEGLIGIBLE = 0.02  # share of wrong labels below which noise is no reason to smooth


@dataclass(frozen=True)
class ExpectedLoss:
    """The test loss in nats that theory expects of one smoothing: every label memorised, or none."""

    p: float | None
    by_heart: Estimate
    averaged: Estimate


@dataclass(frozen=True, eq=False)
class Outlook:
    """What labels and predictions say of label noise; where it can be told, an `Advice`, which has more.

    `accuracy` is how often the model's prediction is the given label. `assessment` has the share of wrong labels, or a
    bound and the reason why there is no more. `suspects` are the labels most likely wrong.
    """

    understood: Understood
    examples: int
    method_reason: str
    trained: str
    purpose: str
    test_labels: str
    accuracy: float
    assessment: NoiseAssessment
    suspects: Suspects

    @property
    def kind(self) -> str:
        """The type of the theory: alpha for clean test labels, beta for noisy ones."""
        return TYPES[self.test_labels]

    @property
    def classes(self) -> int:
        """K."""
        return self.understood.classes

    @property
    def bound(self) -> float:
        """At most this share of labels is wrong."""
        return self.assessment.high

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        found = self.assessment
        return {
            **self.understood.numbers(),
            "examples_used": self.examples,
            "trained": self.trained or None,
            "purpose": self.purpose,
            "test_labels": self.test_labels,
            "type": self.kind,
            "accuracy_on_given_labels": self.accuracy,
            "identified": found.is_identified,
            "reason": found.reason or None,
            "error_rate": {"value": found.error_rate, "low": found.low, "high": found.high},
            "error_rate_by_method": found.estimates,
            "temperature": found.temperature,
            "recommends_smoothing": False,
            "alpha": None,
            "suspicious": self.suspects.numbers(),
        }


@dataclass(frozen=True, eq=False)
class Advice(Outlook):
    """How wrong labels are, and what to do about it.

    `matrix` is T with rows of unknown classes taken for uniform noise, `targets` the best matrix of targets S.
    `assumed` is the noise that everything else is computed for: T if it has a pattern, and uniform noise with as many
    wrong labels if not, since the scatter of an estimated T looks like a pattern to the beta type. `p` is the best mass
    on the label, `alpha_all` and `alpha_others` are the same as a loss says it. `expected` are the losses of
    smoothings: recommended, usual, none, and matrix if it has a pattern.
    """

    estimate: NoiseEstimate
    clean_rate: Estimate
    matrix: Matrix
    targets: Matrix
    assumed: Matrix
    p: Estimate
    alpha_all: Estimate
    alpha_others: Estimate
    expected: dict[str, ExpectedLoss]
    uniformity: Uniformity

    @property
    def error_rate(self) -> Estimate:
        """The share of wrong labels."""
        return Estimate(1 - self.clean_rate.value, 1 - self.clean_rate.high, 1 - self.clean_rate.low)

    @property
    def is_negligible(self) -> bool:
        """Whether so few labels are wrong that noise is no reason to smooth."""
        return 1 - self.clean_rate.value < NEGLIGIBLE

    @property
    def may_be_clean(self) -> bool:
        """Whether the interval begins where no label is wrong."""
        return 1 - self.clean_rate.high < POSSIBLY_NONE

    @property
    def recommends(self) -> bool:
        """Whether there is a smoothing to recommend: for such labels and such a purpose."""
        return self.purpose == "classify" and not self.is_negligible and not self.may_be_clean

    @property
    def matrices(self) -> dict[str, Matrix]:
        """T, the ends of its interval, and the best targets."""
        noise = self.estimate.interval
        assert noise is not None
        return {
            "share": self.matrix,
            "low": noise.matrix_low,
            "high": noise.matrix_high,
            "target": self.targets,
        }

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        noise, shape = self.estimate, self.uniformity
        names = ("noise_matrix", "noise_matrix_low", "noise_matrix_high", "target_matrix")
        matrices = zip(names, self.matrices.values(), strict=True)
        return {
            **super().numbers(),
            "recommends_smoothing": self.recommends,
            "method": noise.method,
            "method_reason": self.method_reason,
            "estimate_warnings": list(noise.warnings),
            "clean_rate": vars(self.clean_rate),
            "shares": noise.shares.tolist(),
            **{name: one.tolist() if self.classes <= LISTED else None for name, one in matrices},
            "uniform": {"is_uniform": shape.is_uniform, **vars(shape), "share": vars(shape.share)},
            "p": vars(self.p),
            "alpha": {"all": vars(self.alpha_all), "others": vars(self.alpha_others)},
            "expected_loss": [{"name": name, **asdict(one)} for name, one in self.expected.items()],
        }


def advise(
    given: Evidence,
    *,
    test_labels: str = "clean",
    purpose: str = "classify",
    resamples: int | None = None,
    told: Told = quiet,
) -> Outlook:
    """Estimate the noise of labels and say how much smoothing the theory of Chen et al. 2020 recommends for it.

    `test_labels` says what the model will be judged by: "clean" labels (the alpha type) or ones as "noisy" as these
    (the beta type). Where labels and predictions cannot tell how many labels are wrong, there is an `Outlook` and no
    `Advice`.
    """
    check_choices(test_labels, purpose)
    told("estimating", 0, 0)
    assessment, estimate = _assessed(given, resamples)
    seen: dict[str, Any] = {
        "understood": given.understood,
        "examples": len(given.labels),
        "method_reason": given.reason,
        "trained": given.trained,
        "purpose": purpose,
        "test_labels": test_labels,
        "accuracy": float((given.probabilities.argmax(1) == given.labels).double().mean()),
        "assessment": assessment,
        "suspects": suspects_in(given),
    }
    if not assessment.is_identified:
        return Outlook(**seen)
    return _advised(seen, estimate)


def _advised(seen: dict[str, Any], found: NoiseEstimate) -> Advice:
    kind, examples = TYPES[seen["test_labels"]], seen["examples"]
    rate, matrix, shares = rate_of(seen["assessment"], examples), filled(found), found.shares
    classes = len(matrix)
    shape = uniformity(found, matrix, rate, found.examples)
    assumed = theory.uniform_matrix(rate.value, classes)
    if not shape.is_uniform:
        assumed = rescaled(matrix, shares, rate.value)
    ends = [assumed, *(rescaled(assumed, shares, a) for a in (rate.low, rate.high))]
    p = _ordered(*(float(theory.mean_field_p(T, kind, shares)) for T in ends))
    targets = theory.optimal_matrix(matrix, kind, shares)
    smoothings: dict[str, float | Matrix] = {
        "recommended": p.value,
        "usual": float(theory.p_from_alpha(USUAL, classes)),
        "none": 1.0,
        **({} if shape.is_uniform else {"matrix": targets}),
    }
    return Advice(
        **seen,
        estimate=found,
        clean_rate=rate,
        matrix=matrix,
        targets=targets,
        assumed=assumed,
        p=p,
        alpha_all=_alpha(p, classes, "all"),
        alpha_others=_alpha(p, classes, "others"),
        expected={name: _expected(one, ends, kind, shares) for name, one in smoothings.items()},
        uniformity=shape,
    )


def check_choices(test_labels: str, purpose: str) -> None:
    """Refuse words that say nothing."""
    check_choice("test_labels", test_labels, tuple(TYPES))
    check_choice("purpose", purpose, PURPOSES)


def _assessed(given: Evidence, resamples: int | None) -> tuple[NoiseAssessment, NoiseEstimate]:
    """How many labels are wrong by all estimators together, and T by the method asked for."""
    name, classes = given.understood.path.name, given.probabilities.shape[1]
    if classes > MOST_CLASSES:
        raise SofttargetsError(
            f"{name} has {classes:,} classes; advise works with at most {MOST_CLASSES:,}, since it estimates a "
            "matrix of all classes many times"
        )
    if resamples is None:
        resamples = min(RESAMPLES, max(FEWEST_RESAMPLES, RESAMPLED // classes**2))
    known = (given.labels, given.probabilities)
    try:
        found = assess_noise(*known, level=LEVEL, resamples=resamples)
        if not found.is_identified or given.method == found.estimate.method:
            return found, found.estimate
        return found, estimate_noise(*known, given.method, level=LEVEL, resamples=resamples)
    except ValueError as refused:
        sampled = f" (in a sample of {len(given.labels):,} rows)" if given.is_sample else ""
        raise SofttargetsError(f"{name}: {refused}{sampled}") from None


def rate_of(found: NoiseAssessment, examples: int) -> Estimate:
    """The clean rate with its interval; without a single wrong label up to about 3 / N may still be wrong."""
    assert found.error_rate is not None
    rate = min(1 - found.error_rate, 1.0)  # sums may round to more
    low, high = 1 - found.high, 1 - found.low
    return Estimate(rate, max(min(low, 1 + float(np.log(1 - LEVEL)) / examples), 0.0), max(high, rate))


def filled(found: NoiseEstimate) -> Matrix:
    """T; a class that no example is taken for, and so has no share, gets uniform noise."""
    uniform = theory.uniform_matrix(min(max(found.clean_rate, 0.0), 1.0), len(found.matrix))
    return np.where(np.isnan(found.matrix), uniform, found.matrix)


def rescaled(matrix: Matrix, shares: Matrix, rate: float) -> Matrix:
    """T with more or fewer wrong labels, wrong in the same way, so that a share `rate` of all is right.

    >>> T = np.array([[1.0, 0.0], [0.2, 0.8]])
    >>> rescaled(T, np.array([0.5, 0.5]), 0.8).round(6)
    array([[1. , 0. ],
           [0.4, 0.6]])
    """
    right = np.diagonal(matrix)
    wrong = float((shares * (1 - right)).sum())
    if wrong == 0:
        return theory.uniform_matrix(rate, len(matrix))
    errors = np.minimum((1 - right) * (1 - rate) / wrong, 1.0)
    others = matrix - np.diag(right)
    spread = np.divide(errors, 1 - right, out=np.zeros_like(right), where=right < 1)
    scaled: Matrix = others * spread[:, None] + np.diag(1 - errors)
    return scaled


def _expected(smoothing: float | Matrix, ends: list[Matrix], kind: str, shares: Matrix) -> ExpectedLoss:
    if isinstance(smoothing, float):
        heart = [float(theory.mean_field_loss(smoothing, T, kind, shares, limits=True)) for T in ends]
    else:
        heart = [float(theory.matrix_loss(smoothing, T, kind, shares)) for T in ends]
    averaged = [theory.averaging_matrix_loss(smoothing, T, kind, shares) for T in ends]
    p = smoothing if isinstance(smoothing, float) else None
    return ExpectedLoss(p, _ordered(*heart), _ordered(*averaged))


def _alpha(p: Estimate, classes: int, spread: str) -> Estimate:
    return _ordered(*(float(theory.alpha_from_p(value, classes, spread)) for value in vars(p).values()))


def _ordered(value: float, one: float, other: float) -> Estimate:
    """A value and what the two ends of the clean rate make of it, the lower first."""
    return Estimate(value, min(value, one, other), max(value, one, other))
