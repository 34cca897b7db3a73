"""Everything `softtargets advise` finds out: how wrong labels are, and how much smoothing that asks for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import SofttargetsError
from softtargets.inspection.advising_sample import Given
from softtargets.inspection.advising_uniformity import Uniformity, uniformity
from softtargets.inspection.calibrating import Understood
from softtargets.inspection.estimates import LEVEL, Estimate
from softtargets.inspection.looks import Told, quiet
from softtargets.noise import NoiseEstimate, estimate_noise
from softtargets.theory import (
    alpha_from_p,
    matrix_loss,
    mean_field_loss,
    mean_field_p,
    optimal_matrix,
    p_from_alpha,
    uniform_matrix,
)

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
class Prediction:
    """The test loss in nats that theory expects of one smoothing: learned by heart, or only on the average."""

    name: str
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
    methods find.
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
    predicted: tuple[Prediction, ...]
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

    def prediction(self, name: str) -> Prediction:
        """One of the expected losses, by name."""
        return next(one for one in self.predicted if one.name == name)

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        read, noise, shape = self.understood, self.estimate, self.uniformity
        assert noise.interval is not None
        return {
            "file": str(read.path),
            "examples": read.examples,
            "examples_used": self.examples,
            "classes": read.classes,
            "kind": read.kind,
            "reason": read.reason,
            "source": read.source,
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
            "noise_matrix": self._listed(self.matrix),
            "noise_matrix_low": self._listed(noise.interval.matrix_low),
            "noise_matrix_high": self._listed(noise.interval.matrix_high),
            "target_matrix": self._listed(self.targets),
            "uniform": {
                "is_uniform": shape.is_uniform,
                "distance": shape.distance,
                "contradicted": shape.contradicted,
                "clean": shape.clean,
                "label": shape.label,
                "share": vars(shape.share),
                "expected": shape.expected,
            },
            "p": vars(self.p),
            "alpha": {"all": vars(self.alpha_all), "others": vars(self.alpha_others)},
            "expected_loss": [
                {
                    "name": one.name,
                    "p": one.p,
                    "by_heart": vars(one.by_heart),
                    "averaged": vars(one.averaged),
                }
                for one in self.predicted
            ],
        }

    def _listed(self, matrix: Matrix) -> list[list[float]] | None:
        return matrix.tolist() if self.classes <= LISTED else None


def advise(
    given: Given,
    *,
    test_labels: str = "clean",
    purpose: str = "classify",
    resamples: int | None = None,
    seed: int = 0,
    told: Told = quiet,
) -> Advice:
    """Estimate the noise of labels and say how much smoothing the theory of Chen et al. 2020 recommends for it.

    `test_labels` says what the net will be judged by: "clean" labels (the alpha type) or ones as "noisy" as these (the
    beta type).
    """
    check_choice("--test-labels", test_labels, tuple(TYPES))
    check_choice("--purpose", purpose, PURPOSES)
    told("estimating", 0, 0)
    classes = given.probabilities.shape[1]
    if classes > MOST_CLASSES:
        raise SofttargetsError(
            f"{given.understood.path.name} has {classes:,} classes; advice is for at most {MOST_CLASSES:,}, "
            "since a matrix of all classes is estimated many times over"
        )
    if resamples is None:
        resamples = min(RESAMPLES, max(FEWEST_RESAMPLES, RESAMPLED // classes**2))
    name = given.understood.path.name
    try:
        found = estimate_noise(
            given.labels, given.probabilities, given.method, level=LEVEL, resamples=resamples, seed=seed
        )
        rates = {
            method: found.clean_rate
            if method == given.method
            else estimate_noise(given.labels, given.probabilities, method, resamples=0).clean_rate
            for method in (("likelihood",) if given.method == "likelihood" else ()) + ("confident", "naive")
        }
    except ValueError as refused:
        sampled = f" (in a sample of {len(given.labels):,} rows)" if given.is_sample else ""
        raise SofttargetsError(f"{name}: {refused}{sampled}") from None
    examples, kind = len(given.labels), TYPES[test_labels]
    rate, matrix, shares = rate_of(found, examples), filled(found), found.shares
    shape = uniformity(found, matrix, rate, examples)
    assumed = uniform_matrix(rate.value, len(matrix)) if shape.is_uniform else matrix
    ends = [assumed, *(rescaled(assumed, shares, a) for a in (rate.low, rate.high))]
    p = _ordered(*(float(mean_field_p(T, kind, shares)) for T in ends))
    targets = optimal_matrix(matrix, kind, shares)
    smoothings: dict[str, float | Matrix] = {
        "recommended": p.value,
        "usual": float(p_from_alpha(USUAL, len(matrix))),
        "none": 1.0,
    }
    if not shape.is_uniform:
        smoothings["matrix"] = targets
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
        alpha_all=_alpha(p, len(matrix), "all"),
        alpha_others=_alpha(p, len(matrix), "others"),
        predicted=tuple(_predicted(name, one, ends, kind, shares) for name, one in smoothings.items()),
        uniformity=shape,
    )


def check_choice(option: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that is none of a few."""
    if value not in allowed:
        raise SofttargetsError(f"{option} must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {value}")


