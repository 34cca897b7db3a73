"""What calibration numbers mean, in plain words. Every threshold is here, with its reason, or imported to here.

Judged by the smooth calibration error (Błasiok & Nakkiran 2024), which needs no bins, and by its 95 % interval rather
than its value, so that few examples never make a verdict. In this order:

1. the whole interval lies below `GOOD`: well calibrated, whatever else;
2. the interval begins at 0: nothing is shown, and the verdict says how large the error could still be;
3. otherwise the error is real: "bad" if the whole interval lies above `BAD`, "care" if not. The model is over- or
   underconfident if the interval of mean confidence less accuracy is above or below 0, and else confident in the
   wrong places.

What to do about it is decided by the rule of `softtargets.inspection.calibrate.corrections`. Where that does not make
the confidence trustworthy, by the rule of `softtargets.inspection.calibrate.remaining`, the verdict begins with it;
where it changes which classes are found, by that of `softtargets.inspection.shared.recalls`, the verdict says so.
"""

from __future__ import annotations

from softtargets.calibration import Calibration, ConfidenceCalibration
from softtargets.inspection.calibrate import changed_classes, not_enough
from softtargets.inspection.calibrate.corrections import Candidate
from softtargets.inspection.calibrate.finding import ClassCalibration, Diagnosis
from softtargets.inspection.calibrate.rejecting import handing_over
from softtargets.inspection.calibrate.remaining import BAD
from softtargets.inspection.shared.measured import corrected_estimate
from softtargets.inspection.shared.numbers import (
    Estimate,
    between,
    count,
    estimated,
    number,
    percent,
    points,
    significant,
)
from softtargets.inspection.shared.two_passes import FEWEST, FOLDS
from softtargets.report import Tone, Verdict

# A stated confidence of 90 % that means 88 to 92 %: few decisions would change, and fewer models are better unscaled.
GOOD = 0.02
# Models reach this on their training set and hardly ever on anything else.
TRAINING_ACCURACY = 0.999
TRAINING_ERROR = 0.01
TRAINING_EXAMPLES = 200  # of fewer, all may be right by chance

# With fewer, 95 % intervals of a mean that hangs on them held the truth in 30 to 90 % of simulated cases.
MISTAKES = 10
# Copies of one example in twenty make intervals too narrow by about as much as their last digit.
REPEATED = 0.05

LEAVE = "Leave the model as it is."
NONE = "None of the corrections is recommended."
NOT_ENOUGH = "scaling is not enough"
BY_CLASS = "Calibrated for the predicted class only"
RIGHT_ON_AVERAGE = (
    "The confidence in the predicted class can be taken at its word, the probability of a class cannot."
)
COSTS_RECALL = "the correction costs recall"
NAMES = {
    "floor": "a small number instead of 0",
    "temperature": "temperature scaling",
    "bias_corrected_temperature": "a temperature and a bias for each class",
    "vector_scaling": "vector scaling (a scale and a bias for each class)",
}
RULE = (
    "A correction is recommended only if it helps held-out examples: the 95 % interval of its paired gain in NLL "
    "lies above 0, the ECE does not rise, and the accuracy does not clearly fall. A correction with more parameters "
    "must also gain over the simpler one, and must still gain if the model made one mistake more."
)
HELD_OUT = (
    "Fit corrections on held-out data. On the training set a model is more confident than it will be again. On the "
    "final test set, results would look better than they are. If this file is your test set, fit on a validation set "
    "and only measure here."
)
READ = "If this is not what you meant, say so with --kind, --scores, --label or --labels."


def verdict_on(found: Diagnosis) -> Verdict:
    """The verdict on one file: is it calibrated, how well do we know, and what to do about it."""
    tone, headline, sentences = judged(found.before, found.overconfidence)
    if still_bad(found):
        tone, headline = "bad", f"{headline}; {NOT_ENOUGH}"
        sentences = [*not_enough.first_sentences(found), *sentences]
    elif changed_classes.costs_recall(found):
        headline = f"{headline}; {COSTS_RECALL}"
    if (misjudged := misjudged_class(found)) is not None:
        if tone == "good":
            tone, headline = "care", BY_CLASS
            sentences = [f"{RIGHT_ON_AVERAGE} {_misjudged(misjudged)}", *sentences[1:]]
        else:
            sentences = [*sentences, _misjudged(misjudged)]
    sentences = [*sentences, *advice(found), *changed_classes.recall_sentences(found), *handing_over(found)]
    if hint := training_hint(found.before):
        tone = "care" if tone == "good" else tone
        sentences.append(hint)
    return Verdict(tone, headline, tuple(sentences))


