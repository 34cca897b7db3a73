"""What the study of ResNet-56 says: accuracies beside the replication's, and calibration."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, above, judge, published, sources, two_standard_errors, zone
from softtargets.report import Section, Table
from softtargets.studies.cifar10_resnet56 import figures
from softtargets.studies.cifar10_resnet56.grid import ALPHAS, MODEL, NET
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, percent

HARD, SMOOTHED = {"alpha": 0.0}, {"alpha": 0.1}
KINDS = dict(zip(ALPHAS, ("hard", "smoothed"), strict=True))

# Seeds that decide.
SEEDS = 3
# Points of accuracy that are worth mentioning. Differences in ECE too small to count, and how near to the
# replication's ours must come: its 0.016 has two digits.
WORTH, SAME_ECE, ECE_MARGIN = 1.0, 0.003, 0.005
TEST_IMAGES = 10_000


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """What does label smoothing do?"""
    accuracy, calibration = (one.verdict for one in judge(made)[-2:])
    if "not run yet" in (accuracy, calibration):
        return answered("not run yet", "", "", whether="smoothing changes accuracy or calibration")
    cost = {"reproduced": "It costs no accuracy worth mentioning", "contradicted": "It costs accuracy"}
    harm = {
        "reproduced": "makes calibration worse",
        "contradicted": "makes calibration better",
        "no effect": "leaves the calibration error as it is",
    }
    first = cost.get(accuracy, "We cannot tell whether it costs accuracy")
    return f"{first}, and it {harm.get(calibration, 'has no effect on calibration that these seeds could show')}."


def _sections(results: Results) -> tuple[Section, ...]:
    run, recipe = results.first().run, results.first().trial.recipe
    examples, epochs = run.provenance["examples"], int(run.summary["epoch"])
    return (
        Section.of(
            "Accuracy and calibration",
            f"A pre-activation ResNet-56 with {run.provenance['parameters']:,} weights is trained on "
            f"{examples['train']:,} images for {epochs} epochs and tested on {examples['test']:,} others, without "
            "smoothing and with a share of 0.1 of each target spread over all ten classes. There is no "
            "validation set, so nothing is chosen: the numbers are those of the last epoch.",
            _table(results),
            figures.accuracy_over_epochs(results),
        ),
        Section.of(
            "What differs from the replication",
            "Training images are crops of 32 x 32 from images padded by four pixels, as in tensor2tensor, which "
            "Müller et al. build on, and each image is standardised by its own mean and standard deviation. The "
            "replication cuts crops of 24 x 24, which belong to AlexNet, and standardises by channel.",
            "Of the five smoothing strengths of the replication's table, two are trained: 0 and 0.1. Weights start "
            "from a truncated normal distribution scaled by the fan-in; the replication scales by the fan-out "
            "(Kaiming). It prints 64,165 iterations; 205 epochs of all 50,000 images are 80,155 (ERRATA.md).",
            _longer_or_shorter(epochs),
            f"{_width(recipe.model)} Matrix products and convolutions are computed in {recipe.precision}.",
            "As in both papers the cross-entropy is multiplied by three and the norm of the gradient is clipped "
            "at 1. ECE has 15 bins and no temperature.",
        ),
    )


def _longer_or_shorter(epochs: int) -> str:
    if epochs == NET.epochs:
        return ""
    return (
        f"Training lasts {epochs} epochs instead of the replication's {NET.epochs}; the learning rate drops at "
        "the same shares of it, a half and three quarters."
    )


def _width(model: Any) -> str:
    channels = "{}, {} and {}".format(*model.stages)
    if model == MODEL:
        return f"The network is the replication's and Müller et al.'s: tensor2tensor's, stages of {channels} channels."
    theirs = "{}, {} and {}".format(*MODEL.stages)
    return (
        f"Stages have {channels} channels (variant {model.variant}); those of the replication and of Müller et al., "
        f"who use tensor2tensor's network, have {theirs}. So the printed numbers, which are of another model, are not "
        "compared with ours; directions are."
    )


def _table(results: Results) -> Table:
    rows = (
        {
            "alpha": alpha,
            "replication": published(f"wagner-2023/accuracy/cifar10-resnet56/{kind}").value,
            "accuracy": results.sample("accuracy", alpha=alpha),
            "replication_ece": published(f"wagner-2023/ece/cifar10-resnet56/{kind}").value,
            "ece": results.sample("ece", alpha=alpha),
            "nll": results.sample("nll", alpha=alpha),
        }
        for alpha, kind in KINDS.items()
    )
    return Table.of(
        "accuracies",
        "ResNet-56 on CIFAR-10, test set.",
        "alpha .1f | replication .2%: accuracy, replication 2023 | accuracy .2%: accuracy, ours | "
        "replication_ece: ECE, replication 2023 | ece: ECE, ours | nll: NLL, ours",
        rows,
        "Ours: mean ± standard deviation over seeds, after the last epoch. ECE at T = 1.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Statements with the quantities that test them; without results they are not run yet."""
    # Printed numbers are those of one model and one training; of others only directions can be compared.
    recipe = results.first().trial.recipe if results.outcomes else NET
    theirs = recipe.model == MODEL and recipe.epochs == NET.epochs
    printed: dict[str, Any] = {"printed": round(_change("ece"), 6), "margin": ECE_MARGIN} if theirs else {}
    return (
        *(_numbers(results) if theirs else ()),
        Claim(
            "Label smoothing costs no accuracy worth mentioning.",
            sources("wagner-2023/accuracy/cifar10-resnet56", *KINDS.values()),
            "accuracy at alpha 0.1 minus accuracy at alpha 0",
            *above(-WORTH, results.gain("accuracy", [(SMOOTHED, HARD)], scale=100)),
            results.then("accuracy", ".2%", HARD, SMOOTHED) + " at alpha = 0.1",
            f"“Worth mentioning” is one point of accuracy; the replication loses {-100 * _change('accuracy'):.2f}.",
            digits=2,
            seeds=SEEDS,
            unit="points",
        ),
        Claim(
            "Smoothing of 0.1 is too much for the calibration of ResNet-56 on CIFAR-10: without a temperature its "
            "calibration error is higher than that of hard targets.",
            sources("wagner-2023/ece/cifar10-resnet56", *KINDS.values()),
            "ECE at alpha 0.1 minus ECE at alpha 0",
            *above(0, results.difference("ece", SMOOTHED, HARD)),
            results.then("ece", ".3f", HARD, SMOOTHED) + " at alpha = 0.1",
            "Only the replication prints this; Müller et al. give no calibration for CIFAR-10.",
            seeds=SEEDS,
            zone=zone(SAME_ECE),
            **printed,
        ),
    )


