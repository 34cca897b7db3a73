"""What calibration numbers mean, in plain words. Every threshold is here, with its reason.

Judged by the smooth calibration error (Błasiok & Nakkiran 2024), which needs no bins, and by its interval of 95 %
rather than its value, so that few examples never make a verdict. In this order:

1. the whole interval lies below `GOOD`: well calibrated, whatever else;
2. the interval begins at 0: nothing is shown, and the verdict says how large the error could still be;
3. otherwise the error is real: "bad" if the whole interval lies above `BAD`, "care" if not. The net is over- or
   underconfident if the interval of mean confidence less accuracy is above or below 0, and else confident in the
   wrong places.
"""

from __future__ import annotations

from softtargets.calibration import Calibration
from softtargets.inspection.calibrating import Inspection, Scaled
from softtargets.inspection.estimates import Estimate
from softtargets.inspection.looks import FEWEST, FOLDS
from softtargets.inspection.words import between, count, estimated, percent, temperature
from softtargets.report import Verdict
from softtargets.report.page import Tone

# A stated confidence of 90 % that means 88 to 92 %: few decisions would change, and fewer nets are better unscaled.
GOOD = 0.02
# On average one in twenty of the predictions made with such confidence is not as said: decisions do change.
BAD = 0.05
# Nets reach this on what they were trained on and hardly ever on anything else.
TRAINING_ACCURACY = 0.999
TRAINING_ERROR = 0.01
TRAINING_EXAMPLES = 200  # of fewer, all may be right by chance


def verdict_on(found: Inspection) -> Verdict:
    """The verdict on one file: is it calibrated, how sure is that, and what to do about it."""
    tone, headline, opening = _judged(found.before, found.overconfidence)
    sentences = [opening, *advice(found)]
    if hint := training_hint(found.before):
        tone = "care" if tone == "good" else tone
        sentences.append(hint)
    return Verdict(tone, headline, tuple(sentences))


def _judged(found: Calibration, lean: Estimate) -> tuple[Tone, str, str]:
    low, high = found.intervals["smooth_calibration_error"]
    error = percent(found.smooth_calibration_error)
    told = f"Smooth calibration error {error} (95 % interval {between(low, high)})"
    sides = (
        f"mean confidence is {percent(found.mean_confidence)}, accuracy {percent(found.accuracy)}: "
        f"a difference of {estimated(lean, sign=True)}"
    )
    examples = count(found.examples, "example")
    if high < GOOD:
        rest = "Its confidence can be taken at its word."
        if low == 0:
            rest = f"It cannot be told from perfect calibration with {examples}."
        return "good", "Well calibrated", f"{told}, below {percent(GOOD, 0)}. {rest}"
    if low == 0:
        opening = (
            f"{told}: scatter alone would explain it. It cannot be told from perfectly calibrated with {examples}, "
            f"nor from an error of {percent(high)}; more examples would tell."
        )
        return "care", "Too few examples to tell", opening
    tone: Tone = "bad" if low >= BAD else "care"
    if lean.above_zero:
        return tone, f"{_much(tone)}verconfident", f"{told}; {sides}. It is right less often than it says."
    if lean.below_zero:
        return (
            tone,
            f"{_much(tone, 'U')}nderconfident",
            f"{told}; {sides}. It is right more often than it says.",
        )
    opening = f"{told}; {sides}, so it errs both ways: too sure of some examples, not sure enough of others."
    return tone, "Confident in the wrong places", opening


def _much(tone: Tone, letter: str = "O") -> str:
    return f"Strongly {letter.lower()}" if tone == "bad" else letter


def advice(found: Inspection) -> list[str]:
    """What to do: scale or not, and with how many numbers."""
    if found.scaled is None:
        return [
            f"With fewer than {FEWEST} examples no temperature is fitted: predict more held-out examples."
        ]
    return [*temperature_advice(found.scaled, found.before, found.understood.kind), *_richer_advice(found)]


def temperature_advice(scaled: Scaled, before: Calibration, kind: str = "logits") -> list[str]:
    """Whether to divide logits by a temperature, and what that does to examples the fit has not seen."""
    fit = scaled.fit
    if not scaled.is_known:
        return [f"No temperature can be recommended. {fit.note}"]
    low, high = scaled.interval
    best = f"T = {temperature(fit.temperature, low, high)}"
    if low <= 1 <= high:
        return [f"No temperature is recommended: the best one, {best}, cannot be told from 1."]
    fall = Estimate(-scaled.gain.value, -scaled.gain.high, -scaled.gain.low)
    change = f"ECE from {_error(before)} to {_error(scaled.after)}, NLL by {estimated(fall, 4, share=False, sign=True)}"
    honest = f"on examples it was not fitted to ({FOLDS}-fold)"
    if scaled.gain.above_zero:
        what = "logits" if kind == "logits" else "log-probabilities"
        words = f"Divide the {what} by {best}. That changes {change}, {honest}."
        if scaled.after.smooth_calibration_error > before.smooth_calibration_error:
            words += " The likelihood gets better, the calibration error does not: one number is too few."
        return [words]
    return [
        f"The best temperature is {best}, but it brings no gain that can be told from chance: {change}, "
        f"{honest}."
    ]


def _error(found: Calibration) -> str:
    low, high = found.intervals["expected_calibration_error"]
    return f"{percent(found.expected_calibration_error)} ({between(low, high)})"


def _richer_advice(found: Inspection) -> list[str]:
    helpful = {name: gain for name, gain in found.richer.gains.items() if gain.above_zero}
    if not helpful:
        return []
    name, gain = max(helpful.items(), key=lambda item: item[1].value)
    return [
        f"More numbers help: {name} lower the NLL by a further {estimated(gain, 4, share=False)} "
        f"on examples held out; see below."
    ]


def training_hint(found: Calibration) -> str:
    """A warning if these look like predictions on training data; empty if not."""
    if (
        found.examples < TRAINING_EXAMPLES
        or found.accuracy < TRAINING_ACCURACY
        or found.expected_calibration_error > TRAINING_ERROR
    ):
        return ""
    return (
        f"With an accuracy of {percent(found.accuracy, 2)} this looks like predictions on the training data, "
        "which say nothing "
        "about calibration on anything else. Use examples the net was not trained on."
    )


HELD_OUT = (
    "Fit a temperature on held-out data: never on the training data, where a net is surer than it will be "
    "again, and never on "
    "the final test data, whose results would then look better than they are. If this file is your test set, "
    "fit on a "
    "validation set and only measure here."
)