def still_bad(found: Diagnosis) -> bool:
    """Whether to say that scaling is not enough: not of a model that is called well calibrated or unknown."""
    error = corrected_estimate(found.before, "smooth_calibration_error")
    return found.scaled is not None and found.remaining.is_bad and error.low > 0 and error.high >= GOOD


def misjudged_class(found: Diagnosis) -> ClassCalibration | None:
    """The class whose mean probability is furthest from how often it occurs, if all of the interval is beyond `GOOD`.

    Where one class is rare, the errors of the predicted class say next to nothing of it: a model that gives a class of
    1 in 100 a probability of 15 % may be right about its predictions as often as it says.
    """
    beyond = [one for one in found.worst if one.excess.low >= GOOD or one.excess.high <= -GOOD]
    return max(beyond, key=lambda one: (abs(one.excess.value), -one.share)) if beyond else None


def _misjudged(one: ClassCalibration) -> str:
    probability, share = percent(one.mean_probability), percent(one.share)
    return f"The probability of {_class(one)} is {probability} on average, but {share} of the labels are that class."


def _class(one: ClassCalibration) -> str:
    return f"class {one.name}" if one.name == str(one.index) else one.name


def judged(found: Calibration | ConfidenceCalibration, lean: Estimate) -> tuple[Tone, str, list[str]]:
    """The tone, the headline and the first sentences of a verdict, from a calibration and how overconfident it is."""
    error = corrected_estimate(found, "smooth_calibration_error")
    told = f"The smooth calibration error is {_with_plain(error, found.smooth_calibration_error)}."
    examples = count(found.examples, "example")
    if error.high < GOOD:
        plain = "The model's confidence can be taken at its word."
        if error.low == 0:
            plain = f"With {examples} the model is indistinguishable from a perfectly calibrated one."
        return "good", "Well calibrated", [plain, told]
    if error.low == 0:
        plain = f"With {examples} the model is indistinguishable from a perfectly calibrated one."
        could = f"The error could still be as large as {percent(error.high)}; more examples would narrow that down."
        return "care", "Too few examples to tell", [plain, f"{told} {could}"]
    tone: Tone = "bad" if error.low >= BAD else "care"
    told += (
        f" Mean confidence is {percent(found.mean_confidence)}, accuracy {percent(found.accuracy)}: a difference of "
        f"{points(lean, 1)}."
    )
    if lean.is_zero:
        plain = "The model is too confident for some examples and not confident enough for others."
        return tone, "Confident in the wrong places", [plain, told]
    what, than = ("overconfident", "less") if lean.above_zero else ("underconfident", "more")
    headline = f"Strongly {what}" if tone == "bad" else what.capitalize()
    return tone, headline, [f"The model is right {than} often than it says.", told]


def _with_plain(corrected: Estimate, plain: float) -> str:
    """A corrected error with its interval, and what it was before, if that is another number."""
    shown = f"{percent(corrected.value)} (95 % interval {between(corrected.low, corrected.high)})"
    if percent(plain) == percent(corrected.value):  # in the digits that are shown
        return shown
    return f"{shown}, corrected for scatter from {percent(plain)}"


def advice(found: Diagnosis) -> list[str]:
    """What to do: which correction, or none and why."""
    if found.scaled is None:
        return [
            f"{LEAVE} With fewer than {FEWEST} examples no correction is fitted: predict more held-out examples."
        ]
    best = found.recommended
    return leaving(found) if best is None else [_use(found, best), _effect(found, best)]


