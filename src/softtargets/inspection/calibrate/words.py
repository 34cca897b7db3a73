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
from softtargets.inspection.calibrate.finding import Diagnosis
from softtargets.inspection.calibrate.rejecting import handing_over
from softtargets.inspection.shared.measured import Scaled, estimate_of
from softtargets.inspection.shared.numbers import Estimate, between, count, estimated, number, percent
from softtargets.inspection.shared.two_passes import FEWEST, FOLDS
from softtargets.report import Tone, Verdict

# A stated confidence of 90 % that means 88 to 92 %: few decisions would change, and fewer nets are better unscaled.
GOOD = 0.02
# On average one in twenty of the predictions made with such confidence is not as said: decisions do change.
BAD = 0.05
# Nets reach this on what they were trained on and hardly ever on anything else.
TRAINING_ACCURACY = 0.999
TRAINING_ERROR = 0.01
TRAINING_EXAMPLES = 200  # of fewer, all may be right by chance

HELD_OUT = (
    "Fit a temperature on held-out data: never on the training data, where a net is surer than it will be again, and "
    "never on the final test data, whose results would then look better than they are. If this file is your test set, "
    "fit on a validation set and only measure here."
)
READ = "If this is not what you meant, say so with --kind, --scores, --label or --labels."


def verdict_on(found: Diagnosis) -> Verdict:
    """The verdict on one file: is it calibrated, how sure is that, and what to do about it."""
    tone, headline, opening = _judged(found.before, found.overconfidence)
    sentences = [opening, *advice(found), *handing_over(found)]
    if hint := training_hint(found.before):
        tone = "care" if tone == "good" else tone
        sentences.append(hint)
    return Verdict(tone, headline, tuple(sentences))


def _judged(found: Calibration, lean: Estimate) -> tuple[Tone, str, str]:
    low, high = found.intervals["smooth_calibration_error"]
    error = percent(found.smooth_calibration_error)
    told = f"Smooth calibration error {error} (95 % interval {between(low, high)})"
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
    told += (
        f"; mean confidence is {percent(found.mean_confidence)}, accuracy {percent(found.accuracy)}: "
        f"a difference of {estimated(lean, sign=True)}"
    )
    tone: Tone = "bad" if low >= BAD else "care"
    if lean.is_zero:
        opening = f"{told}, so it errs both ways: too sure of some examples, not sure enough of others."
        return tone, "Confident in the wrong places", opening
    what, than = ("overconfident", "less") if lean.above_zero else ("underconfident", "more")
    headline = f"Strongly {what}" if tone == "bad" else what.capitalize()
    return tone, headline, f"{told}. It is right {than} often than it says."


def advice(found: Diagnosis) -> list[str]:
    """What to do: scale or not, and with how many numbers."""
    if found.scaled is None:
        return [
            f"With fewer than {FEWEST} examples no temperature is fitted: predict more held-out examples."
        ]
    told = temperature_advice(found.scaled, found.before, found.understood.kind)
    helpful = {name: gain for name, gain in found.richer.gains.items() if gain.above_zero}
    if not helpful:
        return [told]
    name, gain = max(helpful.items(), key=lambda item: item[1].value)
    more = f"{name} lower the NLL by a further {estimated(gain, 4, share=False)} on examples held out; see below."
    return [told, f"More numbers help: {more}"]


def temperature_advice(scaled: Scaled, before: Calibration, kind: str = "logits") -> str:
    """Whether to divide logits by a temperature, and what that does to examples the fit has not seen."""
    if not scaled.is_known:
        return no_temperature(scaled)
    best = f"T = {scaled.shown}"
    if scaled.temperature.low <= 1 <= scaled.temperature.high:
        return f"No temperature is recommended: the best one, {best}, cannot be told from 1."
    errors = (estimated(estimate_of(one, "expected_calibration_error")) for one in (before, scaled.after))
    fall = estimated(-scaled.gain, 4, share=False, sign=True)
    change = (
        f"ECE from {' to '.join(errors)}, NLL by {fall}, on examples it was not fitted to ({FOLDS}-fold)."
    )
    if not scaled.gain.above_zero:
        return f"The best temperature is {best}, but it brings no gain that can be told from chance: {change}"
    what = "logits" if kind == "logits" else "log-probabilities"
    words = f"Divide the {what} by {best}. That changes {change}"
    if scaled.after.smooth_calibration_error > before.smooth_calibration_error:
        words += " The likelihood gets better, the calibration error does not: one number is too few."
    return words


def no_temperature(scaled: Scaled) -> str:
    """Why there is none to recommend."""
    return f"No temperature can be recommended. {scaled.fit.note}"


def training_hint(found: Calibration) -> str:
    """A warning if these look like predictions on training data; empty if not."""
    if (
        found.examples < TRAINING_EXAMPLES
        or found.accuracy < TRAINING_ACCURACY
        or found.expected_calibration_error > TRAINING_ERROR
    ):
        return ""
    return (
        f"With an accuracy of {percent(found.accuracy, 2)} this looks like predictions on the training data, which say "
        "nothing about calibration on anything else. Use examples the net was not trained on."
    )


def warnings_on(found: Diagnosis) -> list[str]:
    """What a reader must know before believing the numbers."""
    if not found.impossible:
        return []
    nll = number(found.curves[1.0][0], 3)
    return [
        f"{count(found.impossible, 'label')} had a probability of exactly 0, so the NLL is infinite. Counting 0 as the "
        f"smallest number of its precision, which is what scaling does, it is {nll}."
    ]


def scaling_words(found: Diagnosis) -> list[str]:
    """The temperature, and whether more numbers would help."""
    told = []
    if found.scaled and found.scaled.is_known:
        best = found.scaled.temperature
        told.append(
            f"The temperature with the best likelihood of these examples is T = {number(best.value, 3)} "
            f"(95 % interval {between(best.low, best.high, 3, share=False)}). {_effect(best)}"
        )
    elif found.scaled:
        told.append(no_temperature(found.scaled))
    richer = found.richer
    if richer.why_not:
        answer = f"That cannot be said: {richer.why_not}."
    elif any(gain.above_zero for gain in richer.gains.values()):
        answer = "Yes; see the table."
    else:
        answer = "Not that these examples could show: stay with the temperature."
    return [*told, HELD_OUT, f"Would more numbers than one temperature help? {answer}"]


def _effect(temperature: Estimate) -> str:
    if temperature.low <= 1 <= temperature.high:
        return "Since the interval includes 1, predictions may as well stay as they are."
    return f"It makes predictions {'less sure' if temperature.value > 1 else 'surer'}."


def scaled_words(found: Diagnosis) -> str:
    """What the numbers after scaling are."""
    if found.scaled is None:
        return f"With fewer than {FEWEST} examples none can be held out, so nothing is said about scaling."
    temperatures = ", ".join(number(t, 3) for t in found.scaled.temperatures)
    return (
        f"Scaled means: the examples are divided into {FOLDS} parts, and each part is scaled by a temperature fitted "
        f"to the others ({temperatures}). So no example has a say in its own scaling, and the numbers are those to "
        "expect of new examples. Scaling never changes the accuracy."
    )


def temperature_line(found: Diagnosis) -> str:
    """The temperature for a terminal."""
    if found.scaled is None or not found.scaled.is_known:
        return "temperature: none"
    return f"temperature: {estimated(found.scaled.temperature, 3, share=False)}"