def rate_of(found: NoiseEstimate, examples: int) -> Estimate:
    """The clean rate with its interval; without a single wrong label up to about 3 / N may still be wrong."""
    assert found.interval is not None
    low, high = found.interval.clean_rate
    rate = min(found.clean_rate, 1.0)  # sums may round to more
    return Estimate(rate, max(min(low, 1 + float(np.log(1 - LEVEL)) / examples), 0.0), max(high, rate))


def filled(found: NoiseEstimate) -> Matrix:
    """T; a class that no example is taken for, and so has no share, gets uniform noise."""
    uniform = uniform_matrix(min(max(found.clean_rate, 0.0), 1.0), len(found.matrix))
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
        return uniform_matrix(rate, len(matrix))
    errors = np.minimum((1 - right) * (1 - rate) / wrong, 1.0)
    others = matrix - np.diag(right)
    spread = np.divide(errors, 1 - right, out=np.zeros_like(right), where=right < 1)
    scaled: Matrix = others * spread[:, None] + np.diag(1 - errors)
    return scaled


def averaged_loss(smoothing: float | Matrix, T: Matrix, kind: str, shares: Matrix) -> float:
    r"""`softtargets.theory.averaging_loss` for any noise and any smoothing, by one p or by a matrix S.

    A net that has learned no label by heart puts out the mean target of its class, :math:`V = TS`, and loses
    :math:`-\sum_i \pi_i \sum_c B_{ic} \log V_{ic}`, B being the identity (alpha) or T (beta).

    >>> T = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> round(averaged_loss(0.9, T, "alpha", np.array([0.5, 0.5])), 6)  # V has 0.9 x 0.8 + 0.1 x 0.2 on the diagonal
    0.301105
    """
    if isinstance(smoothing, float):
        other = (1 - smoothing) / (len(T) - 1)
        output = other + (smoothing - other) * T  # as T S, without the product
    else:
        output = T @ smoothing
    tested = np.eye(len(T)) if kind == "alpha" else T
    weight = shares[:, None] * tested
    used = weight > 0
    with np.errstate(divide="ignore"):
        return float(-(weight[used] * np.log(output[used])).sum())


def _predicted(
    name: str, smoothing: float | Matrix, ends: list[Matrix], kind: str, shares: Matrix
) -> Prediction:
    if isinstance(smoothing, float):
        p: float | None = smoothing
        heart = [float(mean_field_loss(smoothing, T, kind, shares, limits=True)) for T in ends]
    else:
        p = None
        heart = [float(matrix_loss(smoothing, T, kind, shares)) for T in ends]
    averaged = [averaged_loss(smoothing, T, kind, shares) for T in ends]
    return Prediction(name, p, _ordered(*heart), _ordered(*averaged))


def _alpha(p: Estimate, classes: int, spread: str) -> Estimate:
    return _ordered(*(float(alpha_from_p(value, classes, spread)) for value in vars(p).values()))


def _ordered(value: float, one: float, other: float) -> Estimate:
    """A value and what the two ends of the clean rate make of it, the lower first."""
    return Estimate(value, min(value, one, other), max(value, one, other))
