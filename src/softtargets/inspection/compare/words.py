"""Which of two models is better at what, only as far as intervals say so."""

from __future__ import annotations

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


def verdict_on_two(found: Comparison) -> Verdict:
    """Who is better at what."""
    d = found.differences
    accuracy = winner(d.accuracy, lower_is_better=False)
    calibration, likelihood = winner(d.smooth_ece), winner(d.nll)
    nll = f"NLL B − A = {estimated(d.nll, 4, share=False, sign=True)}"
    sentences = (
        _claim(accuracy, "is more accurate", f"accuracy B − A = {estimated(d.accuracy, 2, sign=True)}"),
        _claim(calibration, "is better calibrated", _smooth(d)),
        *([_after_scaling(calibration, found.scaled)] if found.scaled else []),
        _claim(likelihood, "gives labels more probability", nll),
        *rejecting_claim(found),
        *repaired_claim(found),
    )
    better = {"more accurate": accuracy, "better calibrated": calibration, "better by likelihood": likelihood}
    told = [
        f"{one} is {listed([word for word, who in better.items() if who == one])}"
        for one in ("A", "B")
        if one in better.values()
    ]
    headline = ", ".join(told) or "No difference that these examples could show"
    return Verdict("good" if len(told) == 1 else "care", headline, sentences)


def rejecting_claim(found: Comparison) -> list[str]:
    """Who is wrong less often where uncertain cases are left out; nothing of a handful of examples."""
    if found.a.selection.examples < FEWEST:
        return []
    difference = f"AURC B − A = {points(found.aurc, 3)}"
    return [_claim(winner(found.aurc), "makes fewer mistakes where uncertain cases are rejected", difference)]


def repaired_claim(found: Comparison) -> list[str]:
    """Whether normalised logits, where they help, change who is better; nothing where they help neither."""
    if found.repaired is None:
        return []
    helped = listed([one for one, better in zip(("A", "B"), found.normalised, strict=True) if better])
    difference = f"AURC B − A = {points(found.repaired, 3)}"
    told = f"Normalised logits order the predictions of {helped} better than the maximum probability does."
    after = winner(found.repaired)
    if not after:
        return [f"{told} With them neither model is shown to be better at rejecting: {difference}."]
    still = "still makes" if after == winner(found.aurc) else "makes"
    return [
        f"{told} With them {after} {still} fewer mistakes where uncertain cases are rejected: {difference}."
    ]


def rejecting_words(found: Comparison) -> tuple[str, ...]:
    """The accuracy of both on the rest, and what the difference is of."""
    a, b = (estimated(accuracy_on_the_rest(side.selection)) for side in (found.a, found.b))
    return (
        f"If each hands its {percent(HANDED_OVER, 0)} least confident cases to a person, accuracy on the rest is {a} "
        f"for A and {b} for B.",
        *rejecting_claim(found),
        *repaired_claim(found),
        "The AURC is the mean error rate over all shares of predictions that may be used, most confident first by the "
        "maximum probability. It is less for a more accurate model, and for one that tells its mistakes better.",
    )


def zero_warnings(found: Comparison) -> list[str]:
    """That a likelihood is infinite, and what it is compared as."""
    return [
        f"{count(side.zeros.labelled, 'label')} had a probability of exactly 0 in {name}, so its NLL is infinite. "
        f"Differences of NLL count 0 as {significant(side.zeros.floor)}."
        for name, side in (("A", found.a), ("B", found.b))
        if side.zeros.labelled and side.zeros.floor
    ]


def winner(difference: Estimate, lower_is_better: bool = True) -> str:
    """A or B, whichever is better for certain; empty if neither."""
    if difference.is_zero:
        return ""
    return "B" if difference.below_zero == lower_is_better else "A"


def _claim(winner: str, what: str, difference: str) -> str:
    return f"{winner} {what}: {difference}." if winner else f"Which {what} cannot be said: {difference}."


def _smooth(found: Differences) -> str:
    return f"smooth calibration error B − A = {estimated(found.smooth_ece, 2, sign=True)}"


def _after_scaling(calibration: str, scaled: Differences) -> str:
    """Whether a temperature for each changes who is better calibrated."""
    after = winner(scaled.smooth_ece)
    when = "after scaling each by its own temperature"
    if not after:
        told = f"That advantage is gone {when}" if calibration else f"Nor can it be said {when}"
    elif after == calibration:
        told = f"It still is {when}"
    else:
        told = f"{'But' if calibration else 'Yet'} {after} is better calibrated {when}"
    return f"{told}: {_smooth(scaled)}."


def difference_words(found: Comparison) -> tuple[str, ...]:
    """What scaled means, and how differences were tested."""
    p = found.differences.accuracy_p
    tested = (
        f"Accuracies: McNemar's test (mid-p) gives {f'p = {number(p, 4)}' if p >= 0.0001 else 'p < 0.0001'}. "
        "Differences of means are paired; the interval of a difference of calibration errors is put together from "
        "those of both, with their correlation."
    )
    if not found.scaled:
        return (tested,)
    temperatures = ", ".join(
        f"{_temperature(side)} for {one}" for one, side in (("A", found.a), ("B", found.b))
    )
    scaled = (
        "Scaled means: each example is scaled by a temperature fitted to the other parts of the examples "
        f"({FOLDS} parts), for each model by itself. Fitted to all examples, temperatures are {temperatures}."
    )
    return scaled, tested


def _temperature(side: Measured) -> str:
    if side.scaled is None or side.best is None:
        return "none"
    return side.scaled.shown


def mistakes_words(found: Comparison) -> str:
    """How often both agree, and whether they share their mistakes."""
    o = found.overlap
    told = f"They predict the same class for {percent(found.agreement)} of the examples."
    if o.examples == o.both_right:
        return told
    told += (
        f" Of the examples that at least one gets wrong, both get {percent(o.jaccard)} wrong; if the mistakes of one "
        f"said nothing about the other's, it would be {percent(o.expected_jaccard)}."
    )
    times = o.both_wrong / o.expected_both_wrong if o.expected_both_wrong else 0.0
    return told + (f" They share {number(times, 1)} times as many mistakes as by chance." if times else "")
