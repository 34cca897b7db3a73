"""What the study of logit matching says: maps of rate and clip, the best of each, and claims."""

from __future__ import annotations

import math
from typing import Any

from softtargets.claims import Claim, Sample, above, published, sources, zone
from softtargets.claims import judge as judged
from softtargets.report import Figure, Map, Section, Table, maps
from softtargets.studies import distilling
from softtargets.studies.muller_logit_matching.grid import BETA, DROPOUT, PLANS, SHARED, TEACHERS, Plan
from softtargets.studies.results import Results, Row
from softtargets.studies.study import Findings
from softtargets.studies.words import SMALL_DECIDES_NOTHING, answered, percent, unless_full

# The first seed chooses a rate and a clip for each teacher, the others judge.
JUDGING = 5
SEEDS = JUDGING + 1
# Points of test error that are too few to count: three of 10,000 digits. “Several times” is at least twice.
NOTHING = 0.03
SEVERAL = 2.0
_FULL = (
    "Mini-batches have 128 digits: Müller et al. do not say how many, the replication has 512. Initial weights have a "
    "standard deviation of 0.03, as in the replication, where Müller et al. print a variance (ERRATA.md, M6). All is "
    "computed in bf16."
)
_NAMES = {0.0: "hard targets and dropout", 0.1: "label smoothing 0.1"}


def findings(results: Results) -> Findings:
    """Maps, tables and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    if not made:
        return SMALL_DECIDES_NOTHING
    return answered(
        judged(made)[0].verdict,
        "Yes: at the best rate and clip of each, the student of the smoothed teacher makes more errors.",
        "No: at the best rate and clip of each, the student of the smoothed teacher makes no more errors.",
        nothing="No: at the best rate and clip of each, both students are equally good.",
        whether="a smoothed teacher teaches worse at its best",
    )


def plan_of(results: Results) -> Plan:
    """That of the size that the results are of; the full one where there are none."""
    return PLANS[_size(results)]


def _size(results: Results) -> str:
    return str(results.outcomes[0].trial.labels.get("size", "full")) if results.outcomes else "full"


def chosen(results: Results, alpha: float) -> Row | None:
    """The rate and the clip at which the first seed's student of a teacher makes the fewest errors."""
    choosing, _ = results.split()
    return distilling.chosen(choosing, plan_of(results).cells(alpha))


def claims(results: Results) -> tuple[Claim, ...]:
    """Each at its own best, both at one setting, and how large the teachers' logits are; none at the small size."""
    if _size(results) == "small":
        return ()
    _, judging = results.split()
    of_hard, of_smoothed = (chosen(results, alpha) for alpha in TEACHERS)
    lr, clip = SHARED
    one = [{"role": "student", "alpha": alpha, "lr": lr, "clip": clip} for alpha in TEACHERS]
    teachers = [{"role": "teacher", "alpha": alpha} for alpha in TEACHERS]
    fixed: dict[str, Any] = {"seeds": JUDGING, "zone": zone(NOTHING), "unit": "points", "digits": 2}
    papers = (
        *sources("muller-2019/student-error/mnist", "hard", "smoothed"),
        *sources("wagner-2023/student-error/mnist", "hard", "smoothed"),
    )
    return (
        Claim(
            "The student of the smoothed teacher has a higher test error than the student of the hard teacher, each at "
            "its own best learning rate and clip.",
            papers,
            f"error at {_setting(of_smoothed)} of the smoothed teacher's student minus error at {_setting(of_hard)} "
            "of the hard teacher's",
            *above(0, _difference(judging, of_smoothed, of_hard)),
            f"{_error(judging, of_hard)}, then {_error(judging, of_smoothed)} error",
            "Rate and clip are chosen by the error with the first seed, and judged on the others.",
            **fixed,
        ),
        Claim(
            f"The same at one setting for both: a rate of {lr:g} and gradients clipped to {clip:g}.",
            papers,
            "error of the smoothed teacher's student minus that of the hard teacher's student",
            *above(0, _difference(judging, one[1], one[0])),
            f"{_error(judging, one[0])}, then {_error(judging, one[1])} error",
            "The setting of the study mnist-distillation.",
            **fixed,
        ),
        Claim(
            "The logits of a hard teacher are several times as large as those of a smoothed one.",
            (published("muller-2019/distillation/inferior"),),
            "standard deviation of a digit's logits, on average: that of the hard teacher divided by the smoothed "
            "one's",
            *above(SEVERAL, _ratio(judging, *teachers)),
            results.then("logits", ".2f", *teachers),
            "The papers print no sizes. “Several times” means at least twice.",
            seeds=JUDGING,
            digits=2,
        ),
    )


def _ratio(results: Results, this: Row, that: Row) -> Sample:
    def ratio(one: Results) -> float:
        (first,), (second,) = (one.sample("logits", **cell).values for cell in (this, that))
        return first / second

    return results.each_seed(ratio)


def _difference(results: Results, this: Row | None, that: Row | None) -> Sample:
    return Sample(()) if this is None or that is None else results.gain("error", [(this, that)], scale=100)


def _error(results: Results, labels: Row | None) -> str:
    return "–" if labels is None else percent(results.sample("error", **labels).first(JUDGING).mean, 2)


def _setting(labels: Row | None) -> str:
    return "–" if labels is None else f"a rate of {labels['lr']:g}, {_clip(labels['clip'])}"


