"""What the study of mutual information says: the figure, a table, and the claims that they test."""

from __future__ import annotations

import math
from typing import Any

from softtargets.claims import Claim, Region, Sample, above, below, judge, sources, zone
from softtargets.recipes import Information
from softtargets.report import Section, Table
from softtargets.studies.muller_figure_6 import figures
from softtargets.studies.muller_figure_6.grid import BASES, COMPARED
from softtargets.studies.muller_images import RESNET56
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import SMALL_DECIDES_NOTHING, answered, signed, unless_full

HARD, SMOOTHED = ({"alpha": alpha} for alpha in COMPARED)
AT = f"alpha {SMOOTHED['alpha']:g}"
# Seeds that decide.
SEEDS = 3
# Nats that are too few to count, and how far above log 2 is still “slightly above”: half of log 2.
NOTHING = 0.05
SLIGHTLY = math.log(2) / 2
_CLASSES = {"cifar10": "airplane and dog", "mnist": "the digits 0 and 5"}


def findings(results: Results) -> Findings:
    """Figure, table and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    if not made:
        return SMALL_DECIDES_NOTHING
    return answered(
        judge(made)[0].verdict,
        "Yes: at the end of training the logits of a smoothed model tell less about an image than those of a model "
        "with hard targets.",
        "No: at the end of training the logits of a smoothed model tell as much about an image, or more.",
        nothing="No: at the end of training both models' logits tell equally much about an image.",
        whether="smoothing erases information",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet.

    They are about ResNet-56 on CIFAR-10: the small size makes none.
    """
    if _size(results) == "small":
        return ()
    fixed: dict[str, Any] = {"seeds": SEEDS, "zone": zone(NOTHING), "digits": 2}
    left = results.sample("information", **SMOOTHED)
    above_two = Sample.of(value - math.log(2) for value in left.values)
    return (
        Claim(
            "At the end of training, logits of a model with label smoothing tell less about a training image.",
            sources("muller-2019/information/smoothed"),
            f"information at {AT} minus information at alpha 0, nats, after the last step",
            *below(0, results.difference("information", SMOOTHED, HARD)),
            results.then("information", ".2f", HARD, SMOOTHED) + f" nats at {AT}",
            **fixed,
        ),
        Claim(
            "With label smoothing the information decreases in the later stages of training.",
            sources("muller-2019/information/decrease"),
            f"information at {AT}, on average over the looks before the first drop of the learning rate, minus "
            "that at the end, nats",
            *above(0, results.sample("fall", **SMOOTHED)),
            f"{results.shown('early', '.2f', SMOOTHED)}, then {results.shown('information', '.2f', SMOOTHED)} nats",
            "The rate drops in the middle of the training. The highest look is not chosen: it would lie above the last "
            "one by chance alone.",
            **fixed,
        ),
        Claim(
            "The information decreases more with label smoothing than with hard targets.",
            sources("muller-2019/information/decrease"),
            f"decrease at {AT} minus decrease at alpha 0, nats",
            *above(0, results.difference("fall", SMOOTHED, HARD)),
            results.then("fall", ".2f", HARD, SMOOTHED) + f" nats at {AT}",
            "The decrease is that of the claim above.",
            **fixed,
        ),
        Claim(
            "With label smoothing the information ends slightly above log 2.",
            sources("muller-2019/information/cifar10"),
            f"information at {AT} minus log 2, nats, after the last step",
            above_two,
            Region(0.0, round(SLIGHTLY, 3)),
            f"{results.shown('information', '.2f', SMOOTHED)} nats; log 2 is 0.69",
            "“Slightly” means by less than half of log 2.",
            seeds=SEEDS,
            digits=2,
        ),
    )


def _size(results: Results) -> str:
    return str(results.first().trial.labels.get("size", "full")) if results.outcomes else "full"


def _sections(results: Results) -> tuple[Section, ...]:
    size = _size(results)
    recipe = results.first().trial.recipe if results.outcomes else BASES["full"]
    look = next(probe for probe in recipe.probes if isinstance(probe, Information))
    return (
        Section.of(
            "Information over the training",
            f"Every {look.every:,} steps each of {2 * look.examples} training images of two classes, "
            f"{_CLASSES.get(recipe.data.name, '0 and 5')}, is augmented {look.draws} times as in training. The "
            "difference of the two logits scatters around a mean of its own for each image. The estimate says how "
            "well the image can be told from one such difference.",
            figures.information(results),
            _table(results),
        ),
        Section.of(
            "Two readings of one formula",
            "The paper's estimate compares how well a difference fits its own image with how well it fits images on "
            "average, and uses one letter for both. Read as an average over all N images, its own among them, it "
            "estimates the mutual information and is at most log N. Read as an average over the other images it "
            "is at least as large and has no upper bound. Both are shown; claims are about the first, which the "
            "paper's bounds of 0 and log N belong to.",
            "Both correct for means that are estimated from few draws. The plug-in estimate as printed finds up to "
            "0.11 nats too much with 5 draws.",
        ),
        Section.of(
            "What differs from the paper",
            unless_full(
                size,
                f"This is the small size: a fully connected network on {recipe.data.limit or 0:,} digits of MNIST for "
                f"{recipe.epochs} epochs. It shows how the figure is made; the paper's statements are about ResNet-56 "
                "on CIFAR-10, the full size.",
            )
            or RESNET56,
            "The paper does not print how much smoothing its figure 6 has. Its networks are the teachers of its figure "
            f"5; the mildest smoothing of these, {AT}, is compared here. The last panel has them all.",
            "Its “very small” information after initialisation is not tested: the first look is after the first "
            f"{look.every:,} steps. The images are the first of each class in the training set; the paper does not say "
            "which ones it takes.",
        ),
    )


def _table(results: Results) -> Table:
    measures = ("early", "information", "others_information", "validation_accuracy")
    alphas = sorted(set(results.values("alpha"))) if results.outcomes else sorted(COMPARED)
    return Table.of(
        "information_by_alpha",
        "Information in nats, and accuracy on held-out images.",
        "alpha .2f | early .2f: before the first drop of the rate, on average | information .2f: at the end | "
        "others_information .2f: at the end, compared with the others | "
        "validation_accuracy .2%: accuracy, validation images",
        results.rows(({"alpha": alpha} for alpha in alphas), *measures),
        f"Mean ± standard deviation over seeds. Differences below {signed(NOTHING).lstrip('+')} nats count as none.",
    )
