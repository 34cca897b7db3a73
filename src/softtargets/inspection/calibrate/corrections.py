"""Which correction to recommend, if any: each is judged on examples that it was not fitted to.

The rule. A correction helps if, on held-out examples,

1. the whole 95 % interval of the paired gain in negative log-likelihood lies above 0,
2. the expected calibration error does not rise; there is no allowance for chance in its favour, and
3. the accuracy, which biases can change, is not shown to fall: its paired interval does not lie below 0, and
4. the first condition holds with one mistake more than there was, whose label is the class that comes second.

The last one is for models that are nearly always right. Where no prediction is wrong, all of a gain's interval lies
above 0 for whatever makes predictions more confident, until the first mistake. A temperature needs no such condition:
it is known only where a mistake shows how low it may be, and that mistake is held out like all others.

Corrections are tried from the fewest numbers to the most: what 0 counts as, a temperature, a bias for each class beside
it, a scale and a bias for each class. One replaces a simpler one that helps only if its paired gain over that one, too,
has an interval above 0. If none helps, the model is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.calibration import CalibrationSums, Correction
from softtargets.inspection.shared.measured import Measured
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.recalls import Recalls, recalls_of
from softtargets.inspection.shared.two_passes import FEWEST, FOLDS, FirstPass, nll_of

MOST_CLASSES = 256  # beyond, fits read the sample too often for what they could find out
PER_CLASS = 20  # examples for each class: a scale and a bias are not known from fewer
SAMPLE = 1 << 21  # numbers that are kept in memory for these fits
RICHER_FOLDS = 3
INFINITE = Estimate(math.inf, math.inf, math.inf)
UNCHANGED = Estimate(0.0, 0.0, 0.0)

Fit = calibration.BiasCorrectedTemperature | calibration.VectorScaling
RICHER: dict[str, Callable[[calibration.Chunks], Fit]] = {
    "bias_corrected_temperature": calibration.bias_corrected_temperature,
    "vector_scaling": calibration.vector_scaling,
}


@dataclass(frozen=True)
class Candidate:
    """A correction and what it does to held-out examples: NLL in nats, as they are less corrected, and ECE.

    `gain_with_mistake` is the gain with one mistake more; None where that is no condition. `accuracy` is by how much
    the accuracy changes; a temperature does not change it. `over` is the gain over simpler candidates, by their names.
    `correction` is fitted to all examples, None where there is none to recommend; `note` may say why. `recalls` and
    `sums` are of the same held-out examples; a temperature has none of them, as its calibration is measured anyway and
    no prediction changes.
    """

    name: str
    gain: Estimate
    over: dict[str, Estimate]
    ece_before: float
    ece_after: float
    examples: int
    folds: int
    correction: Correction | None
    note: str = ""
    accuracy: Estimate = UNCHANGED
    gain_with_mistake: Estimate | None = None
    recalls: Recalls | None = None
    sums: CalibrationSums | None = None

    @property
    def helps(self) -> bool:
        """Whether all conditions of the rule hold."""
        better = self.gain.above_zero and self.ece_after <= self.ece_before and not self.hangs_on_luck
        return self.correction is not None and better and not self.accuracy.below_zero

    @property
    def hangs_on_luck(self) -> bool:
        """Whether one mistake more would leave no gain that is shown."""
        return self.gain_with_mistake is not None and not self.gain_with_mistake.above_zero

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts; the fitted numbers only of one that helps."""
        told = {
            key: value
            for key, value in vars(self).items()
            if key not in ("gain", "over", "correction", "accuracy", "gain_with_mistake", "recalls", "sums")
        }
        return {
            **told,
            "nll_gain": vars(self.gain),
            "nll_gain_over": {name: vars(gain) for name, gain in self.over.items()},
            "nll_gain_with_one_mistake_more": vars(self.gain_with_mistake)
            if self.gain_with_mistake
            else None,
            "accuracy_change": vars(self.accuracy),
            "recall": self.recalls.numbers() if self.recalls else None,
            "helps": self.helps,
            "correction": self.correction.numbers() if self.correction and self.helps else None,
        }


