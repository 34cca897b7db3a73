"""What is said of LABO beyond its paper: calibration and wrong labels."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, above, below, judge, sources, zone
from softtargets.report import Curve, Figure, Line, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, RED
from softtargets.studies.beyond_labo.grid import RATES, ROWS, trials
from softtargets.studies.labo.claiming import SEEDS
from softtargets.studies.labo.telling import name_of, setting_name, what_differs
from softtargets.studies.results import Results, Row, over
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, percent

# Differences in ECE, in nats and in points of accuracy that are too small to count.
SAME_ECE, SAME_NLL, SAME_ACCURACY = 0.005, 0.01, 0.2
HARD, SMOOTHED, LITERAL = ROWS[:3]
_LOOKS: tuple[tuple[str, Line], ...] = (
    (GREY, "dashed"),
    (ORANGE, "dashed"),
    (BLUE, "solid"),
    (GREEN, "solid"),
    (RED, "solid"),
)


def findings(results: Results) -> Findings:
    """Tables, figure and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    judged = [one.verdict for one in judge(made)]
    if judged[0] == judged[4] == "not run yet":
        return "Not known yet: the runs that decide have not all been made."
    calibrated = answered(
        judged[0],
        "LABO, read literally, is better calibrated than hard targets.",
        "LABO, read literally, is calibrated worse than hard targets.",
        nothing="LABO, read literally, is calibrated as well as hard targets.",
        whether="LABO is better calibrated than hard targets",
    )
    robust = answered(
        judged[4],
        "With 40 % wrong labels it is more accurate than hard targets.",
        "With 40 % wrong labels it is less accurate than hard targets.",
        nothing="With 40 % wrong labels it is as accurate as hard targets.",
        whether="it helps with wrong labels",
    )
    return f"{calibrated} {robust}"


def _sections(results: Results) -> tuple[Section, ...]:
    found = results.where(part="noise").outcomes
    where = setting_name(
        *(found[0].trial.labels[key] for key in ("data", "model")) if found else ("cifar10", "cnn")
    )
    noise = (
        "The training is that of the study labo-table-3, with a CNN of two convolutions and a rate of 0.01."
        if size_of(results) == "full"
        else ""
    )
    return (
        Section.of(
            "Calibration",
            "Training with LABO, read literally, rests before models become confident (study labo-readings). Whether "
            "that is better calibrated depends on how often they are right. A temperature, fitted on held-out images, "
            "corrects too much and too little confidence, so the last columns say what is left.",
            _calibration(results.where(part="calibration")),
        ),
        Section.of(
            "Wrong labels",
            f"Of the training labels 0, 20 or 40 % are wrong, each other class equally likely ({where}). Test labels "
            "are "
            f"right. {noise}".strip(),
            _noise_table(results.where(part="noise")),
            _noise_figure(results.where(part="noise")),
        ),
        Section.of("How it was trained", *what_differs(results)),
    )


def _calibration(results: Results) -> Table:
    keys = ("accuracy", "ece", "nll", "temperature", "ece_scaled", "nll_scaled")
    rows: list[Row] = [
        {"name": name_of(labels), **{key: results.sample(key, **labels) for key in keys}} for labels in ROWS
    ]
    return Table.of(
        "calibration",
        "Calibration of LABO, hard targets and label smoothing.",
        "name: trained with | accuracy .2% | ece: ECE | nll: NLL | temperature .2f: fitted T | ece_scaled: ECE at "
        "fitted T | nll_scaled: NLL at fitted T",
        rows,
        "Mean ± standard deviation over seeds, test images. ECE has 15 bins; T is fitted on held-out images.",
    )


def _noise_table(results: Results) -> Table:
    rows: list[Row] = [
        {
            "rate": rate,
            "name": name_of(labels),
            "accuracy": results.sample("accuracy", rate=rate, **labels),
            "ece": results.sample("ece", rate=rate, **labels),
            "nll": results.sample("nll", rate=rate, **labels),
        }
        for rate, labels in ((rate, labels) for rate in RATES for labels in ROWS)
    ]
    return Table.of(
        "noise",
        "Test accuracy and calibration by the share of wrong training labels.",
        "rate .0%: wrong labels | name: trained with | accuracy .2% | ece: ECE | nll: NLL",
        rows,
        "Mean ± standard deviation over seeds, on test images with right labels.",
    )


