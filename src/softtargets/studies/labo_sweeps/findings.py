"""What the sweeps say: accuracy and the probability of the label over tau and rho, beside theory."""

from __future__ import annotations

from softtargets.claims import Claim, Region, Sample, judge, sources, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, GREY
from softtargets.studies.labo.claiming import SEEDS
from softtargets.studies.labo.telling import what_differs
from softtargets.studies.labo_readings.grid import classes_of
from softtargets.studies.labo_sweeps.grid import RHO, RHOS, TAU, TAUS, places, trials
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import Findings
from softtargets.studies.words import answered
from softtargets.theory import labo_rests

# How near to theory the measured probability must come; points of accuracy that a choice may cost.
NEAR, WORTH, NOTHING = 0.1, 0.5, 0.1


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    made = claims(results)
    verdict = judge(made)[0].verdict
    answer = answered(
        verdict,
        "Between the two values that the paper tried, tau costs less than half a point of accuracy.",
        "The choice of tau matters: between the two values that the paper tried, accuracy differs by more than half a "
        "point.",
        nothing="The two values of tau that the paper tried are equally accurate.",
        whether="tau matters between the values that the paper tried",
    )
    return Findings(_sections(results), made, answer)


def rest(tau: float, rho: float, classes: int) -> float:
    """The probability of the label at which the literal reading rests; 1 where there is none."""
    rests = labo_rests(classes, tau, rho)
    return rests[0].p if rests else 1.0


def _sections(results: Results) -> tuple[Section, ...]:
    data = results.outcomes[0].trial.labels["data"] if results.outcomes else "cifar100"
    rows = _rows(results, classes_of(data))
    table = Table.of(
        "sweeps",
        "LABO over tau and rho.",
        "tau .2f | rho .2f | predicted .2f: label probability, theory | label_probability_train .2f: on training "
        "images | label_probability .2f: on test images | accuracy .2% | ece: ECE | ece_scaled: ECE at fitted T",
        rows,
        "Mean ± standard deviation over seeds, for the literal reading. Training images are the first 10,000, without "
        "augmentation.",
    )
    return (
        Section.of(
            "Accuracy and confidence",
            "A higher tau flattens what the model is given as its own target. A higher rho moves less mass where the "
            "model knows little: alpha = 1 − rho H(p)/log K. Both change where training rests, and theory says where.",
            table,
            _figure(rows, size_of(results)),
        ),
        Section.of("What differs from the paper", *what_differs(results)),
    )


def _rows(results: Results, classes: int) -> list[Row]:
    keys = ("label_probability_train", "label_probability", "accuracy", "ece", "ece_scaled")
    return [
        {
            "tau": tau,
            "rho": rho,
            "predicted": rest(tau, rho, classes),
            **{key: results.sample(key, tau=tau, rho=rho) for key in keys},
        }
        for tau, rho in places(size_of(results))
    ]


def _figure(rows: list[Row], size: str) -> Figure:
    def panels(name: str, values: tuple[float, ...], fixed: str, at: float) -> list[Panel]:
        mine = [row for value in values for row in rows if row[name] == value and row[fixed] == at]
        x = [row[name] for row in mine]
        theory = Curve("theory", GREY, x, [row["predicted"] for row in mine], line="dashed")
        train = Curve.of("training images", BLUE, x, [row["label_probability_train"] for row in mine])
        test = Curve.of(
            "test images", BLUE, x, [row["label_probability"] for row in mine], line="dotted", marker="square"
        )
        right = Curve.of("test accuracy", BLUE, x, [row["accuracy"] for row in mine], scale=100)
        title = f"{name} varies, {fixed} = {at:g}"
        return [
            Panel(title, name, "label probability", [theory, train, test], limits=(0, 1.02), digits=2),
            Panel(title, name, "test accuracy, %", [right], digits=2),
        ]

    return lines(
        "sweeps",
        "Label probability and accuracy over tau and rho.",
        [*panels("tau", TAUS[size], "rho", RHO), *panels("rho", RHOS[size], "tau", TAU)],
        rows,
        "Points are means over seeds, bars one standard deviation. The dashed line is theory, which takes all wrong "
        "classes as alike: look for how far training images are from it.",
        "Label probability with theory, and test accuracy, over tau and over rho.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements of our own about the paper's hyper-parameters; without results they are not run yet."""
    followed = by_protocol(results, trials)
    low, high = ({"tau": tau, "rho": RHO} for tau in (1.15, TAU))
    key = "label_probability_train"
    classes = classes_of("cifar100")
    apart = {
        f"tau = {tau:g}, rho = {rho:g}": Sample.of(
            value - rest(tau, rho, classes) for value in followed.sample(key, tau=tau, rho=rho).values
        )
        for tau, rho in places("full")
    }
    return (
        Claim(
            "The choice between the two values of tau that the paper tried costs less than half a point of accuracy.",
            sources("lu-2023/accuracy/cifar100-resnet18/labo"),
            "accuracy at tau 1.25 minus accuracy at tau 1.15",
            followed.gain("accuracy", [(high, low)], scale=100),
            Region(-WORTH, WORTH),
            followed.then("accuracy", ".2%", low, high),
            "Our own statement: the paper tried both for translation and prints neither for CIFAR.",
            digits=2,
            seeds=SEEDS,
            zone=zone(NOTHING),
            unit="points",
        ),
        Claim.every(
            "For every tau and rho the labels of training images get the probability that theory says.",
            sources("lu-2023/probabilities/iwslt14-de-en/labo"),
            "average label probability on 10,000 training images minus that of theory",
            apart,
            Region(-NEAR, NEAR),
            followed.shown(key, ".2f", high) + " at tau = 1.25",
            "Our own statement. Theory takes all wrong classes as alike, which they are not.",
            digits=2,
            seeds=SEEDS,
        ),
    )