@dataclass(frozen=True)
class Corrections:
    """All that were tried, from the fewest numbers to the most; `why_not` says why not more were."""

    tried: tuple[Candidate, ...] = ()
    why_not: str = ""

    @property
    def recommended(self) -> Candidate | None:
        """By the rule of this module."""
        found: Candidate | None = None
        for one in self.tried:
            if one.helps and (found is None or one.over[found.name].above_zero):
                found = one
        return found

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        best = self.recommended
        return {
            "recommended": best.name if best else None,
            "tried": [one.numbers() for one in self.tried],
            "why_not_more": self.why_not or None,
        }


def corrections_of(found: Measured, first: FirstPass) -> Corrections:
    """Try all of them on what two passes have found; nothing of a handful of examples."""
    examples, classes = found.understood.examples, found.understood.classes
    if found.scaled is None:
        return Corrections(why_not=f"with fewer than {FEWEST} examples none can be held out")
    simple = [*_floor_alone(found, first), _temperature(found)]
    if reason := why_not(examples, classes):
        return Corrections(tuple(simple), reason)
    logits, labels = first.sample()
    if reason := without_examples(labels, classes, found.understood.class_names):
        return Corrections(tuple(simple), reason)
    whole = len(labels) == examples
    richer = richer_corrections(found, logits, labels, first.sums.bins, whole=whole)
    return Corrections((*simple, *richer))