def _noise_figure(results: Results) -> Figure:
    curves = []
    for labels, (colour, line) in zip(ROWS, _LOOKS, strict=True):
        samples = [results.sample("accuracy", rate=rate, **labels) for rate in RATES]
        if any(sample.n for sample in samples):
            curves.append(
                Curve.of(
                    name_of(labels), colour, [100 * rate for rate in RATES], samples, scale=100, line=line
                )
            )
    rows = [
        {**cell, **labels, "accuracy": results.sample("accuracy", **cell, **labels)}
        for cell in over(rate=RATES)
        for labels in ROWS
    ]
    return lines(
        "noise",
        "Test accuracy over the share of wrong training labels.",
        [Panel("Wrong labels", "wrong training labels, %", "test accuracy, %", curves, digits=2)],
        rows,
        "Points are means over seeds, bars one standard deviation.",
        "Test accuracy of five methods with 0, 20 and 40 % wrong labels.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Questions that the paper leaves open; without results they are not run yet."""
    followed = by_protocol(results, trials)
    return (*_calibrates(followed.where(part="calibration")), *_survives(followed.where(part="noise")))


def _calibrates(results: Results) -> tuple[Claim, ...]:
    def lower(statement: str, measure: str, other: dict[str, str], quantity: str, same: float) -> Claim:
        return Claim(
            statement,
            sources("lu-2023/accuracy/cifar100-resnet18/labo"),
            quantity,
            *below(0, results.difference(measure, LITERAL, other)),
            results.then(measure, ".3f", other, LITERAL) + " with LABO",
            "Our own question: the paper measures no calibration. ResNet-18 on CIFAR-100, literal reading.",
            seeds=SEEDS,
            zone=zone(same),
        )

    return (
        lower(
            "LABO lowers the calibration error.",
            "ece",
            HARD,
            "ECE of LABO minus ECE of hard targets",
            SAME_ECE,
        ),
        lower(
            "LABO lowers the calibration error below that of label smoothing.",
            "ece",
            SMOOTHED,
            "ECE of LABO minus ECE of label smoothing",
            SAME_ECE,
        ),
        lower(
            "A temperature leaves LABO a lower calibration error than hard targets.",
            "ece_scaled",
            HARD,
            "ECE of LABO minus ECE of hard targets, each at its fitted T",
            SAME_ECE,
        ),
        lower(
            "A temperature leaves LABO a lower test loss than hard targets.",
            "nll_scaled",
            HARD,
            "NLL of LABO minus NLL of hard targets, each at its fitted T",
            SAME_NLL,
        ),
    )


def _survives(results: Results) -> tuple[Claim, ...]:
    def one(rate: float, other: dict[str, str], than: str) -> Claim:
        this, that = ({**labels, "rate": rate} for labels in (LITERAL, other))
        common: dict[str, Any] = {"digits": 2, "seeds": SEEDS, "unit": "points"}
        return Claim(
            f"With {percent(rate)} wrong labels LABO is more accurate than {than}.",
            sources("lu-2023/accuracy/cifar10-resnet18/labo"),
            f"accuracy of LABO minus accuracy of {than}, {percent(rate)} of the training labels wrong",
            *above(0, results.gain("accuracy", [(this, that)], scale=100)),
            results.then("accuracy", ".2%", that, this) + " with LABO",
            "Our own question: the paper has right labels only. A CNN on CIFAR-10, literal reading.",
            zone=zone(SAME_ACCURACY),
            **common,
        )

    return (
        one(0.4, HARD, "hard targets"),
        one(0.4, SMOOTHED, "label smoothing"),
        one(0.2, HARD, "hard targets"),
    )
