"""Everything `softtargets compare` finds out about two files; words and pictures are elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from softtargets.errors import ErrorOverlap, error_overlap
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.compare.paired import Differences, PairedSums, measures_of
from softtargets.inspection.shared.measured import Measured, also_at, measured, numbers_of
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.reading import Piece, Told, check_bins, quiet
from softtargets.inspection.shared.recalls import RecallCounts, Recalls
from softtargets.inspection.shared.two_passes import FEWEST, FirstPass, SecondPass, as_logits, counted_zeros
from softtargets.predictions import Predictions
from softtargets.selection import aurc_difference, normalisation_of


@dataclass(frozen=True)
class Comparison:
    """Two files of predictions for the same examples; differences are B less A, as they are and scaled.

    `aurc` is the difference of the areas under their risk-coverage curves, as they are. `repaired` is the same with
    normalised logits for those models that they order better on held-out examples, which `normalised` says of A and B;
    None where that is neither. `recalls` are those of each class: before is A, after is B.
    """

    a: Measured
    b: Measured
    bins: int
    differences: Differences
    scaled: Differences | None
    overlap: ErrorOverlap
    aurc: Estimate
    normalised: tuple[bool, bool]
    repaired: Estimate | None
    recalls: Recalls

    @property
    def agreement(self) -> float:
        """How often both predict the same class."""
        return (self.overlap.both_right + self.overlap.same_mistake) / self.overlap.examples

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        shares = ("jaccard", "expected_jaccard", "expected_both_wrong", "same_mistake_share")
        return {
            "a": _numbers(self.a),
            "b": _numbers(self.b),
            "bins": self.bins,
            "differences": asdict(self.differences),
            "aurc_difference": vars(self.aurc),
            "normalised_logits": dict(zip("ab", self.normalised, strict=True)),
            "aurc_difference_normalised": vars(self.repaired) if self.repaired else None,
            "differences_scaled": asdict(self.scaled) if self.scaled else None,
            "agreement": self.agreement,
            "recall": {
                "a_finds_more": [one.numbers() for one in self.recalls.falling],
                "b_finds_more": [one.numbers() for one in self.recalls.rising],
            },
            "overlap": vars(self.overlap) | {name: getattr(self.overlap, name) for name in shares},
        }


def _numbers(side: Measured) -> dict[str, Any]:
    found = side.scaled.numbers() if side.scaled else None
    return {
        **side.understood.numbers(),
        "before": numbers_of(side.before),
        "overconfidence": vars(side.overconfidence),
        "temperature": found and {key: found[key] for key in ("value", "interval", "ending")},
        "after": numbers_of(side.after),
        "selection": side.selection.numbers(),
    }


def compare(a: Predictions, b: Predictions, bins: int = 15, told: Told = quiet) -> Comparison:
    """Read both files side by side, twice, and find out in what they differ.

    They must have the same examples in the same order, which is known by the labels, and the same classes.
    """
    check_bins(bins)
    _check_alike(a, b)
    first = [FirstPass(one, bins, zeros=counted_zeros(one, told), normalise=True) for one in (a, b)]
    paired = PairedSums(bins)
    overlap, recalls = ErrorOverlap(0, 0, 0, 0, 0), RecallCounts(a.classes)
    for scores, labels in together(a, b, "measuring", told):
        examples = []
        for one, some in zip(first, scores, strict=True):
            one.add(some, labels)
            examples.append(measures_of(as_logits(some, one.from_logits, one.zeros.floor), labels))
        paired.add(*examples)
        recalls.add(examples[0].predicted, examples[1].predicted, labels)
        # Classes are compared, not scores: these are known already.
        more = error_overlap(examples[0].predicted, examples[1].predicted, labels)
        overlap = ErrorOverlap(**{key: value + vars(more)[key] for key, value in vars(overlap).items()})
    if first[0].seen >= FEWEST:
        sides, scaled = _scaled(a, b, first, told)
    else:
        sides, scaled = [measured(a, first[0], None), measured(b, first[1], None)], None
    differences = paired.differences(sides[0].before, sides[1].before)
    aurc = Estimate(*aurc_difference(sides[0].selection.curve, sides[1].selection.curve, LEVEL))
    normalised, repaired = _repaired(first, a.classes)
    return Comparison(
        sides[0],
        sides[1],
        bins,
        differences,
        scaled,
        overlap,
        aurc,
        normalised,
        repaired,
        recalls.recalls(a.class_names),
    )


def _repaired(first: list[FirstPass], classes: int) -> tuple[tuple[bool, bool], Estimate | None]:
    """Whether normalised logits help A and B, and the difference of AURC if they are used where they do."""
    curves, helped = [], []
    for one in first:
        assert one.normalised is not None
        tried = normalisation_of(one.normalised, classes)
        helped.append(tried.is_better)
        curves.append(tried.curve if tried.is_better and tried.curve else one.normalised.curve())
    difference = Estimate(*aurc_difference(curves[0], curves[1], LEVEL)) if any(helped) else None
    return (helped[0], helped[1]), difference


def _scaled(
    a: Predictions, b: Predictions, first: list[FirstPass], told: Told
) -> tuple[list[Measured], Differences | None]:
    """The second pass: both sides, each also at the temperature of the other, and how they differ when scaled."""
    starts = [[] if (best := one.grid.best()) is None else [best] for one in first]
    second = [SecondPass(first[0], a, told, also=starts[1]), SecondPass(first[1], b, told, also=starts[0])]
    paired = PairedSums(first[0].sums.bins)
    for scores, labels in together(a, b, "scaling", told):
        paired.add(
            *(measures_of(s.add(some, labels), labels) for s, some in zip(second, scores, strict=True))
        )
    alone = [measured(a, first[0], second[0]), measured(b, first[1], second[1])]
    sides = [
        also_at(side, other.best, one, 1) if start else side
        for side, other, one, start in zip(alone, reversed(alone), second, reversed(starts), strict=True)
    ]
    after = [side.scaled.after for side in sides if side.scaled]
    return sides, paired.differences(after[0], after[1])


def together(
    a: Predictions, b: Predictions, what: str, told: Told = quiet
) -> Iterator[tuple[tuple[Tensor, Tensor], Tensor]]:
    """Scores of both and their labels, a chunk at a time; refuses labels that differ."""
    told(what, 0, a.examples)
    done = 0
    streams = a.chunks(), b.chunks()
    left: list[Piece | None] = [None, None]
    while True:
        one, two = (
            next(stream, None) if kept is None else kept for kept, stream in zip(left, streams, strict=True)
        )
        if one is None or two is None:
            break
        n = min(len(one[1]), len(two[1]))
        _check_labels(a, b, one[1][:n], two[1][:n], done)
        yield (one[0][:n], two[0][:n]), one[1][:n]
        done += n
        told(what, done, a.examples)
        left = [(scores[n:], labels[n:]) if len(labels) > n else None for scores, labels in (one, two)]


def _check_alike(a: Predictions, b: Predictions) -> None:
    if a.classes != b.classes:
        raise SofttargetsError(
            f"{a.path} has {a.classes} classes and {b.path} has {b.classes}; only predictions of the same classes can "
            "be compared"
        )
    if a.examples != b.examples:
        raise SofttargetsError(
            f"{a.path} has {a.examples} examples and {b.path} has {b.examples}; both must have the same ones in the "
            "same order"
        )
    for place, (one, two) in enumerate(zip(a.class_names or (), b.class_names or (), strict=False)):
        if one != two:
            raise SofttargetsError(
                f"class {place} is '{one}' in {a.path} and '{two}' in {b.path}; put the columns of both files into "
                "the same order"
            )


def _check_labels(a: Predictions, b: Predictions, one: Tensor, two: Tensor, start: int) -> None:
    differ = (one != two).nonzero().flatten()
    if len(differ):
        row = int(differ[0])
        raise SofttargetsError(
            f"the labels of {a.path} and {b.path} differ, first at example {start + row} (counted from 0): "
            f"{int(one[row])} and {int(two[row])}; both must have the same examples in the same order"
        )