def sample_size(examples: int, classes: int) -> int:
    """How many rows to keep for numbers of each class; 0 if they are not tried."""
    return 0 if why_not(examples, classes) else min(examples, SAMPLE // classes)


def why_not(examples: int, classes: int) -> str:
    """Why corrections with numbers for each class are not tried; empty if they are."""
    if classes > MOST_CLASSES:
        return f"there are {classes:,} classes, more than {MOST_CLASSES}"
    rows = min(examples, SAMPLE // classes)
    if rows < PER_CLASS * classes:
        return f"{rows:,} examples are fewer than {PER_CLASS} for each of the {classes:,} classes"
    return ""


def without_examples(labels: Tensor, classes: int, names: Sequence[str] | None = None) -> str:
    """Which classes no example has, in words; empty if each has one.

    The best bias of such a class says that it never occurs, and no held-out example could contradict that. A file that
    lacks a class by choice would then take that class away from the model.
    """
    absent = (torch.bincount(labels, minlength=classes) == 0).nonzero().flatten().tolist()
    if not absent:
        return ""
    first = f"'{names[absent[0]]}'" if names else f"{absent[0]}"
    if len(absent) == 1:
        return f"no label is class {first}, and what a number for that class would do cannot be tested here"
    return (
        f"{len(absent):,} of the {classes:,} classes, such as class {first}, are never the label, and what numbers for "
        "them would do cannot be tested here"
    )


def _kept(found: Measured, fit: calibration.TemperatureFit | Fit, told: dict[str, Any]) -> Correction:
    read = found.understood
    return Correction.of(
        fit,
        kind="logits" if read.kind == "logits" else "probabilities",
        classes=read.classes,
        floor=found.zeros.floor,
        class_names=read.class_names,
        about={"fitted_to": read.path.name, **told},
    )


def _about(gain: Estimate, before: float, after: float, examples: int, folds: int) -> dict[str, Any]:
    finite = {key: value for key, value in vars(gain).items() if math.isfinite(value)}
    return {
        "examples": examples,
        "held_out": {"folds": folds, "nll_gain": finite, "ece_before": before, "ece_after": after},
    }


def _floor_alone(found: Measured, first: FirstPass) -> list[Candidate]:
    """Only what 0 counts as: where a label has probability 0, it makes an infinite loss finite."""
    if not found.zeros.labelled:
        return []
    before, examples = found.before.expected_calibration_error, found.understood.examples
    after = first.grid.curves()[1.0][1].expected_calibration_error
    unscaled = calibration.TemperatureFit(
        temperature=1.0,
        nll_before=math.inf,
        nll_after=found.curves[1.0][0],
        examples=examples,
        standard_error=0.0,
        ending="converged",
        passes=0,
    )
    told = _about(INFINITE, before, after, examples, 1)
    kept = _kept(found, unscaled, told)
    return [Candidate("floor", INFINITE, {}, before, after, examples, 1, kept)]


def _temperature(found: Measured) -> Candidate:
    scaled = found.scaled
    assert scaled is not None
    before, after = (one.expected_calibration_error for one in (found.before, scaled.after))
    examples = found.understood.examples
    kept = None
    if scaled.is_known:
        kept = _kept(found, scaled.fit, _about(scaled.gain, before, after, examples, FOLDS))
    return Candidate(
        "temperature",
        scaled.gain,
        {"floor": scaled.gain},  # as they are means with the floor, where a zero would make it infinite
        before,
        after,
        examples,
        FOLDS,
        kept,
        scaled.fit.note,
    )


def richer_corrections(
    found: Measured, logits: Tensor, labels: Tensor, bins: int, *, whole: bool
) -> list[Candidate]:
    """Fit to two thirds of the examples and measure on the others, for each third.

    The gain of an example is its negative log-likelihood as it is, or with a simpler correction, less that with more
    numbers; its mean has the standard error of paired differences. Where these are not the `whole` file, what was
    before is measured on the same examples.
    """
    fits: dict[str, Callable[[calibration.Chunks], Any]] = {
        "temperature": calibration.temperature_scaling,
        **RICHER,
    }
    chunks = calibration.Chunks(lambda: [(logits, labels)], checked=True)  # by the first pass
    fold = calibration.fold_of(0, len(labels), RICHER_FOLDS)
    scaled = {name: torch.empty_like(logits) for name in fits}
    for held_out in range(RICHER_FOLDS):
        others = calibration.in_fold(chunks, held_out, RICHER_FOLDS, held_out=False)
        rows = (fold == held_out).nonzero().flatten()
        for name, fit in fits.items():
            scaled[name][rows] = fit(others)(logits[rows])
    losses = {name: nll_of(z, labels) for name, z in scaled.items()}
    as_it_is = nll_of(logits, labels)
    second = logits.topk(2, dim=1).indices[:, 1]
    mistakes = {name: nll_of(z, second) for name, z in {"as they are": logits, **scaled}.items()}
    predicted = {name: z.argmax(1) for name, z in {"as they are": logits, **scaled}.items()}
    right = {name: (k == labels).double() for name, k in predicted.items()}
    read = found.understood
    before = found.before.expected_calibration_error if whole else _ece(logits, labels, bins)
    candidates: list[Candidate] = []
    for place, name in enumerate(RICHER, start=1):
        gain, after = _gain(as_it_is, losses[name]), _ece(scaled[name], labels, bins)
        sums = CalibrationSums.empty(read.classes, bins)
        sums.add(scaled[name], labels, from_logits=True, checked=True)
        changed = recalls_of(
            predicted["as they are"], predicted[name], labels, read.classes, read.class_names
        )
        over = {simpler: _gain(losses[simpler], losses[name]) for simpler in list(fits)[:place]}
        fitted = RICHER[name](chunks)
        kept = None
        if not ran_away(fitted):
            kept = _kept(found, fitted, _about(gain, before, after, len(labels), RICHER_FOLDS))
        candidates.append(
            Candidate(
                name,
                gain,
                {"floor": gain, **over},
                before,
                after,
                len(labels),
                RICHER_FOLDS,
                kept,
                fitted.note,
                _gain(right[name], right["as they are"]),
                _gain(as_it_is, losses[name], float((mistakes["as they are"] - mistakes[name]).mean())),
                changed,
                sums,
            )
        )
    return candidates


def ran_away(fitted: Fit) -> bool:
    """Whether the best temperature is at an end of its range: where every prediction is right, the colder the better.

    Held-out examples say so too, all the more surely the fewer they are, until the first mistake.
    """
    temperature = getattr(fitted, "temperature", None)
    return temperature is not None and not calibration.LOWEST < temperature < calibration.HIGHEST


def _gain(before: Tensor, after: Tensor, *more: float) -> Estimate:
    gain = torch.cat([before - after, before.new_tensor(more)])
    return Estimate.of_mean(float(gain.sum()), float(gain.square().sum()), len(gain))


def _ece(logits: Tensor, labels: Tensor, bins: int) -> float:
    chunks = calibration.Chunks(lambda: [(logits, labels)], checked=True)
    return calibration.temperature_sweep(chunks, temperatures=[1.0], bins=bins).ece[0]
