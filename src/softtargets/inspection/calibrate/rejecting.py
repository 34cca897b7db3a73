"""Rejecting uncertain cases, in words, tables and a figure: a section of the calibrate page."""

from __future__ import annotations

from typing import Any

from softtargets.inspection.calibrate.finding import Diagnosis
from softtargets.inspection.shared.coverage_figure import HANDED_OVER, accuracy_on_the_rest, coverage_figure
from softtargets.inspection.shared.numbers import Estimate, count, estimated, number, percent, points
from softtargets.inspection.shared.two_passes import FEWEST
from softtargets.report import Code, Section, Table
from softtargets.report.drawing import BLUE, ORANGE
from softtargets.selection import NORMALISATION_FOLDS, Selection

AREAS = {
    "aurc": ("AURC", "mean error rate over all coverages"),
    "excess_aurc": ("excess AURC", "AURC less that of the best possible order"),
    "augrc": ("AUGRC", "mean share that is used and wrong"),
}
SMOOTHING = (
    "If the model was trained with label smoothing: smoothing makes the maximum probability worse at telling mistakes "
    "from correct predictions, and normalised logits can recover the loss (Xia et al., ICLR 2025)."
)


def handing_over(found: Diagnosis) -> list[str]:
    """What a verdict says of it; nothing of a handful of examples."""
    if found.selection.examples < FEWEST:
        return []
    told = [handed_over(found.selection)]
    return [*told, _better(found)] if found.normalisation.is_better else told


def handed_over(found: Selection) -> str:
    """The accuracy on the rest if a fifth goes to a person, or why that cannot change it."""
    curve = found.curve
    if curve.mistakes in (0, curve.examples):
        outcome = "wrong: nothing is gained" if curve.mistakes else "right: nothing is left to gain"
        told = "The only prediction is" if curve.examples == 1 else f"All {curve.examples:,} predictions are"
        return f"{told} {outcome} by handing the least confident cases to a person."
    if len(curve.ends) == 1:
        return (
            "All predictions are equally confident, so confidence does not tell mistakes from correct predictions. "
            "Handing the least confident cases to a person gains nothing."
        )
    rest = accuracy_on_the_rest(found)
    if rest.high < found.accuracy:
        return (
            f"Do not choose cases by confidence: without the {percent(HANDED_OVER, 0)} least confident ones, accuracy "
            f"on the rest falls to {estimated(rest)} from {percent(found.accuracy)}."
        )
    return (
        f"If the {percent(HANDED_OVER, 0)} least confident cases are handed to a person, accuracy on the rest is "
        f"{estimated(rest)} instead of {percent(found.accuracy)}."
    )


def area_rows(found: Diagnosis) -> list[tuple[str, str, str]]:
    """Areas for a terminal."""
    areas = [name for name in AREAS if name != "augrc"]
    return [(AREAS[name][0], area(found.selection, name), "–") for name in areas]


def section(found: Diagnosis) -> Section:
    """All of it."""
    curves = {"maximum probability": found.selection.curve}
    if found.normalised is not None:
        curves["normalised logits (held out)"] = found.normalised.curve
    figure = coverage_figure(
        curves,
        (BLUE, ORANGE),
        "How often the most confident predictions are wrong, over the share of predictions that are used; bands are "
        "95 % intervals. The closer to the dashed line, the better confidence tells mistakes from the rest.",
    )
    code = [normalising_code(found)] if found.normalisation.is_better else []
    words = [handed_over(found.selection), _excess(found), _normalised(found), SMOOTHING, _sampled(found)]
    return Section.of(
        "Rejecting uncertain cases",
        *words,
        figure,
        _at_coverage(found),
        at_accuracy(found.selection),
        _areas(found),
        *code,
    )


def normalising_code(found: Diagnosis) -> Code:
    """Lines that order predictions by normalised logits."""
    probabilities = "probabilities"
    if found.zeros.floor:
        probabilities = f"torch.where(probabilities > 0, probabilities, {found.zeros.floor:.4g})"
    lines = [
        *([] if found.understood.kind == "logits" else [f"logits = torch.log({probabilities})"]),
        "centred = logits - logits.mean(-1, keepdim=True)",
        f"confidence = centred.amax(-1) / centred.norm(p={found.normalisation.p}, dim=-1)",
        f"hand_over = confidence < threshold  # confidence.quantile({HANDED_OVER:g}) of held-out examples",
    ]
    return Code("\n".join(lines), title="To order predictions by normalised logits:")