def _numbers(results: Results) -> tuple[Claim, ...]:
    return (
        _printed(results, HARD, "ResNet-56 with hard targets gets {} of the test images right."),
        _printed(
            results, SMOOTHED, "ResNet-56 with label smoothing of 0.1 gets {} of the test images right."
        ),
    )


def _printed(results: Results, labels: dict[str, float], statement: str) -> Claim:
    """The replication's accuracy, within what its test images leave open."""
    key = f"wagner-2023/accuracy/cifar10-resnet56/{KINDS[labels['alpha']]}"
    value, found = published(key).value or 0.0, results.sample("accuracy", **labels)
    printed = round(100 * value, 6)
    margin = round(100 * two_standard_errors(value, TEST_IMAGES), 2)
    return Claim(
        statement.format(percent(value, 2)),
        sources(key),
        f"accuracy at alpha {labels['alpha']:g}",
        found.times(100),
        Region(printed - margin, printed + margin),
        percent(found.first(SEEDS).mean, 2),
        "The margin is two standard errors of the printed figure, which was measured on 10,000 images.",
        digits=2,
        seeds=SEEDS,
        printed=printed,
        margin=margin,
        unit="%",
    )


def _change(measure: str) -> float:
    """What smoothing changes in the replication."""
    hard, smoothed = (
        published(f"wagner-2023/{measure}/cifar10-resnet56/{kind}").value for kind in KINDS.values()
    )
    return (smoothed or 0.0) - (hard or 0.0)
