"""That the confidence cannot be trusted even after the best scaling, and what could be done, in words."""

from __future__ import annotations

from softtargets.inspection.calibrate.corrections import MOST_CLASSES, PER_CLASS
from softtargets.inspection.calibrate.finding import Diagnosis
from softtargets.inspection.calibrate.remaining import BAD, OtherMethod
from softtargets.inspection.shared.numbers import between, count, estimated, listed, number, percent
from softtargets.report import Code

METHOD_NAMES = {"histogram_binning": "histogram binning", "isotonic_regression": "isotonic regression"}


def first_sentences(found: Diagnosis) -> list[str]:
    """What a verdict begins with: that it is not enough, by how much, and what could be done."""
    error = found.remaining.ece
    by = f"they differ by {number(100 * error.value, 1)} points on average"
    if found.recommended is None:
        plain = f"The model's confidence and its accuracy do not agree, and scaling does not help: {by}."
    else:
        plain = f"Even after the best scaling, confidence and accuracy do not agree: {by}."
    then = "On held-out examples the ECE is then" if found.recommended else "The ECE is"
    measured = (
        f"{then} {percent(error.value)} (95 % interval {between(error.low, error.high)}): do not use "
        "the confidence as a probability."
    )
    return [plain, measured, *what_else(found)]


def what_else(found: Diagnosis) -> list[str]:
    """What could be done: by evidence where there is any."""
    left, told = found.remaining, []
    if left.better is not None:
        told.append(
            f"{METHOD_NAMES[left.better.name].capitalize()} of each class would leave an ECE of "
            f"{estimated(left.better.ece)} on held-out examples; the lines to copy are under “What to do”."
        )
    elif left.others:
        tried = listed([f"{METHOD_NAMES[one.name]} ({estimated(one.ece)})" for one in left.others])
        told.append(f"Fitting each class by itself does not make up for it either: {tried}.")
    elif found.corrections.why_not:
        told.append(_more_examples(found))
    if left.better is None:
        told.append(
            "If the examples come from several groups, such as sources or devices, run this command on each of them: "
            "one may be overconfident where another is underconfident, and each can have a correction of its own."
        )
    return told


def _more_examples(found: Diagnosis) -> str:
    read = found.understood
    told = f"Corrections with numbers for each class could not be tried: {found.corrections.why_not}."
    wanted = PER_CLASS * read.classes
    few = read.examples < wanted and read.classes <= MOST_CLASSES
    return f"{told} Save at least {count(wanted, 'held-out example')}." if few else told


def not_enough_code(found: Diagnosis) -> list[Code]:
    """Lines that fit the method which leaves less; none where there is none."""
    better: OtherMethod | None = found.remaining.better
    if better is None:
        return []
    kind = found.understood.kind
    more = "" if kind == "logits" else ", from_logits=False"
    lines = [
        f"from softtargets.calibration import {better.name}",
        f"correct = {better.name}({kind}, labels{more})  # of held-out examples",
        f"probabilities = correct({kind})  # of new examples: some are 0, and the likeliest class may be another",
    ]
    return [Code("\n".join(lines), title=f"To try {METHOD_NAMES[better.name]} of each class instead:")]


def threshold_words() -> str:
    """From when on an error is called bad."""
    return (
        f"Scaling is called not enough if the whole 95 % interval of the held-out ECE, corrected for scatter, is "
        f"above {percent(BAD, 0)}."
    )