def leaving(found: Diagnosis) -> list[str]:
    """Why no correction is recommended."""
    told = NONE if still_bad(found) else LEAVE
    lowering = [one for one in found.corrections.tried if one.correction and one.gain.above_zero]
    raising = [one for one in lowering if one.ece_after > one.ece_before]
    if raising:
        name = NAMES[raising[0].name]
        ends = f"{percent(raising[0].ece_before, 2)} to {percent(raising[0].ece_after, 2)}"
        why = f"On held-out examples {name} would lower the NLL but raise the ECE from {ends}."
    elif lowering and lowering[0].hangs_on_luck:
        wrong = round((1 - found.before.accuracy) * found.understood.examples)
        seen = f"{count(wrong, 'mistake')} in {count(found.understood.examples, 'example')}"
        why = (
            f"On held-out examples {NAMES[lowering[0].name]} would lower the NLL, but one more mistake would undo "
            f"that: {seen} cannot show how confident the model may be."
        )
    elif lowering:
        why = f"On held-out examples {NAMES[lowering[0].name]} would lower the NLL, but also the accuracy."
    elif found.scaled is not None and not found.scaled.is_known:
        why = f"No temperature fits. {found.scaled.fit.note}"
    else:
        why = "On held-out examples no correction lowers the NLL by more than chance would."
    return [told, why]


def _use(found: Diagnosis, best: Candidate) -> str:
    scores = "logits" if found.understood.kind == "logits" else "log-probabilities"
    assert best.correction is not None
    if best.name == "floor":
        return f"Count probabilities of 0 as {significant(best.correction.floor or 0)} and leave the others."
    if best.name == "temperature":
        assert found.scaled is not None
        return f"Divide the {scores} by T = {found.scaled.shown}."
    kept = "its numbers are in the table, in correction.json and in the code to copy."
    return f"Correct the {scores} by {NAMES[best.name]}; {kept}"


def _effect(found: Diagnosis, best: Candidate) -> str:
    """What a recommended correction does to held-out examples."""
    before = corrected_estimate(found.before, "expected_calibration_error")
    ece = f"{estimated(before)} to {estimated(found.remaining.ece)}"
    if best.name == "floor":
        ece = f"{percent(best.ece_before)} to {percent(best.ece_after)}"
        return f"That makes the NLL finite and changes the ECE from {ece}."
    change = f"That changes the ECE from {ece} and the NLL by {_fall(best.gain)}"
    if best.correction is not None and best.correction.bias is not None:
        change = f"{change.replace(' and the NLL', ', the NLL')} and the accuracy by {points(best.accuracy)}"
    return f"{change}, on held-out examples ({best.folds}-fold)."


def _fall(gain: Estimate) -> str:
    return estimated(-gain, 4, share=False, sign=True)


def training_hint(found: Calibration | ConfidenceCalibration) -> str:
    """A warning if these look like predictions on training data; empty if not."""
    if (
        found.examples < TRAINING_EXAMPLES
        or found.accuracy < TRAINING_ACCURACY
        or found.expected_calibration_error > TRAINING_ERROR
    ):
        return ""
    return (
        f"With an accuracy of {percent(found.accuracy, 2)} this looks like predictions on the training set, which say "
        "nothing about calibration on anything else. Use examples that the model was not trained on."
    )


def warnings_on(found: Diagnosis) -> list[str]:
    """What a reader must know before believing the numbers."""
    return [*_no_better(found), *_zero_labels(found), *_few_mistakes(found.before), *_repetitions(found)]


def _no_better(found: Diagnosis) -> list[str]:
    """That the accuracy is not above that of always predicting one class, so that it says little."""
    index, share = found.commonest
    low, _ = found.before.intervals["accuracy"]
    if found.understood.examples < FEWEST or low > share:
        return []
    accuracy = percent(found.before.accuracy)
    return [
        f"Accuracy says little here: always predicting {found.understood.called(index)} would be right in "
        f"{percent(share)} of cases, and the model is right in {accuracy}.{_predicted(found, index)}"
    ]


def _predicted(found: Diagnosis, index: int) -> str:
    """How often the model predicts that class, where predictions were counted."""
    counted = (one.recalls for one in found.corrections.tried if one.recalls is not None)
    recalls = next(counted, None)
    if recalls is None:
        return ""
    predicted = next(one.predicted_before for one in recalls.classes if one.index == index)
    examples = sum(one.examples for one in recalls.classes)
    every = "every example" if predicted == examples else f"{predicted:,} of {examples:,} examples"
    return f" It predicts that class for {every}."


