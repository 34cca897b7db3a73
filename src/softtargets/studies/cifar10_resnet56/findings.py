"""What the study of ResNet-56 says: accuracies beside the replication's, and calibration."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, above, published, sources, two_standard_errors, zone
from softtargets.report import Section, Table
from softtargets.studies.cifar10_resnet56 import figures
from softtargets.studies.cifar10_resnet56.grid import ALPHAS, MODEL, NET
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import percent

HARD, SMOOTHED = {"alpha": 0.0}, {"alpha": 0.1}
KINDS = dict(zip(ALPHAS, ("hard", "smoothed"), strict=True))

# Seeds that decide.
SEEDS = 3
# Accuracy that is worth mentioning. Differences in ECE too small to count, and how near to the
# replication's ours must come: its 0.016 has two digits.
WORTH, SAME_ECE, ECE_MARGIN = 0.01, 0.003, 0.005
TEST_IMAGES = 10_000


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    return Findings(sections=_sections(results), claims=claims(results))


def _sections(results: Results) -> tuple[Section, ...]:
    run, recipe = results.first().run, results.first().trial.recipe
    examples, epochs = run.provenance["examples"], int(run.summary["epoch"])
    return (
        Section.of(
            "Accuracy and calibration",
            f"A pre-activation ResNet-56 with {run.provenance['parameters']:,} weights is trained on "
            f"{examples['train']:,} images for {epochs} epochs and tested on {examples['test']:,} others, without "
            "smoothing and with a share of 0.1 of each target spread over all ten classes. There is no "
            "validation set and nothing is tuned: the numbers are those of the last epoch.",
            _table(results),
            figures.accuracy_over_epochs(results),
        ),
        Section.of(
            "What differs from the replication",
            "Training images are crops of 32 x 32 from images padded by four pixels, and each image is standardised by "
            "its own mean and standard deviation. That is what tensor2tensor does, which Müller et al. build on. The "
            "replication takes crops of 24 x 24, which belong to AlexNet, and standardises by channel.",
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
        f"Training takes {epochs} epochs instead of the replication's {NET.epochs}. The learning rate drops after the "
        "same shares of it, a half and three quarters."
    )


def _width(model: Any) -> str:
    channels = "{}, {} and {}".format(*model.stages)
    if model == MODEL:
        return (
            "The network is tensor2tensor's, as in the replication and in Müller et al., with stages of "
            f"{channels} channels."
        )
    theirs = "{}, {} and {}".format(*MODEL.stages)
    return (
        f"Stages have {channels} channels (variant {model.variant}). The replication and Müller et al. use "
        f"tensor2tensor's network, whose stages have {theirs}."
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
    return (
        _printed(results, HARD, "ResNet-56 with hard targets classifies {} of the test images correctly."),
        _printed(
            results,
            SMOOTHED,
            "ResNet-56 with label smoothing of 0.1 classifies {} of the test images correctly.",
        ),
        Claim(
            "Label smoothing costs no accuracy worth mentioning.",
            sources("wagner-2023/accuracy/cifar10-resnet56", *KINDS.values()),
            "accuracy at alpha 0.1 minus accuracy at alpha 0",
            *above(-WORTH, results.difference("accuracy", SMOOTHED, HARD)),
            results.then("accuracy", ".2%", HARD, SMOOTHED) + " at alpha = 0.1",
            "“Worth mentioning” is one point of accuracy. The replication loses "
            f"{-100 * _change('accuracy'):.2f} points.",
            digits=4,
            seeds=SEEDS,
        ),
        Claim(
            "Label smoothing of 0.1 raises the calibration error of ResNet-56 on CIFAR-10 above that of hard targets, "
            "both without a temperature.",
            sources("wagner-2023/ece/cifar10-resnet56", *KINDS.values()),
            "ECE at alpha 0.1 minus ECE at alpha 0",
            *above(0, results.difference("ece", SMOOTHED, HARD)),
            results.then("ece", ".3f", HARD, SMOOTHED) + " at alpha = 0.1",
            "Only the replication prints this. Müller et al. give no calibration error for CIFAR-10.",
            seeds=SEEDS,
            zone=zone(SAME_ECE),
            printed=round(_change("ece"), 6),
            margin=ECE_MARGIN,
        ),
    )


def _printed(results: Results, labels: dict[str, float], statement: str) -> Claim:
    """The replication's accuracy, within what its test images leave open."""
    key = f"wagner-2023/accuracy/cifar10-resnet56/{KINDS[labels['alpha']]}"
    value, found = published(key).value or 0.0, results.sample("accuracy", **labels)
    margin = round(two_standard_errors(value, TEST_IMAGES), 4)
    return Claim(
        statement.format(percent(value, 2)),
        sources(key),
        f"accuracy at alpha {labels['alpha']:g}",
        found,
        Region(value - margin, value + margin),
        percent(found.first(SEEDS).mean, 2),
        "The margin is two standard errors of the printed figure, which was measured on 10,000 images.",
        digits=4,
        seeds=SEEDS,
        printed=value,
        margin=margin,
    )


def _change(measure: str) -> float:
    """What smoothing changes in the replication."""
    hard, smoothed = (
        published(f"wagner-2023/{measure}/cifar10-resnet56/{kind}").value for kind in KINDS.values()
    )
    return (smoothed or 0.0) - (hard or 0.0)
