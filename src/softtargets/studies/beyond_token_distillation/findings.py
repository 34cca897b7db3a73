"""What the study of distillation between translation models says."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, above, below, judge, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, ORANGE
from softtargets.studies.beyond_token_distillation.grid import SEEDS, TEACHERS, trials
from softtargets.studies.labo_translation.protocol import HARD, LS, SMALL_BLEU
from softtargets.studies.labo_translation.telling import how_trained
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import Findings
from softtargets.studies.words import answered

# A share of tokens too small to count, in points.
SMALL_AGREEMENT = 0.2
KINDS = {HARD: "hard targets", LS: "label smoothing"}
ROLES = {"teacher": "teacher", "alone": "student alone", "student": "student of the teacher"}
LOOKS = {HARD: BLUE, LS: ORANGE}
MEASURES = {"bleu": "BLEU", "nll": "NLL of a token, nats"}


def findings(results: Results) -> Findings:
    """Figure, table and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does a smoothed teacher have worse students?"""
    helps, worse, *_ = (one.verdict for one in judge(made))
    first = answered(
        worse,
        "Yes: students of a smoothed teacher translate worse than students of a teacher with hard targets.",
        "No: students of a smoothed teacher translate better than students of a teacher with hard targets.",
        nothing="No: students of a smoothed teacher translate as well as those of a teacher with hard targets.",
        whether="students of a smoothed teacher translate worse",
    )
    second = {
        "reproduced": " A teacher with hard targets makes its students better than training alone.",
        "contradicted": " Even a teacher with hard targets makes its students worse than training alone.",
    }
    return first + second.get(helps, "")


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    return (
        Section.of(
            "Teachers and students",
            "A student learns from its teacher's probabilities of every next token, at temperature 1, and from nothing "
            "else. It sees the same sentences as a student alone, which learns from the words themselves. Agreement "
            "is the share of next tokens of the test set of which student and teacher predict the same.",
            _figure(results),
            _table(results),
        ),
        Section.of(
            "How it was trained",
            *how_trained(size),
            "Students have 3 + 3 layers of width 256 with 512 inner units; their training is the teacher's. Smoothing "
            "moves a tenth of each target. Teachers have their student's seed."
            if size != "small"
            else "Students have one layer of width 32 on each side.",
            "This is distillation token by token. Students that learn from whole translations of their teacher are "
            "another question, and other temperatures are too.",
        ),
    )


def _cell(role: str, method: str) -> Row:
    return {"role": role, "method": method}


def _table(results: Results) -> Table:
    rows = [
        {
            "role": ROLES[role],
            "method": KINDS[method],
            **{
                key: results.sample(key, **_cell(role, method))
                for key in ("bleu", "nll", "ece", *(f"agreement_{teacher}" for teacher in TEACHERS))
            },
        }
        for role in ROLES
        for method in TEACHERS
    ]
    return Table.of(
        "students",
        "Teachers and students on the test set, Tatoeba, German to English.",
        "role: model | method: targets, of the teacher where there is one | bleu .2f: BLEU | nll .3f: NLL of a token | "
        "ece .3f: ECE of tokens | agreement_hard .1%: agreement with the hard teacher | agreement_ls .1%: agreement "
        "with the smoothed teacher",
        rows,
        "Mean ± standard deviation over seeds, beam 5.",
    )


def _figure(results: Results) -> Figure:
    rows: list[Row] = []
    panels = []
    for key, axis in MEASURES.items():
        curves = []
        for place, method in enumerate(TEACHERS):
            samples = [results.sample(key, **_cell(role, method)) for role in ROLES]
            at = [role + 0.12 * (2 * place - 1) for role in range(len(ROLES))]
            curves.append(Curve.of(KINDS[method], LOOKS[method], at, samples, line="none"))
            rows += [
                {"measure": key, **_cell(role, method), "value": sample}
                for role, sample in zip(ROLES, samples, strict=True)
            ]
        ticks = [(0.0, "teacher"), (1.0, "alone"), (2.0, "student")]
        panels.append(Panel(axis.partition(",")[0], "model", axis, curves, ticks, xlimits=(-0.5, 2.5)))
    return lines(
        "students_drawn",
        "Teachers, students alone and students of teachers.",
        panels,
        rows,
        "Circles are means over seeds, bars one standard deviation, small dots single seeds. A student has the colour "
        "of how its teacher was trained. More BLEU and less NLL are better.",
        "BLEU and NLL of teachers, of students alone and of students, with hard and with smoothed targets.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Students of both teachers against each other and against a student alone; none is a paper's."""
    followed = by_protocol(results, trials)
    taught, smoothed = _cell("student", HARD), _cell("student", LS)
    alone, teacher, better = _cell("alone", HARD), _cell("teacher", HARD), _cell("teacher", LS)
    fixed: dict[str, Any] = {"digits": 2, "seeds": SEEDS}
    left_open = "Müller et al. find it for images and leave translation open."
    return (
        Claim(
            "Students of a teacher with hard targets translate better than students alone.",
            (),
            "BLEU of the hard teacher's students minus that of students alone with hard targets",
            *above(0, followed.gain("bleu", [(taught, alone)])),
            followed.then("bleu", ".2f", alone, taught),
            "Our own statement.",
            zone=zone(SMALL_BLEU),
            **fixed,
        ),
        Claim(
            "Students of a smoothed teacher translate worse than students of a teacher with hard targets.",
            (),
            "BLEU of the smoothed teacher's students minus that of the hard teacher's",
            *below(0, followed.gain("bleu", [(smoothed, taught)])),
            followed.then("bleu", ".2f", taught, smoothed),
            left_open,
            zone=zone(SMALL_BLEU),
            **fixed,
        ),
        Claim(
            "The smoothed teacher itself translates better than the teacher with hard targets.",
            (),
            "BLEU of the smoothed teacher minus that of the teacher with hard targets",
            *above(0, followed.gain("bleu", [(better, teacher)])),
            followed.then("bleu", ".2f", teacher, better),
            left_open,
            zone=zone(SMALL_BLEU),
            **fixed,
        ),
        Claim(
            "Students of a smoothed teacher agree less with it than those of a teacher with hard targets with theirs.",
            (),
            "agreement of students with their teacher, smoothed teacher minus teacher with hard targets",
            *below(
                0,
                followed.contrast((("agreement_ls", smoothed), ("agreement_hard", taught)), scale=100),
            ),
            f"{followed.shown('agreement_hard', '.1%', taught)}, then "
            f"{followed.shown('agreement_ls', '.1%', smoothed)}",
            "Our own statement: so it would be if smoothing erased what a student learns from.",
            zone=zone(SMALL_AGREEMENT),
            unit="points",
            **fixed,
        ),
    )
