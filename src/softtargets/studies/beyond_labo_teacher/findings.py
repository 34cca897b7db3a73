"""What the study of LABO's teachers says: errors by how the teacher was trained, and claims of our own."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Sample, above, below, judge, zone
from softtargets.report import Curve, Figure, Line, Marker, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, GREY, ORANGE, RED
from softtargets.studies.beyond_labo_teacher.grid import (
    CIFAR_SEEDS,
    PAIRS,
    SEEDS,
    TEMPERATURES,
    WARM_UP,
    Pair,
    trials,
)
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import Findings
from softtargets.studies.words import SMALL_DECIDES_NOTHING, answered, percent, unless_full

# Points of test error that are too few to count, and the seeds that decide, by data.
NOTHING = {"mnist": 0.03, "cifar10": 0.3}
DECIDING = {"mnist": SEEDS, "cifar10": CIFAR_SEEDS}
_NAMES = {"mnist": "MNIST", "cifar10": "CIFAR-10"}
_NETS = {"mnist": "fully connected networks on MNIST", "cifar10": "from ResNet-56 to AlexNet on CIFAR-10"}
_LOOKS: dict[float, tuple[str, Marker, Line]] = {1.0: (BLUE, "circle", "none"), 4.0: (RED, "square", "none")}


def findings(results: Results) -> Findings:
    """Figure, table and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    if not made:
        return SMALL_DECIDES_NOTHING
    verdicts = [one.verdict for one in judge(made)]
    return answered(
        verdicts[0],
        "On digits no: students of a LABO teacher make more errors than students of a teacher with hard targets.",
        "On digits yes: students of a LABO teacher make fewer errors than students of a teacher with hard targets.",
        nothing="On digits yes: students of a LABO teacher are as good as those of a teacher with hard targets.",
        whether="a LABO teacher teaches worse than one with hard targets",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """For each data set LABO's teacher against hard targets, against label smoothing, and against none.

    They name the networks and the data, so runs with a user's changes do not count.
    """
    if size_of(results) == "small":
        return ()
    followed = by_protocol(results, trials)
    return tuple(claim for data in PAIRS["full"] for claim in _of_data(followed, data))


def _of_data(results: Results, data: str) -> tuple[Claim, ...]:
    def student(method: str, temperature: float) -> Row:
        return {"data": data, "role": "student", "method": method, "temperature": temperature}

    def against(*others: Row) -> Sample:
        pairs = [(student("LABO", t), other) for t, other in zip(TEMPERATURES, others, strict=True)]
        return results.gain("error", pairs, scale=100)

    alone = {"data": data, "role": "alone"}
    hard, smoothed = (
        [student(method, t) for t in TEMPERATURES] for method in ("hard targets", "label smoothing")
    )
    fixed: dict[str, Any] = {
        "seeds": DECIDING[data], "zone": zone(NOTHING[data]), "unit": "points", "digits": 2,
    }  # fmt: skip
    net, over = _NETS[data], "on average over T = 1 and 4"
    ours = _shown(results, data, [student("LABO", t) for t in TEMPERATURES])
    return (
        Claim(
            f"Students of a LABO teacher make more errors than students of a teacher with hard targets: {net}.",
            (),
            f"error of LABO's students minus that of the hard teacher's, {over}",
            *above(0, against(*hard)),
            f"{_shown(results, data, hard)}, then {ours} of LABO's",
            "LABO as eq. 16 of the paper reads. No paper states this.",
            **fixed,
        ),
        Claim(
            f"Students of a LABO teacher make fewer errors than students of a smoothed teacher: {net}.",
            (),
            f"error of LABO's students minus that of the smoothed teacher's, {over}",
            *below(0, against(*smoothed)),
            f"{_shown(results, data, smoothed)}, then {ours} of LABO's",
            f"The smoothed teacher has alpha {PAIRS['full'][data].smoothing:g}. No paper states this.",
            **fixed,
        ),
        Claim(
            f"Students of a LABO teacher make fewer errors than students alone: {net}.",
            (),
            f"error of LABO's students, {over}, minus that of students alone with hard targets",
            *below(0, against(*[alone] * len(TEMPERATURES))),
            f"{_shown(results, data, [alone])} alone, then {ours} with the teacher",
            "No paper states this.",
            **fixed,
        ),
    )


def _shown(results: Results, data: str, cells: list[Row]) -> str:
    found = [results.sample("error", **cell).first(DECIDING[data]) for cell in cells]
    there = [sample.mean for sample in found if sample.n]
    return percent(sum(there) / len(there), 2) if there else "–"


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    pairs = PAIRS[size]
    return (
        Section.of(
            "Students by their teacher",
            "Each teacher is trained in another way and each student learns from its teacher's probabilities alone, at "
            "temperatures of 1 and 4. Gamma is the mass that a teacher's targets put on wrong classes at T = 1, "
            "counted as a strength of label smoothing.",
            _figure(results, pairs),
            *(_table(results, data, pair) for data, pair in pairs.items()),
        ),
        Section.of(
            "How it was trained",
            unless_full(
                size,
                "This is the small size: narrow networks on 2,000 digits. It shows how the page is made and decides "
                "nothing. The full size has networks of 1200 and 800 units a layer on all digits, and ResNet-56 and "
                "AlexNet on CIFAR-10.",
            ),
            "LABO has tau 1.25 and rho 0.5, the paper's for translation, and begins with uniform smoothing of 0.1 for "
            f"{percent(WARM_UP, 1)} of the steps; the paper prints no settings for images of either. Its eq. 16 moves "
            "nearly all mass where the model is confident. A fixed alpha of 0.1 and the reversed reading, which moves "
            "little there, stand beside it.",
            "Teachers and students are those of Müller et al.: fully connected networks on MNIST with shifted digits "
            "for the teacher only, and ResNet-56 and AlexNet on 40,000 images of CIFAR-10, where the teacher's logits "
            "for images without augmentation are stored. Errors are those on the test set after the last epoch.",
        ),
    )


def _figure(results: Results, pairs: dict[str, Pair]) -> Figure:
    rows = [
        {
            **cell,
            "error": results.sample("error", **cell),
            "gamma": results.sample("gamma", **cell),
        }
        for data, pair in pairs.items()
        for cell in _cells(data, pair)
    ]
    return lines(
        "students",
        "Test error of students by how their teachers were trained.",
        [_panel(results, data, pair) for data, pair in pairs.items()],
        rows,
        "Points are means over seeds, bars one standard deviation, faint dots the seeds. Lower is better.",
        "Test error of students at two temperatures for each kind of teacher, with the teachers' own errors and that "
        "of a student alone.",
    )


def _cells(data: str, pair: Pair) -> list[Row]:
    return [
        {"data": data, "role": "alone"},
        *({"data": data, "role": "teacher", "method": method} for method in pair.methods),
        *(
            {"data": data, "role": "student", "method": method, "temperature": t}
            for method in pair.methods
            for t in TEMPERATURES
        ),
    ]


def _panel(results: Results, data: str, pair: Pair) -> Panel:
    places = range(len(pair.methods))
    curves = []
    for t, (colour, marker, line) in _LOOKS.items():
        samples = [
            results.sample("error", data=data, role="student", method=method, temperature=t)
            for method in pair.methods
        ]
        shift = -0.1 if t == TEMPERATURES[0] else 0.1
        at = [place + shift for place in places]
        curves.append(
            Curve.of(f"student, T = {t:g}", colour, at, samples, scale=100, line=line, marker=marker)
        )
    teachers = [results.sample("error", data=data, role="teacher", method=method) for method in pair.methods]
    curves.append(
        Curve.of("teacher", ORANGE, list(places), teachers, scale=100, line="none", marker="triangle")
    )
    ends = (-0.4, len(pair.methods) - 0.6)
    alone = 100 * results.sample("error", data=data, role="alone").mean
    curves.append(Curve.level("student alone", GREY, alone, ends, "dotted"))
    ticks = [(place, method) for place, method in enumerate(pair.methods)]
    return Panel(
        _NAMES[data], "how the teacher was trained", "test error, %", curves, ticks, xlimits=ends, digits=2
    )


def _table(results: Results, data: str, pair: Pair) -> Table:
    rows = [
        {
            "method": method,
            "teacher": results.sample("error", data=data, role="teacher", method=method),
            "gamma": results.sample("gamma", data=data, role="student", method=method, temperature=1.0),
            "cold": results.sample("error", data=data, role="student", method=method, temperature=1.0),
            "warm": results.sample("error", data=data, role="student", method=method, temperature=4.0),
        }
        for method in pair.methods
    ]
    alone = results.sample("error", data=data, role="alone")
    rows.append(
        {
            "method": "no teacher",
            "teacher": Sample(()),
            "gamma": Sample(()),
            "cold": alone,
            "warm": Sample(()),
        }
    )
    return Table.of(
        f"errors_{data}",
        f"Test errors on {_NAMES[data]}.",
        "method: teacher | teacher .2%: its own error | gamma .3f: gamma of its targets | "
        "cold .2%: student, T = 1 | warm .2%: student, T = 4",
        rows,
        "Mean ± standard deviation over seeds. The last row is a student alone with hard targets.",
    )
