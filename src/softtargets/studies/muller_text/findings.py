"""What the statements in the text come to: curves of learning, accuracies after transfer, claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softtargets.claims import Claim, below, judge, sources, zone
from softtargets.report import Figure, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, GREEN, RED
from softtargets.studies.courses import band, by_epoch
from softtargets.studies.muller_images import RESNET56, SEEDS, SMALL, shown_alpha, title_of
from softtargets.studies.muller_text.grid import ALPHAS, GOALS, RECIPES, TEACHERS
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, percent

# Epochs, and points of accuracy, that are too few to count.
SAME_EPOCHS, SAME_ACCURACY = 1, 0.5
_NAMES = {
    "dropout": "hard targets with dropout",
    "smoothing": "smoothing 0.1",
    "neither": "hard targets without dropout",
}
_COLOURS = {"dropout": RED, "smoothing": BLUE, "neither": GREEN}


def claims(results: Results) -> tuple[Claim, ...]:
    """Speed against dropout and against nothing, and transfer."""
    goal = percent(GOALS[size_of(results)])
    soft = {"network": "cifar100", "alpha": 0.1}
    hard = {"network": "cifar100", "alpha": 0.0}
    return (
        _faster(
            results,
            "A teacher with label smoothing trains faster than one with hard targets and dropout.",
            "speed/mnist",
            "dropout",
            goal,
        ),
        _faster(
            results,
            "A network with label smoothing trains faster than the same network with hard targets.",
            "speed",
            "neither",
            goal,
            "Nothing but the targets differs: without dropout on either side, what the first claim owes to dropout is "
            "left out.",
        ),
        Claim(
            "What a network learns with label smoothing transfers less well to another dataset.",
            sources("muller-2019/transfer"),
            "accuracy on CIFAR-10 of a linear classifier on the activations, alpha 0.1 minus alpha 0",
            *below(0, results.gain("transfer_accuracy", [(soft, hard)], scale=100)),
            results.then("transfer_accuracy", ".1%", hard, soft),
            "The paper recalls work on ImageNet; here the networks are of CIFAR-100.",
            digits=2,
            seeds=SEEDS,
            unit="points",
            zone=zone(SAME_ACCURACY),
        ),
    )


def _faster(results: Results, statement: str, key: str, than: str, goal: str, remark: str = "") -> Claim:
    cells = [{"network": "fcn", "targets": name} for name in ("smoothing", than)]
    return Claim(
        statement,
        sources(f"muller-2019/{key}"),
        f"epochs to a test accuracy of {goal} with smoothing, minus those with {_NAMES[than]}",
        *below(0, results.difference("epochs_to_goal", *cells)),
        f"{results.then('epochs_to_goal', '.1f', cells[1], cells[0])} epochs",
        remark,
        digits=1,
        seeds=SEEDS,
        zone=zone(SAME_EPOCHS),
    )


def findings(results: Results) -> Findings:
    """Two short sections, and what differs."""
    made = claims(results)
    goal = percent(GOALS[size_of(results)])
    sections = (
        Section.of(
            "Learning speed",
            "A fully connected teacher on MNIST, as in the paper's distillation, is trained with dropout, with "
            f"smoothing, and with neither. Its speed is the number of epochs until it first gets {goal} of the test "
            "digits right; a training that never does counts as one epoch longer than it is.",
            _speed(results),
            *_curves(results),
        ),
        Section.of(
            "Transfer",
            f"{title_of(results, 'cifar100')} is trained without and with smoothing. Then logistic regression learns "
            "CIFAR-10, which has none of these classes, from its penultimate activations alone, and is tested on "
            "CIFAR-10's test images. The strength of its L2 penalty is chosen on a fifth of the training images.",
            _transfer(results),
        ),
        Section.of("What differs from the paper", *_deviations(results)),
    )
    return Findings(sections, made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Faster, and harder to reuse?"""
    verdicts = [one.verdict for one in judge(made)]
    if set(verdicts) == {"not run yet"}:
        return "Not known yet: the runs that decide have not all been made."
    said = (
        answered(
            verdicts[0],
            "Smoothing trains faster than dropout.",
            "Smoothing does not train faster than dropout.",
            whether="it trains faster than dropout",
        ),
        answered(
            verdicts[2],
            "What is learnt with it transfers less well.",
            "What is learnt with it transfers no less well.",
            whether="what is learnt with it transfers less well",
        ),
    )
    return " ".join(said)


def _speed(results: Results) -> Table:
    rows = [
        {"targets": _NAMES[name]}
        | {key: results.sample(key, network="fcn", targets=name) for key in ("epochs_to_goal", "accuracy")}
        for name in TEACHERS
    ]
    goal = percent(GOALS[size_of(results)])
    return Table.of(
        "speed",
        "Epochs to the goal, and accuracy at the end.",
        f"targets: teacher | epochs_to_goal .1f: epochs to {goal} | accuracy .2%: test accuracy at the end",
        rows,
        "Mean ± standard deviation over seeds.",
    )


def _curves(results: Results) -> Sequence[Figure]:
    rows: list[Row] = [
        {"targets": name, "epoch": epoch, "accuracy": sample}
        for name in TEACHERS
        for epoch, sample in by_epoch(results.where(network="fcn", targets=name)).items()
    ]
    if not rows:
        return ()
    last = max(row["epoch"] for row in rows)
    early = [row for row in rows if row["epoch"] <= max(last / 4, 2)]
    return (
        lines(
            "learning",
            "Test accuracy over the epochs.",
            (_panel("The whole training", rows), _panel("Its first quarter", early)),
            rows,
            "Lines are means over seeds, bands reach from the lowest seed to the highest.",
            "Test accuracy over epochs of three teachers on MNIST, and the first quarter enlarged.",
        ),
    )


def _panel(title: str, rows: Sequence[Row]) -> Panel:
    curves = []
    for name, colour in _COLOURS.items():
        mine = {row["epoch"]: row["accuracy"] for row in rows if row["targets"] == name}
        if mine:
            curves.append(band(_NAMES[name], colour, mine))
    return Panel(title, "epoch", "test accuracy, %", curves, digits=2)


def _transfer(results: Results) -> Table:
    rows: list[dict[str, Any]] = [
        {"targets": shown_alpha(alpha)}
        | {
            key: results.sample(key, network="cifar100", alpha=alpha)
            for key in ("accuracy", "transfer_accuracy")
        }
        for alpha in ALPHAS
    ]
    return Table.of(
        "transfer",
        "From CIFAR-100 to CIFAR-10.",
        "targets | accuracy .2%: accuracy on CIFAR-100 | "
        "transfer_accuracy .2%: accuracy on CIFAR-10, linear classifier",
        rows,
        "Mean ± standard deviation over seeds, test images of both.",
    )


def _deviations(results: Results) -> tuple[str, ...]:
    if size_of(results) == SMALL:
        teachers = results.where(network="fcn").outcomes
        small = teachers[0].trial.recipe if teachers else RECIPES[SMALL]
        return (
            f"This is the small size, for a CPU: a teacher with hidden layers of 128 on {small.data.limit:,} digits "
            f"for {small.epochs} epochs, and two convolutions on 3,000 images of CIFAR-100. With --set size=full "
            "the paper's training is done.",
        )
    return (
        "The paper gives no number for either statement, so only directions are judged. Teachers are trained as in the "
        "study mnist-distillation, in batches of 128; dropout is 0.5 on hidden layers, which is the replication's "
        "choice. For transfer the paper cites work with networks of ImageNet and twelve datasets; one pair is measured "
        f"here, and the network's layers are not trained further. {RESNET56}",
    )