def _excess(found: Diagnosis) -> str:
    one = found.selection
    return (
        f"The mean error rate over all coverages (AURC) is {area(one, 'aurc')}. With as many mistakes, the best "
        f"possible order has {percent(one.best_aurc, 3)}; the excess over that is {area(one, 'excess_aurc')}."
    )


def _better(found: Diagnosis) -> str:
    return (
        f"Choose the cases by normalised logits (p = {found.normalisation.p}) rather than by the maximum probability. "
        f"That changes the AURC by {_change(found)}, on held-out examples ({NORMALISATION_FOLDS}-fold)."
    )


def _normalised(found: Diagnosis) -> str:
    tried = found.normalisation
    if tried.why_not:
        return f"Normalised logits were not tried: {tried.why_not}."
    if tried.is_better:
        told = (
            f"{_better(found)} A normalised logit is the highest centred logit divided by the p-norm of all."
        )
    elif not any(tried.held_out):
        told = "Keep the maximum probability: normalised logits do not order predictions better for any p."
    else:
        told = (
            "Keep the maximum probability: normalised logits bring no gain beyond chance. They change the AURC by "
            f"{_change(found)}, on held-out examples."
        )
    return told


def _change(found: Diagnosis) -> str:
    return points(Estimate(*found.normalisation.difference), 3)


def _sampled(found: Diagnosis) -> str:
    used, there = found.selection.examples, found.understood.examples
    curve = found.normalisation.curve
    normalised = curve.examples if curve else used
    if normalised == there:
        return ""
    also = f"; normalised logits on {normalised:,}" if normalised != used else ""
    return f"Measured on {count(used, 'example')} of {there:,}{also}, chosen by a hash of their place."


def area(found: Selection, name: str) -> str:
    """An area and its interval."""
    return estimated(Estimate(getattr(found, name), *found.intervals[name]), 3)


def _shown(found: Selection) -> dict[float, Estimate]:
    return {one.coverage: Estimate(one.accuracy, one.low, one.high) for one in found.at_coverage}


def _at_coverage(found: Diagnosis) -> Table:
    normalised = _shown(found.normalised) if found.normalised else {}
    rows: list[dict[str, Any]] = []
    for one in found.selection.at_coverage:
        accuracy = Estimate(one.accuracy, one.low, one.high)
        row = {
            "handed_over": round(1 - one.coverage, 12),
            "threshold": one.threshold,
            "below": _threshold(one.threshold) if one.coverage < 1 else "–",
            **accuracy.cells("accuracy"),
            "shown": estimated(accuracy, 2),
        }
        if other := normalised.get(one.coverage):
            row |= {**other.cells("normalised"), "normalised_shown": estimated(other, 2)}
        rows.append(row)
    more = " | normalised_shown: by normalised logits" if normalised else ""
    return Table.of(
        "at_coverage",
        "Accuracy on the rest.",
        f"handed_over .0%: handed over | below: with a probability below | shown: accuracy on the rest{more}",
        rows,
        "With 95 % intervals. Examples of equal confidence count as if in random order.",
    )


def at_accuracy(found: Selection) -> Table:
    """How many predictions can be used for a wanted accuracy."""
    rows = [
        {
            **vars(one),
            "from": "–" if one.threshold is None else _threshold(one.threshold),
            "shown": estimated(Estimate(one.coverage, one.low, one.high)),
        }
        for one in found.at_accuracy
    ]
    return Table.of(
        "at_accuracy",
        "How many can be used.",
        "accuracy .0%: target accuracy | shown: predictions that can be used | from: from a probability of",
        rows,
        "With 95 % intervals; at the lower end, the whole interval of the accuracy reaches the target.",
    )


def _areas(found: Diagnosis) -> Table:
    both = {"as": found.selection} | ({"normalised": found.normalised} if found.normalised else {})
    rows = []
    for key, (name, meaning) in AREAS.items():
        row: dict[str, Any] = {"area": name, "meaning": meaning}
        for side, one in both.items():
            row |= {
                **Estimate(getattr(one, key), *one.intervals[key]).cells(side),
                f"{side}_shown": area(one, key),
            }
        rows.append(row)
    more = " | normalised_shown: normalised logits (held out)" if found.normalised else ""
    return Table.of(
        "selection_areas",
        "Areas",
        f"area | as_shown: maximum probability{more} | meaning: what it is",
        rows,
        "with 95 % intervals; less is better.",
    )


def _threshold(value: float) -> str:
    """A probability, also where it is close to 1.

    >>> _threshold(0.8046), _threshold(0.9999999), _threshold(1.0)
    ('0.8046', '1 − 1.0e-07', '1')
    """
    if value >= 1:
        return "1"
    return f"1 − {1 - value:.1e}" if value > 0.9999 else number(value, 4)