def _repetitions(found: Diagnosis) -> list[str]:
    """That copies of examples are counted as further examples."""
    if found.repeated < REPEATED * found.understood.examples:
        return []
    rows = f"{count(found.repeated, 'row')} of {found.understood.examples:,}"
    return [
        f"{rows} have the same scores and label as an earlier row. If examples were copied, all intervals are too "
        "narrow, and corrections are judged by examples that they were fitted to: leave the copies out."
    ]


def _few_mistakes(found: Calibration) -> list[str]:
    """That means which hang on a few mistakes have normal intervals that are too narrow."""
    wrong = round((1 - found.accuracy) * found.examples)
    if wrong >= MISTAKES:
        return []
    return [
        f"With only {count(wrong, 'mistake')} in {count(found.examples, 'example')} the intervals of NLL and Brier "
        "score are too narrow: nothing shows what further mistakes would cost."
    ]


def _zero_labels(found: Diagnosis) -> list[str]:
    """That the likelihood is infinite, and what it is if 0 counts as a small number."""
    if not found.zeros.labelled or found.nll_with_floor is None:
        return []
    return [
        f"{count(found.zeros.labelled, 'label')} had a probability of exactly 0, so the NLL is infinite. With 0 "
        f"counted as {significant(found.zeros.floor or 0)} it is {estimated(found.nll_with_floor, 3, share=False)}."
    ]


def floor_words(found: Diagnosis) -> list[str]:
    """What probabilities of exactly 0 count as, and why; nothing where there are none."""
    zeros = found.zeros
    if zeros.floor is None:
        return []
    return [
        f"Probabilities of exactly 0 count as {significant(zeros.floor)} wherever a logarithm is taken. "
        f"{zeros.labelled:,} of the {zeros.zeros:,} zeros belonged to the label, which gives this number; it is at "
        "most half of the smallest positive probability. Metrics of the predictions as they are keep the zeros."
    ]


def correction_words(found: Diagnosis) -> list[str]:
    """What to do, by which rule, and what was not tried."""
    told = [" ".join(advice(found)), *changed_classes.recall_words(found)]
    if still_bad(found):
        told.append(" ".join([*not_enough.first_sentences(found), not_enough.threshold_words()]))
    told += [*_temperature_words(found), RULE, *floor_words(found)]
    if found.corrections.why_not and found.scaled is not None:
        told.append(f"Corrections with numbers for each class were not tried: {found.corrections.why_not}.")
    return [*told, HELD_OUT]


def _temperature_words(found: Diagnosis) -> list[str]:
    scaled = found.scaled
    if scaled is None or not scaled.is_known:
        return []
    best = scaled.temperature
    effect = f"It makes predictions {'less' if best.value > 1 else 'more'} confident."
    if best.low <= 1 <= best.high:
        effect = "The interval includes 1, which changes nothing."
    ends = between(best.low, best.high, 3, share=False)
    return [
        f"The temperature with the best likelihood is T = {number(best.value, 3)} (95 % interval {ends}). {effect}"
    ]


def scaled_words(found: Diagnosis) -> str:
    """What the numbers after scaling are."""
    if found.scaled is None:
        return f"With fewer than {FEWEST} examples none can be held out, so scaling was not tried."
    temperatures = ", ".join(number(t, 3) for t in found.scaled.temperatures)
    return (
        f"“Scaled” means that each of {FOLDS} folds is scaled by a temperature fitted to the other folds "
        f"({temperatures}). No example influences its own temperature, so new examples should give similar numbers. "
        "A temperature never changes the accuracy."
    )


def correction_line(found: Diagnosis) -> str:
    """The recommended correction for a terminal."""
    best = found.recommended
    if best is None or found.scaled is None:
        return "correction: none"
    if best.name == "temperature":
        return f"correction: temperature {estimated(found.scaled.temperature, 3, share=False)}"
    return f"correction: {NAMES[best.name]}{changed_classes.fall_in_brackets(found)}"
