"""Everything `softtargets advise` finds out: how wrong labels are, and how much smoothing that asks for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import softtargets.theory as theory
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advise.evidence import Evidence
from softtargets.inspection.advise.uniformity import Uniformity, uniformity
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.reading import Told, Understood, check_choice, quiet
from softtargets.noise import NoiseEstimate, estimate_noise

Matrix = NDArray[np.float64]

# What a net is tested against, as the theory calls it.
TYPES = {"clean": "alpha", "noisy": "beta"}
PURPOSES = ("classify", "teacher", "transfer")
USUAL = 0.1  # the alpha of Szegedy et al. 2016 and of most who came after them
RESAMPLES, FEWEST_RESAMPLES = 100, 20
RESAMPLED = 20_000_000  # entries of all resampled matrices together, which are in memory at once
MOST_CLASSES = 2000
LISTED = 100  # classes up to which matrices are written out; a thousand classes have a million entries

# Out of fold hardly any model predicts labels this well, right or wrong ones; on what it was trained on many do.
MEMORISED = 0.999
MEMORISED_EXAMPLES = 200  # of fewer, all may be predicted by chance


@dataclass(frozen=True)
class ExpectedLoss:
    """The test loss in nats that theory expects of one smoothing: learned by heart, or only on the average."""

    p: float | None
    by_heart: Estimate
    averaged: Estimate


@dataclass(frozen=True, eq=False)
class Advice:
    """How wrong labels are, and what to do about it.

    `matrix` is T with rows of unknown classes taken for uniform noise, `targets` the best matrix of targets S.
    `assumed` is the noise that everything else is computed for: T if it has a pattern, and uniform noise with as many
    wrong labels if not, since the scatter of an estimated T looks like a pattern to the beta type. `p` is the best mass
    on the label, `alpha_all` and `alpha_others` are the same as a loss says it. `rates` are the clean rates that all
    methods find, `expected` the losses of smoothings: recommended, usual, none, and matrix if it has a pattern.
    """

    understood: Understood
    examples: int
    method_reason: str
    trained: str
    purpose: str
    test_labels: str
    accuracy: float
    estimate: NoiseEstimate
    rates: dict[str, float]
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
    def kind(self) -> str:
        """The type of the theory: alpha for clean test labels, beta for noisy ones."""
        return TYPES[self.test_labels]

    @property
    def classes(self) -> int:
        """K."""
        return len(self.matrix)

    @property
    def is_memorised(self) -> bool:
        """Whether the model seems to have been trained on these very examples."""
        return self.examples >= MEMORISED_EXAMPLES and self.accuracy >= MEMORISED

    @property
    def is_learnable(self) -> bool:
        """Whether labels say anything: the best target has more on the label than on others."""
        return self.clean_rate.value > 1 / self.classes and self.alpha_all.value < 1

    @property
    def recommends(self) -> bool:
        """Whether there is a smoothing to recommend: for such labels, such predictions and such a purpose."""
        return self.is_learnable and not self.is_memorised and self.purpose == "classify"

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
            **self.understood.numbers(),
            "examples_used": self.examples,
            "trained": self.trained or None,
            "purpose": self.purpose,
            "test_labels": self.test_labels,
            "type": self.kind,
            "accuracy_on_given_labels": self.accuracy,
            "looks_memorised": self.is_memorised,
            "labels_say_something": self.is_learnable,
            "recommends_smoothing": self.recommends,
            "method": noise.method,
            "method_reason": self.method_reason,
            "estimate_warnings": list(noise.warnings),
            "clean_rate": vars(self.clean_rate),
            "clean_rate_by_method": self.rates,
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
) -> Advice:
    """Estimate the noise of labels and say how much smoothing the theory of Chen et al. 2020 recommends for it.

    `test_labels` says what the net will be judged by: "clean" labels (the alpha type) or ones as "noisy" as these (the
    beta type).
    """
    check_choices(test_labels, purpose)
    told("estimating", 0, 0)
    found, rates = _estimated(given, resamples)
    examples, kind = len(given.labels), TYPES[test_labels]
    rate, matrix, shares = rate_of(found, examples), filled(found), found.shares
    classes = len(matrix)
    shape = uniformity(found, matrix, rate, examples)
    assumed = theory.uniform_matrix(rate.value, classes) if shape.is_uniform else matrix
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
        understood=given.understood,
        examples=examples,
        method_reason=given.reason,
        trained=given.trained,
        purpose=purpose,
        test_labels=test_labels,
        accuracy=float((given.probabilities.argmax(1) == given.labels).double().mean()),
        estimate=found,
        rates=rates,
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


def _estimated(given: Evidence, resamples: int | None) -> tuple[NoiseEstimate, dict[str, float]]:
    """The noise by the method asked for, and the clean rates that all methods find."""
    name, classes = given.understood.path.name, given.probabilities.shape[1]
    if classes > MOST_CLASSES:
        raise SofttargetsError(
            f"{name} has {classes:,} classes; advice is for at most {MOST_CLASSES:,}, "
            "since a matrix of all classes is estimated many times over"
        )
    if resamples is None:
        resamples = min(RESAMPLES, max(FEWEST_RESAMPLES, RESAMPLED // classes**2))
    known = (given.labels, given.probabilities)
    # Where another was chosen, the likelihood would take too long.
    methods = (*(["likelihood"] if given.method == "likelihood" else []), "confident", "naive")
    try:
        found = estimate_noise(*known, given.method, level=LEVEL, resamples=resamples)
        others = (one for one in methods if one != given.method)
        rates = dict.fromkeys(methods, found.clean_rate)
        rates |= {one: estimate_noise(*known, one, resamples=0).clean_rate for one in others}
    except ValueError as refused:
        sampled = f" (in a sample of {len(given.labels):,} rows)" if given.is_sample else ""
        raise SofttargetsError(f"{name}: {refused}{sampled}") from None
    return found, rates


def rate_of(found: NoiseEstimate, examples: int) -> Estimate:
    """The clean rate with its interval; without a single wrong label up to about 3 / N may still be wrong."""
    assert found.interval is not None
    low, high = found.interval.clean_rate
    rate = min(found.clean_rate, 1.0)  # sums may round to more
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
