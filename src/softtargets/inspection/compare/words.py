"""Which of two models is better at what, only as far as intervals say so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from softtargets.inspection.compare.finding import Comparison
from softtargets.inspection.compare.paired import Differences
from softtargets.inspection.shared.coverage_figure import HANDED_OVER, accuracy_on_the_rest
from softtargets.inspection.shared.measured import Measured
from softtargets.inspection.shared.numbers import (
    Estimate,
    count,
    estimated,
    listed,
    number,
    percent,
    points,
    significant,
)
from softtargets.inspection.shared.recalls import ClassRecall
from softtargets.inspection.shared.two_passes import FEWEST, FOLDS
from softtargets.report import Verdict


def short_names(a: Path, b: Path) -> tuple[str, str]:
    """What two files are called, with the directory in which they differ where names are the same.

    >>> short_names(Path("x/a.npz"), Path("x/b.npz")), short_names(Path("x/y/a.npz"), Path("z/y/a.npz"))
    (('a.npz', 'b.npz'), ('x … a.npz', 'z … a.npz'))
    """
    if a.name != b.name:
        return a.name, b.name
    parents = zip(reversed(a.absolute().parts[:-1]), reversed(b.absolute().parts[:-1]), strict=False)
    for one, two in parents:
        if one != two:
            return f"{one} … {a.name}", f"{two} … {b.name}"
    return f"{a.name} (A)", f"{b.name} (B)"


def names_of(found: Comparison) -> dict[str, str]:
    """What the page calls A and B."""
    a, b = short_names(found.a.understood.path, found.b.understood.path)
    return {"A": a, "B": b}


def verdict_on_two(found: Comparison) -> Verdict:
    """Who is better at what, by name: one plain sentence each, the difference after it."""
    d, names = found.differences, names_of(found)
    accuracy = winner(d.accuracy, lower_is_better=False)
    calibration, likelihood = winner(d.smooth_ece), winner(d.nll)
    nll = f"NLL {_minus(names)} = {estimated(d.nll, 4, share=False, sign=True)}"
    sentences = (
        _claim(
            names,
            accuracy,
            "is more accurate",
            "are equally accurate",
            f"accuracy {_minus(names)} = {points(d.accuracy)}",
        ),
        *recall_claims(found),
        _claim(
            names,
            calibration,
            "is better calibrated",
            "are equally well calibrated",
            _smooth(names, d),
        ),
        *([_after_scaling(names, calibration, found.scaled)] if found.scaled else []),
        _claim(
            names,
            likelihood,
            "gives the true labels more probability",
            "give the true labels the same probability",
            nll,
        ),
        *rejecting_claim(found),
        *repaired_claim(found),
    )
    better = {"more accurate": accuracy, "better calibrated": calibration, "better by likelihood": likelihood}
    told = [
        f"{names[one]} is {listed([word for word, who in better.items() if who == one])}"
        for one in ("A", "B")
        if one in better.values()
    ]
    told += [f"{names[who]} finds more of {one.name}" for who, one in against_accuracy(found) if accuracy]
    headline = ", ".join(told) or "These examples show no difference between the two models"
    return Verdict("good" if len(told) == 1 else "plain", headline, sentences)


def against_accuracy(found: Comparison) -> list[tuple[str, ClassRecall]]:
    """Which class a model finds more of by the most, though it is not the more accurate one: A or B, and the class.

    Where one class is rare, the accuracy is that of the others.
    """
    accuracy = winner(found.differences.accuracy, lower_is_better=False)
    more = {"A": found.recalls.falling, "B": found.recalls.rising}
    return [(who, classes[0]) for who, classes in more.items() if classes and who != accuracy]


def recall_claims(found: Comparison) -> list[str]:
    """Who finds more of which class; nothing where that goes with the accuracy."""
    names = names_of(found)
    told = []
    for who, one in against_accuracy(found):
        more, less = (one.before, one.after) if who == "A" else (one.after, one.before)
        told.append(
            f"{names[who]} finds more of {one.name}, {percent(more.value)} instead of {percent(less.value)} of its "
            f"{count(one.examples, 'example')}: recall {_minus(names)} = {points(one.change, 1)}."
        )
    return told


def rejecting_claim(found: Comparison) -> list[str]:
    """Who is wrong less often where uncertain cases are left out; nothing of a handful of examples."""
    if found.a.selection.examples < FEWEST:
        return []
    names = names_of(found)
    difference = f"AURC {_minus(names)} = {points(found.aurc, 3)}"
    fewer = "makes fewer mistakes where uncertain cases are rejected"
    equal = "do equally well at rejecting uncertain cases"
    return [_claim(names, winner(found.aurc), fewer, equal, difference)]


def repaired_claim(found: Comparison) -> list[str]:
    """Whether normalised logits, where they help, change who is better; nothing where they help neither."""
    if found.repaired is None:
        return []
    names = names_of(found)
    helped = listed([one for one, better in zip(names.values(), found.normalised, strict=True) if better])
    difference = f"AURC {_minus(names)} = {points(found.repaired, 3)}"
    told = f"Normalised logits order the predictions of {helped} better than the maximum probability does."
    after = winner(found.repaired)
    if not after:
        return [f"{told} With them neither model is shown to be better at rejecting: {difference}."]
    still = "still makes" if after == winner(found.aurc) else "makes"
    return [
        f"{told} With them {names[after]} {still} fewer mistakes where uncertain cases are rejected: {difference}."
    ]


def rejecting_words(found: Comparison) -> tuple[str, ...]:
    """The accuracy of both on the rest, and what the difference is of."""
    names = names_of(found)
    a, b = (estimated(accuracy_on_the_rest(side.selection)) for side in (found.a, found.b))
    return (
        f"If each model hands its {percent(HANDED_OVER, 0)} least confident cases to a person, accuracy on the rest is "
        f"{a} for {names['A']} and {b} for {names['B']}.",
        *rejecting_claim(found),
        *repaired_claim(found),
        "AURC is the average error rate over all coverages: over all shares of the predictions that may be used, "
        "the most confident ones (by maximum probability) first. A model has a lower AURC if it makes fewer "
        "mistakes, or if its confidence separates its mistakes better.",
    )


def zero_warnings(found: Comparison) -> list[str]:
    """That a likelihood is infinite, and what it is compared as."""
    return [
        f"{count(side.zeros.labelled, 'label')} had a probability of exactly 0 in {name}, so its NLL is infinite. "
        f"Differences of NLL count 0 as {significant(side.zeros.floor)}."
        for name, side in zip(names_of(found).values(), (found.a, found.b), strict=True)
        if side.zeros.labelled and side.zeros.floor
    ]


def winner(difference: Estimate, lower_is_better: bool = True) -> str:
    """A or B, whichever is better for certain; empty if neither."""
    if difference.is_zero:
        return ""
    return "B" if difference.below_zero == lower_is_better else "A"


def shown_winner(names: Mapping[str, str], winner: str) -> str:
    """The name of the better one, for a table."""
    return names[winner] if winner else "neither clearly"


def _minus(names: Mapping[str, str]) -> str:
    return f"{names['B']} − {names['A']}"


def _claim(names: Mapping[str, str], winner: str, better: str, equal: str, difference: str) -> str:
    if not winner:
        return f"The two models {equal} as far as these examples show: {difference}."
    return f"{names[winner]} {better}: {difference}."


def _smooth(names: Mapping[str, str], found: Differences) -> str:
    return f"smooth calibration error {_minus(names)} = {points(found.smooth_ece)}"


def _after_scaling(names: Mapping[str, str], calibration: str, scaled: Differences) -> str:
    """Whether a temperature for each changes who is better calibrated."""
    after = winner(scaled.smooth_ece)
    when = "After each is scaled by its own temperature,"
    if not after:
        told = f"{when} these examples show no difference in calibration" + (
            " any more" if calibration else ""
        )
    elif after == calibration:
        told = f"{when} {names[after]} is still better calibrated"
    else:
        told = f"{when} {names[after]} is better calibrated{' instead' if calibration else ''}"
    return f"{told}: {_smooth(names, scaled)}."


def difference_words(found: Comparison) -> tuple[str, ...]:
    """What scaled means, and how differences were tested."""
    p = found.differences.accuracy_p
    tested = (
        f"Accuracies: McNemar's test (mid-p) gives {f'p = {number(p, 4)}' if p >= 0.0001 else 'p < 0.0001'}. All "
        "differences are paired, example by example. The interval of a difference of calibration errors combines "
        "the intervals of both models and their correlation."
    )
    if not found.scaled:
        return (tested,)
    sides = zip(names_of(found).values(), (found.a, found.b), strict=True)
    temperatures = ", ".join(f"{_temperature(side)} for {name}" for name, side in sides)
    scaled = (
        f"Scaled predictions are cross-fitted, for each model separately: the examples are cut into {FOLDS} folds, "
        "and each fold is scaled by the temperature that was fitted to the others. Fitted to all examples, the "
        f"temperatures are {temperatures}."
    )
    return scaled, tested


def _temperature(side: Measured) -> str:
    if side.scaled is None or side.best is None:
        return "none"
    return side.scaled.shown


def mistakes_words(found: Comparison) -> str:
    """How often both agree, and whether they share their mistakes."""
    o = found.overlap
    told = f"The two models predict the same class for {percent(found.agreement)} of the examples."
    if o.examples == o.both_right:
        return told
    told += (
        f" Of the examples that at least one model gets wrong, both get {percent(o.jaccard)} wrong. If their "
        f"mistakes were independent, it would be {percent(o.expected_jaccard)}."
    )
    times = o.both_wrong / o.expected_both_wrong if o.expected_both_wrong else 0.0
    return told + (
        f" They share {number(times, 1)} times as many mistakes as expected by chance." if times else ""
    )
