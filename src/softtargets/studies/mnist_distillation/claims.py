"""The papers' statements about distillation on MNIST, each with what decides it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.claims import (
    Claim,
    Published,
    Region,
    Sample,
    above,
    below,
    published,
    sources,
    two_standard_errors,
    zone,
)
from softtargets.studies.distilling import chosen
from softtargets.studies.mnist_distillation.curves import BASELINES, OF_HARD, OF_SMOOTHED
from softtargets.studies.mnist_distillation.grid import TABLE_ALPHAS
from softtargets.studies.results import Results, Row, over
from softtargets.studies.words import percent, signed

HARD_TEACHER, SMOOTHED_TEACHER = over(role=["table teacher"], alpha=TABLE_ALPHAS)
STUDENT_OF_HARD, STUDENT_OF_SMOOTHED = over(role=["table student"], alpha=TABLE_ALPHAS)

# Seeds that decide: the papers' effects are one or two deviations over seeds, and with ten claims on a page ten seeds
# find most of them (docs/verdicts.md). Where the first seed chooses a point of a curve, the others judge.
SEEDS = 10
JUDGING = SEEDS - 1
# Points of test error that are too few to count: three of 10,000 digits, and five where a claim is “no better”.
NOTHING, NO_BETTER = 0.03, 0.05
TEST_DIGITS = 10_000

_SHIFTS = "Teachers saw shifted digits and students alone did not, which may explain all of the difference."
_CHOSEN = "Both chosen by their error with the first seed, and judged on the others."


def claims(results: Results) -> tuple[Claim, ...]:
    """Directions first, then the four errors that are printed."""
    return (
        *_directions(results),
        *_against_students_alone(results),
        *_best_points(results),
        *_errors(results),
    )


def _directions(results: Results) -> tuple[Claim, ...]:
    fixed: dict[str, Any] = {"seeds": SEEDS, "zone": zone(NOTHING), "unit": "points", "digits": 2}
    return (
        Claim(
            "A teacher with label smoothing of 0.1 has a lower test error than one with hard targets and dropout.",
            _both_papers("teacher-error/mnist/hard", "teacher-error/mnist/smoothed"),
            "error of the smoothed teacher minus the dropout teacher's",
            *below(0, _difference(results, SMOOTHED_TEACHER, HARD_TEACHER)),
            f"{_error(results, HARD_TEACHER)}, then {_error(results, SMOOTHED_TEACHER)} error",
            **fixed,
        ),
        Claim(
            "The student of the smoothed teacher has a higher test error than the student of the dropout teacher.",
            _both_papers("student-error/mnist/hard", "student-error/mnist/smoothed"),
            "error of the smoothed teacher's student minus the dropout teacher's student",
            *above(0, _difference(results, STUDENT_OF_SMOOTHED, STUDENT_OF_HARD)),
            f"{_error(results, STUDENT_OF_HARD)}, then {_error(results, STUDENT_OF_SMOOTHED)} error",
            "Logits are matched; the replication matches logits with probabilities.",
            **fixed,
        ),
    )


def _against_students_alone(results: Results) -> tuple[Claim, ...]:
    every = {
        f"T = {taught['temperature']:g} against alpha {alone['alpha']:g}": _difference(results, taught, alone)
        for taught in OF_HARD.points
        for alone in BASELINES.points
    }
    no_better = {
        f"alpha {taught['alpha']:g}": _difference(results, taught, alone)
        for taught, alone in zip(OF_SMOOTHED.points[1:], BASELINES.points[1:], strict=True)
    }
    return (
        Claim.every(
            "Every student of the hard teacher (M3) has a lower test error than every student alone (M2).",
            sources("muller-2019/distillation/hard"),
            "error of the student minus that of a student alone, at every temperature and alpha",
            every,
            Region(high=0),
            _by_points(every, ends=True),
            f"The paper observes that all distilled models outperform the baseline student. {_SHIFTS}",
            seeds=SEEDS,
            unit="points",
            digits=2,
        ),
        Claim.every(
            "Students of smoothed teachers (M4) are no better than students alone with as much smoothing (M2).",
            sources("muller-2019/distillation/smoothed"),
            "error of the student minus that of the student alone, at every alpha above 0",
            no_better,
            Region(low=-NO_BETTER),
            _by_points(no_better),
            f"“No better” means better by less than {NO_BETTER:g} points. {_SHIFTS}",
            seeds=SEEDS,
            unit="points",
            digits=2,
        ),
    )


def _best_points(results: Results) -> tuple[Claim, ...]:
    choosing, judging = results.split()
    alone, of_hard, of_smoothed = (
        chosen(choosing, points) for points in (BASELINES.points, OF_HARD.points, OF_SMOOTHED.points[1:])
    )
    return (
        Claim(
            "Students of a hard teacher, at the best temperature, have a lower test error than students alone, at the "
            "best alpha.",
            _both_papers("distillation/hard"),
            f"error at T = {_of(of_hard, 'temperature')} minus error alone at alpha {_of(alone, 'alpha')}",
            *below(0, _difference(judging, of_hard, alone)),
            f"{_error(judging, alone)} alone, then {_error(judging, of_hard)} with the teacher",
            f"{_CHOSEN} {_SHIFTS}",
            seeds=JUDGING,
            zone=zone(NOTHING),
            unit="points",
            digits=2,
        ),
        Claim(
            "Students of smoothed teachers, at the best alpha, have a higher test error than students of a hard "
            "teacher, at the best temperature.",
            (published("muller-2019/distillation/inferior"), published("wagner-2023/distillation/smoothed")),
            f"error at alpha {_of(of_smoothed, 'alpha')} minus error at T = {_of(of_hard, 'temperature')}",
            *above(0, _difference(judging, of_smoothed, of_hard)),
            f"{_error(judging, of_hard)} of the hard teacher, then {_error(judging, of_smoothed)}",
            f"{_CHOSEN} Alpha is above 0.",
            seeds=JUDGING,
            zone=zone(NOTHING),
            unit="points",
            digits=2,
        ),
    )


def _errors(results: Results) -> tuple[Claim, ...]:
    def one(words: str, key: str, labels: Row) -> Claim:
        printed = published(f"muller-2019/{key}").value
        assert printed is not None
        shown, margin = round(100 * printed, 6), round(100 * two_standard_errors(printed, TEST_DIGITS), 2)
        return Claim(
            f"{words} has a test error of {percent(printed, 2)}.",
            _both_papers(key),
            "test error",
            results.sample("error", **labels).times(100),
            Region(shown - margin, shown + margin),
            _error(results, labels),
            "The margin is two standard errors of the printed figure, which was measured on 10,000 digits.",
            seeds=SEEDS,
            printed=shown,
            margin=margin,
            unit="%",
            digits=2,
        )

    return (
        one("The teacher with hard targets and dropout", "teacher-error/mnist/hard", HARD_TEACHER),
        one("The teacher with label smoothing of 0.1", "teacher-error/mnist/smoothed", SMOOTHED_TEACHER),
        one("The student of the dropout teacher", "student-error/mnist/hard", STUDENT_OF_HARD),
        one("The student of the smoothed teacher", "student-error/mnist/smoothed", STUDENT_OF_SMOOTHED),
    )


def _of(point: Row | None, label: str) -> str:
    return "–" if point is None else f"{point[label]:g}"


def _error(results: Results, labels: Row | None) -> str:
    return "–" if labels is None else percent(results.sample("error", **labels).first(SEEDS).mean, 2)


def _difference(results: Results, this: Row | None, that: Row | None) -> Sample:
    """In points of error, seed by seed."""
    return Sample(()) if this is None or that is None else results.gain("error", [(this, that)], scale=100)


def _by_points(cells: Mapping[str, Sample], ends: bool = False) -> str:
    """Means of cells; of many only the highest and the lowest."""
    shown = [(name, sample.first(SEEDS).mean) for name, sample in cells.items() if sample.n]
    if ends:
        rising = sorted(shown, key=lambda both: both[1])
        shown = rising[-1:] + rising[:1]
    return ", ".join(f"{signed(value)} at {name}" for name, value in shown) + (" points" if shown else "")


def _both_papers(*keys: str) -> tuple[Published, ...]:
    return sources("muller-2019", *keys) + sources("wagner-2023", *keys)
