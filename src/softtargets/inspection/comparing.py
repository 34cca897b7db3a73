"""Everything `softtargets compare` finds out about two files; words and pictures are elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from softtargets.calibration import Calibration, calibration_of
from softtargets.errors import ErrorOverlap, error_overlap
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.calibrating import (
    Scaled,
    Understood,
    check_bins,
    numbers_of,
    overconfidence,
    scaled_of,
)
from softtargets.inspection.estimates import LEVEL, Estimate
from softtargets.inspection.grid import TemperatureCurves
from softtargets.inspection.looks import FEWEST, FirstLook, SecondLook, Told, as_logits, quiet
from softtargets.inspection.paired import Differences, PairedSums, rows_of
from softtargets.predictions import Predictions


@dataclass(frozen=True)
class Side:
    """One of the two: what was read, its calibration, and what a temperature makes of it."""

    understood: Understood
    before: Calibration
    overconfidence: Estimate
    curves: TemperatureCurves
    scaled: Scaled | None

    @property
    def best(self) -> float | None:
        """The fitted temperature, if there is one to recommend."""
        return self.scaled.fit.temperature if self.scaled and self.scaled.is_known else None


@dataclass(frozen=True)
class Comparison:
    """Two files of predictions for the same examples; differences are B less A, as they are and scaled."""

    a: Side
    b: Side
    bins: int
    differences: Differences
    scaled: Differences | None
    overlap: ErrorOverlap

    @property
    def agreement(self) -> float:
        """How often both predict the same class."""
        return (self.overlap.both_right + self.overlap.same_mistake) / self.overlap.examples

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        overlap = self.overlap
        return {
            "a": _numbers(self.a),
            "b": _numbers(self.b),
            "bins": self.bins,
            "differences": differences_as_data(self.differences),
            "differences_scaled": differences_as_data(self.scaled) if self.scaled else None,
            "agreement": self.agreement,
            "overlap": {
                **vars(overlap),
                "jaccard": overlap.jaccard,
                "expected_jaccard": overlap.expected_jaccard,
                "expected_both_wrong": overlap.expected_both_wrong,
                "same_mistake_share": overlap.same_mistake_share,
            },
        }


def compare(a: Predictions, b: Predictions, bins: int = 15, told: Told = quiet) -> Comparison:
    """Read both files side by side, twice, and find out in what they differ.

    They must have the same examples in the same order, which is known by the labels, and the same classes.
    """
    check_bins(bins)
    _check_alike(a, b)
    first = FirstLook(a, bins), FirstLook(b, bins)
    paired = PairedSums(bins)
    overlap = ErrorOverlap(0, 0, 0, 0, 0)
    for scores, labels in together(a, b, "measuring", told):
        rows = []
        for look, some in zip(first, scores, strict=True):
            look.add(some, labels)
            rows.append(rows_of(as_logits(some, look.from_logits), labels))
        paired.add(*rows)
        # Classes are compared, not scores: these are known already.
        overlap = _added(overlap, error_overlap(rows[0].predicted, rows[1].predicted, labels))
    before = [calibration_of(look.sums, level=LEVEL) for look in first]
    curves = []
    for look, one in zip(first, before, strict=True):
        found = look.grid.curves()
        curves.append(found.put(1.0, found.at(1.0)[0], one.reliability))
    scaled: list[Scaled | None] = [None, None]
    after = None
    if first[0].seen >= FEWEST:
        starts = [look.grid.best() for look in first]
        second = [
            SecondLook(look, one, told, also=[t for t in (other,) if t is not None])
            for look, one, other in zip(first, (a, b), reversed(starts), strict=True)
        ]
        again = PairedSums(bins)
        for scores, labels in together(a, b, "scaling", told):
            again.add(
                *(rows_of(look.add(some, labels), labels) for look, some in zip(second, scores, strict=True))
            )
        scaled = [scaled_of(look) for look in second]
        after = again.differences(*(one.after for one in scaled if one is not None))
        curves = _with_best(curves, second, scaled, starts)
    sides = [
        Side(Understood.of(one), was, overconfidence(look.sums), curve, now)
        for one, was, look, curve, now in zip((a, b), before, first, curves, scaled, strict=True)
    ]
    return Comparison(sides[0], sides[1], bins, paired.differences(*before), after, overlap)


def together(
    a: Predictions, b: Predictions, what: str, told: Told = quiet
) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor]]:
    """Scores of both and their labels, a chunk at a time; refuses labels that differ."""
    told(what, 0, a.examples)
    done = 0
    streams = a.chunks(), b.chunks()
    left: list[tuple[Tensor, Tensor] | None] = [None, None]
    while True:
        for i, stream in enumerate(streams):
            if left[i] is None:
                left[i] = next(stream, None)
        one, two = left
        if one is None or two is None:
            break
        n = min(len(one[1]), len(two[1]))
        _check_labels(a, b, one[1][:n], two[1][:n], done)
        yield (one[0][:n], two[0][:n]), one[1][:n]
        done += n
        told(what, done, a.examples)
        left = [(scores[n:], labels[n:]) if len(labels) > n else None for scores, labels in (one, two)]


def differences_as_data(found: Differences) -> dict[str, Any]:
    """Differences as plain data."""
    return {key: vars(value) if isinstance(value, Estimate) else value for key, value in vars(found).items()}


def _check_alike(a: Predictions, b: Predictions) -> None:
    if a.classes != b.classes:
        raise SofttargetsError(
            f"{a.path} has {a.classes} classes and {b.path} has {b.classes}; only predictions of the same "
            "classes can be compared"
        )
    if a.examples != b.examples:
        raise SofttargetsError(
            f"{a.path} has {a.examples} examples and {b.path} has {b.examples}; both must have the same ones "
            "in the same order"
        )
    if a.class_names and b.class_names and a.class_names != b.class_names:
        place = next(
            k for k, names in enumerate(zip(a.class_names, b.class_names, strict=True)) if len(set(names)) > 1
        )
        raise SofttargetsError(
            f"class {place} is '{a.class_names[place]}' in {a.path} and '{b.class_names[place]}' in {b.path}; "
            "bring the columns of both into the same order"
        )


def _check_labels(a: Predictions, b: Predictions, one: Tensor, two: Tensor, start: int) -> None:
    differ = (one != two).nonzero().flatten()
    if len(differ):
        row = int(differ[0])
        raise SofttargetsError(
            f"the labels of {a.path} and {b.path} differ, first at example {start + row} (counted from 0): "
            f"{int(one[row])} and "
            f"{int(two[row])}; both must have the same examples in the same order"
        )


def _added(one: ErrorOverlap, other: ErrorOverlap) -> ErrorOverlap:
    return ErrorOverlap(**{key: value + vars(other)[key] for key, value in vars(one).items()})


def _with_best(
    curves: list[TemperatureCurves],
    second: list[SecondLook],
    scaled: list[Scaled | None],
    starts: list[float | None],
) -> list[TemperatureCurves]:
    """Curves of both at the fitted temperature of each."""
    fitted = [one.fit.temperature if one and one.is_known else None for one in scaled]
    found = []
    for i, (curve, look) in enumerate(zip(curves, second, strict=True)):
        own, *also = look.shown()
        if fitted[i] not in (None, 1.0):
            curve = curve.put(fitted[i] or 1.0, *own)
        other = fitted[1 - i]
        if also and other is not None and other != 1.0 and starts[1 - i] is not None:
            curve = curve.put(other, *also[0])
        found.append(curve)
    return found


def _numbers(side: Side) -> dict[str, Any]:
    found: dict[str, Any] = {
        **{key: value for key, value in vars(side.understood).items() if key not in ("path", "class_names")},
        "file": str(side.understood.path),
        "before": numbers_of(side.before),
        "overconfidence": vars(side.overconfidence),
        "temperature": None,
        "after": None,
    }
    if side.scaled:
        found["temperature"] = {
            "value": side.scaled.fit.temperature,
            "interval": list(side.scaled.interval),
            "ending": side.scaled.fit.ending,
        }
        found["after"] = numbers_of(side.scaled.after)
    return found