def _clip(clip: float | None) -> str:
    return "no clip" if clip is None else f"clip {clip:g}"


def _sections(results: Results) -> tuple[Section, ...]:
    size, plan = _size(results), plan_of(results)
    return (
        Section.of(
            "Errors over rate and clip",
            f"A student's loss is {1 - BETA:g} times the cross-entropy with the labels plus {BETA:g} times half the "
            "squared difference between its logits and its teacher's. Gradients of the squares grow with the "
            "teacher's logits, so the same learning rate is a larger step for the student of a hard teacher, and the "
            "same clip cuts more.",
            "A factor on the loss is no third choice. With plain gradient smoothing and no weight decay, a factor m at "
            "the rate r and the clip c trains as the rate m r and the clip c / m without it: it moves along the maps.",
            _maps(results, plan),
            _best_table(results, plan),
        ),
        Section.of(
            "What differs from the papers",
            unless_full(
                size,
                "This is the small size: narrower networks on 2,000 digits for a few epochs. It shows how the maps are "
                "made; the papers' numbers are about the full size.",
            )
            or _FULL,
            "Neither paper says that rates were chosen for each teacher, and neither clips gradients. The "
            "replication's code matches the student's logits with the teacher's probabilities, which is another "
            "problem (ERRATA.md).",
            f"Teachers see digits shifted by up to two pixels and students do not. The hard teacher has dropout of "
            f"{DROPOUT:g} on its hidden layers, as in the replication. Students train on all digits, so rates and "
            "clips are chosen by the test error of a seed that judges nothing.",
            "Runs whose weights are no longer finite have failed; their cells are empty.",
        ),
    )


def _maps(results: Results, plan: Plan) -> Figure:
    shown = [clip for clip in plan.clips if clip is not None]
    none = 10 * max(shown)  # where the row without a clip stands
    places = [none if clip is None else clip for clip in plan.clips]

    def errors(alpha: float) -> list[list[float | None]]:
        return [[_mean(results, alpha, lr, clip) for lr in plan.rates] for clip in plan.clips]

    both = {alpha: errors(alpha) for alpha in TEACHERS}
    found = [value for grid in both.values() for line in grid for value in line if value is not None]
    low = min(found, default=0.0)
    # Colours end at three times the lowest error: a few cells hardly learn.
    high = max(min(max(found, default=1.0), 3 * low), low + 0.1)
    gap = [
        [None if h is None or s is None else s - h for h, s in zip(*lines, strict=True)]
        for lines in zip(both[0.0], both[0.1], strict=True)
    ]
    end = max([0.1, *(abs(value) for line in gap for value in line if value is not None)])
    axes = ("learning rate", f"clip ({none:g}: none)", list(plan.rates), places)
    rows = (
        {"alpha": alpha, "lr": lr, "clip": clip, "error": _sample(results, alpha, lr, clip)}
        for alpha in TEACHERS
        for clip in plan.clips
        for lr in plan.rates
    )
    return maps(
        "rates_and_clips",
        "Test error of students over learning rate and clip.",
        (
            Map("Teacher with hard targets", *axes, both[0.0], low, high, unit="%"),
            Map("Teacher with smoothing 0.1", *axes, both[0.1], low, high, unit="%"),
            Map("Smoothed minus hard", *axes, gap, -min(end, 1.0), min(end, 1.0), "diverging", unit="points"),
        ),
        rows,
        "Means over all seeds. In the last map red is where the student of the smoothed teacher makes more errors. "
        "Empty cells have no finished run: the weights became infinite.",
        "Two maps of test error over learning rate and clip, one for each teacher, and their difference.",
    )


def _sample(results: Results, alpha: float, lr: float, clip: float | None) -> Sample:
    # A label of None is what `where` finds in every trial without one, so the role is needed.
    return results.sample("error", role="student", alpha=alpha, lr=lr, clip=clip)


def _mean(results: Results, alpha: float, lr: float, clip: float | None) -> float | None:
    value = 100 * _sample(results, alpha, lr, clip).mean
    return value if math.isfinite(value) else None


def _best_table(results: Results, plan: Plan) -> Table:
    choosing, judging = results.split()
    alone = distilling.chosen(choosing, plan.alone)
    rows = [
        {
            "student": f"of the teacher with {_NAMES[alpha]}",
            "setting": _setting(point),
            "error": Sample(()) if point is None else judging.sample("error", **point),
            "teacher": judging.sample("error", role="teacher", alpha=alpha),
            "logits": judging.sample("logits", role="teacher", alpha=alpha),
        }
        for alpha in TEACHERS
        for point in (chosen(results, alpha),)
    ]
    rows.append(
        {
            "student": "alone",
            "setting": "–" if alone is None else f"a rate of {alone['lr']:g}, no clip",
            "error": Sample(()) if alone is None else judging.sample("error", **alone),
            "teacher": Sample(()),
            "logits": Sample(()),
        }
    )
    return Table.of(
        "best",
        "Each student at its own best.",
        "student | setting: chosen with the first seed | error .2%: test error, other seeds | "
        "teacher .2%: error of its teacher | logits .2f: size of its teacher's logits",
        rows,
        "Mean ± standard deviation over the seeds that judge. The size of logits is their standard deviation within a "
        "digit, on average.",
    )
