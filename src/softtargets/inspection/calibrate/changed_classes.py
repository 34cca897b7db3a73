"""What a recommended correction does to predicted classes, in words, a table and lines to copy."""

from __future__ import annotations

from collections.abc import Iterator

from softtargets.inspection.calibrate.corrections import Candidate
from softtargets.inspection.calibrate.finding import Diagnosis
from softtargets.inspection.shared.numbers import count, estimated, listed, percent, points
from softtargets.inspection.shared.recalls import ClassRecall, Recalls
from softtargets.report import Code, Table

MOST_ROWS = 10
MOST_NAMED = 3


def changing(found: Diagnosis) -> Recalls | None:
    """What the recommended correction does to classes; None where it changes no prediction."""
    best = found.recommended
    return best.recalls if best is not None and best.recalls is not None and best.recalls.changed else None


def recall_sentences(found: Diagnosis) -> list[str]:
    """What a verdict says of it: nothing unless a class is found less often by more than chance, or not at all."""
    recalls = changing(found)
    if recalls is None or not (recalls.falling or recalls.given_up):
        return []
    told = []
    if recalls.falling:
        told = [_falls(recalls.falling[0]), _precision(recalls.falling[0]), _more_falls(recalls)]
    if recalls.given_up:
        told.append(_given_up(recalls.given_up))
    return [*filter(None, told), _instead(found)]


def costs_recall(found: Diagnosis) -> bool:
    """Whether a class is found less often by more than chance."""
    recalls = changing(found)
    return recalls is not None and bool(recalls.falling)


def fall_in_brackets(found: Diagnosis) -> str:
    """The largest fall, for the line of a terminal that names the correction; empty where there is none."""
    recalls = changing(found)
    if recalls is None or not recalls.falling:
        return ""
    worst = recalls.falling[0]
    return f" (recall of {worst.name}: {_ends(worst)})"


def _ends(one: ClassRecall) -> str:
    return f"{percent(one.before.value)} to {percent(one.after.value)}"


def _falls(worst: ClassRecall) -> str:
    return (
        f"The correction also changes which class is predicted: the recall of {worst.name} falls from {_ends(worst)}. "
        f"That is a change of {points(worst.change, 1)}, on {count(worst.examples, 'held-out example')} of that class."
    )


def _more_falls(recalls: Recalls) -> str:
    others = recalls.falling[1:]
    if not others:
        return ""
    named = [f"{one.name} (from {_ends(one)})" for one in others[:MOST_NAMED]]
    more = len(others) - len(named)
    shown = listed([*named, f"{count(more, 'further class')}"] if more else named)
    return f"The recall of other classes falls by more than chance too: {shown}."


def _precision(worst: ClassRecall) -> str:
    before, after = worst.precision_before, worst.precision_after
    if after is None:
        return f"The corrected model never predicts {worst.name}."
    if before is None or after <= before:
        return ""
    return f"Predictions of {worst.name} are right more often: {percent(after)} instead of {percent(before)}."


def _given_up(given_up: tuple[ClassRecall, ...]) -> str:
    named = [
        f"{one.name} (recall {percent(one.before.value, 0)} of {one.examples:,})"
        for one in given_up[:MOST_NAMED]
    ]
    more = len(given_up) - len(named)
    shown = listed([*named, count(more, "further class")] if more else named)
    return f"After the correction no example is predicted as {shown}; there are too few examples to rule out chance."


def _instead(found: Diagnosis) -> str:
    told = (
        "If missing such a class is costly, keep the predictions of the model as it is and take only their "
        "probabilities from the correction"
    )
    return (
        f"{told}, or use temperature scaling, which changes no prediction."
        if _scaling_would_do(found)
        else f"{told}."
    )


def _scaling_would_do(found: Diagnosis) -> bool:
    """Whether a temperature helps too, and leaves no more error in the probabilities of classes than chance may add."""
    helps = any(one.name == "temperature" and one.helps for one in found.corrections.tried)
    if not helps or found.after is None:
        return False
    one, other = (
        each.intervals["classwise_calibration_error"] for each in (found.after, found.remaining.after)
    )
    return one[0] <= other[1]


def recall_words(found: Diagnosis) -> list[str]:
    """The same for the section on corrections, which also says that nothing happens."""
    recalls, best = changing(found), found.recommended
    if best is None or best.recalls is None:
        return []
    if recalls is None:
        return ["On held-out examples the correction changes no prediction."]
    told = recall_sentences(found) or ["No class is found less often by more than chance."]
    predictions = count(recalls.changed, "prediction")
    changed = f"On held-out examples the correction changes {predictions} of {best.examples:,}."
    return [" ".join([changed, *told])]


def recall_exhibits(found: Diagnosis) -> Iterator[Table | Code]:
    """The table of recalls, and lines that keep predictions where that is advised."""
    recalls, best = changing(found), found.recommended
    if recalls is None or best is None:
        return
    if recall_sentences(found):
        yield keeping_code(best)
    yield recall_table(recalls)


def keeping_code(best: Candidate) -> Code:
    """Lines that leave predictions as they are and correct only their probabilities."""
    scores = best.correction.kind if best.correction is not None else "logits"
    lines = [
        f"predicted = {scores}.argmax(-1)  # before the correction",
        "confidence = probabilities.gather(-1, predicted.unsqueeze(-1)).squeeze(-1)  # after it",
    ]
    return Code("\n".join(lines), title="To keep the predictions and correct only their probabilities:")


def recall_table(recalls: Recalls) -> Table:
    """Recall and precision of the classes that lose most."""
    rows = [
        {
            "class": one.name,
            "examples": one.examples,
            **one.before.cells("before"),
            "before_shown": estimated(one.before),
            **one.after.cells("after"),
            "after_shown": estimated(one.after),
            **one.change.cells("change"),
            "change_shown": points(one.change, 1),
            "precision_before": one.precision_before,
            "precision_after": one.precision_after,
            "precision_shown": " to ".join(
                "–" if share is None else percent(share)
                for share in (one.precision_before, one.precision_after)
            ),
        }
        for one in recalls.sorted[:MOST_ROWS]
    ]
    all_of_them = len(rows) == len(recalls.classes)
    which = (
        "" if all_of_them else f"The {len(rows)} of {len(recalls.classes):,} classes with the largest falls. "
    )
    return Table.of(
        "recall_by_class",
        "Recall by class.",
        "class | examples | before_shown: recall as it is | after_shown: recall corrected | change_shown: change | "
        "precision_shown: precision",
        rows,
        f"{which}On held-out examples, with 95 % intervals. The largest falls of many look larger than they are: "
        "above, a fall is called more than chance only if that holds for all classes at once.",
    )
