"""The papers' statements about distillation on CIFAR-10, each with what decides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from softtargets.claims import Claim, Published, Region, Sample, above, below, published, sources, zone
from softtargets.studies.muller_figure_5.grid import PROTOCOLS, Protocol
from softtargets.studies.results import Results, Row, mean
from softtargets.studies.words import percent, signed

# Seeds that decide: with two, effects as large as the paper's would come out inconclusive four times in six.
SEEDS = 3
# Points of accuracy too few to count: what is left of a difference of averages by chance, and what “no better” allows.
NOTHING, NO_BETTER = 0.2, 0.3
# Of the held-out images, in the name that the chance of these examples is known by (`studies.examples`).
MEASURE = "accuracy_validation"

Pairs = Sequence[tuple[Row, Row]]


def protocol_of(results: Results) -> Protocol:
    """That of the size that the results are of; the full one where there are none."""
    return PROTOCOLS[
        str(results.outcomes[0].trial.labels.get("size", "full")) if results.outcomes else "full"
    ]


def claims(results: Results) -> tuple[Claim, ...]:
    """Teachers, students alone, then students of both kinds of teachers.

    They are about ResNet-56 and AlexNet on CIFAR-10: the small size makes none.
    """
    if protocol_of(results) is PROTOCOLS["small"]:
        return ()
    teachers, alone, of_hard, of_smoothed = (each.points for each in protocol_of(results).scenarios)
    smoothed = of_smoothed[1:]  # the first is that of the hard teacher
    fixed: dict[str, Any] = {"seeds": SEEDS, "zone": zone(NOTHING), "unit": "points", "digits": 2}
    near = _nearest(teachers, 0.6)
    every = {
        f"T = {taught['temperature']:g} against alpha {by['alpha']:g}": _difference(results, taught, by)
        for taught in of_hard
        for by in alone
    }
    no_better = {
        f"alpha {taught['alpha']:g}": _difference(results, taught, by)
        for taught, by in zip(smoothed, alone[1:], strict=True)
    }
    return (
        Claim(
            f"Label smoothing improves the teacher: at alpha {near['alpha']:g} it is more accurate than with hard "
            "targets.",
            _both("distillation/teacher", "distillation/cifar10-teacher"),
            f"accuracy of the teacher at alpha {near['alpha']:g} minus that at alpha 0",
            *above(0, _difference(results, near, teachers[0])),
            f"{_shown(results, [teachers[0]])}, then {_shown(results, [near])}",
            "The replication finds no improvement.",
            **fixed,
        ),
        Claim(
            "Label smoothing degrades the student alone: on average over alpha it is less accurate than with hard "
            "targets.",
            _both("distillation/alone", "distillation/cifar10-alone"),
            "accuracy of students alone, on average over every alpha above 0, minus that at alpha 0",
            *below(0, results.gain(MEASURE, [(one, alone[0]) for one in alone[1:]], scale=100)),
            f"{_shown(results, alone[:1])}, then {_shown(results, alone[1:])} on average",
            "The replication finds a slight improvement.",
            **fixed,
        ),
        Claim.every(
            "Every student of the hard teacher (M3) is more accurate than every student alone (M2).",
            sources("muller-2019/distillation/hard"),
            "accuracy of the student minus that of a student alone, at every temperature and alpha",
            every,
            Region(low=0),
            _ends(every),
            "The paper observes that all distilled models outperform the baseline student.",
            seeds=SEEDS,
            unit="points",
            digits=2,
        ),
        Claim(
            "Students of the hard teacher (M3) are more accurate than students alone (M2), on average over both "
            "curves.",
            sources("wagner-2023/distillation/cifar10-hard"),
            "accuracy on average over all temperatures minus that on average over every alpha",
            *above(0, _averages(results, of_hard, alone)),
            f"{_shown(results, alone)} alone, then {_shown(results, of_hard)} with the teacher",
            **fixed,
        ),
        Claim.every(
            "Students of smoothed teachers (M4) are no better than students alone with as much smoothing (M2).",
            sources("muller-2019/distillation/smoothed"),
            "accuracy of the student minus that of the student alone, at every alpha above 0",
            no_better,
            Region(high=NO_BETTER),
            _ends(no_better),
            f"“No better” means better by less than {NO_BETTER:g} points.",
            seeds=SEEDS,
            unit="points",
            digits=2,
        ),
        Claim(
            "Students of smoothed teachers (M4) are less accurate than students of the hard teacher (M3), on average "
            "over both curves.",
            (
                *sources("muller-2019/distillation/inferior"),
                *sources("wagner-2023/distillation/cifar10-smoothed"),
            ),
            "accuracy on average over every alpha above 0 minus that on average over all temperatures",
            *below(0, _averages(results, smoothed, of_hard)),
            f"{_shown(results, of_hard)} of the hard teacher, then {_shown(results, smoothed)}",
            **fixed,
        ),
    )


def _nearest(points: Sequence[Row], alpha: float) -> Row:
    return min(points, key=lambda point: abs(point["alpha"] - alpha))


def _difference(results: Results, this: Row, that: Row) -> Sample:
    """In points of accuracy, seed by seed."""
    return results.gain(MEASURE, [(this, that)], scale=100)


def _averages(results: Results, these: Sequence[Row], those: Sequence[Row]) -> Sample:
    """The mean over one curve minus the mean over another, for every seed that has all of both.

    It is the mean difference of all pairs, one of each curve.
    """
    return results.gain(MEASURE, list(product(these, those)), scale=100)


def _shown(results: Results, points: Sequence[Row]) -> str:
    found = [results.sample(MEASURE, **point).first(SEEDS) for point in points]
    there = [sample.mean for sample in found if sample.n]
    return percent(mean(there), 2) if there else "–"


def _ends(cells: Mapping[str, Sample]) -> str:
    """The lowest and the highest mean."""
    rising = sorted(((sample.first(SEEDS).mean, name) for name, sample in cells.items() if sample.n))
    shown = [*rising[:1], *rising[1:][-1:]]
    return ", ".join(f"{signed(value)} at {name}" for value, name in shown) + (" points" if shown else "")


def _both(muller: str, wagner: str) -> tuple[Published, ...]:
    return published(f"muller-2019/{muller}"), published(f"wagner-2023/{wagner}")
