"""What the study of ResNet-56 says: accuracies beside the replication's, and calibration."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, above, published, sources
from softtargets.report import Section, Table
from softtargets.studies.cifar10_resnet56 import figures
from softtargets.studies.cifar10_resnet56.grid import ALPHAS, MODEL, NET
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import percent

HARD, SMOOTHED = {"alpha": 0.0}, {"alpha": 0.1}
KINDS = dict(zip(ALPHAS, ("hard", "smoothed"), strict=True))
LOWEST = 0.93


def findings(results: Results) -> Findings:
    """Table, figure and claims; those whose runs are not there are left out."""
    claims = tuple(claim for claim in _claims(results) if claim.sample.n)
    return Findings(sections=_sections(results), claims=claims)


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
            "Müller et al. build on, and each image is standardised by its own mean and deviation. The "
            "replication cuts crops of 24 x 24, which belong to AlexNet, and standardises by channel.",
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
        return f"The net is the replication's and Müller et al.'s: tensor2tensor's, with stages of {channels} channels."
    theirs = "{}, {} and {}".format(*MODEL.stages)
    return (
        f"Stages have {channels} channels (variant {model.variant}); those of the replication and of Müller et al., "
        f"who use tensor2tensor's net, have {theirs}."
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


def _claims(results: Results) -> tuple[Claim, ...]:
    def reached(words: str, labels: dict[str, float], kind: str) -> Claim:
        return Claim(
            f"ResNet-56 {words} gets at least {percent(LOWEST)} of the test images right.",
            sources("wagner-2023/accuracy/cifar10-resnet56", kind),
            f"accuracy at alpha {labels['alpha']:g}",
            *above(LOWEST, results.sample("accuracy", **labels)),
            percent(results.sample("accuracy", **labels).mean, 2),
            digits=4,
        )

    return (
        reached("with hard targets", HARD, "hard"),
        reached("with label smoothing of 0.1", SMOOTHED, "smoothed"),
        Claim(
            "Label smoothing costs no accuracy worth mentioning.",
            sources("wagner-2023/accuracy/cifar10-resnet56", *KINDS.values()),
            "accuracy at alpha 0.1 minus accuracy at alpha 0",
            *above(-0.01, results.difference("accuracy", SMOOTHED, HARD)),
            results.then("accuracy", ".2%", HARD, SMOOTHED).replace("%", " %") + " at alpha = 0.1",
            "“Worth mentioning” is one point of accuracy.",
            digits=4,
        ),
        Claim(
            "Smoothing of 0.1 is too much for the calibration of ResNet-56 on CIFAR-10: without a temperature its "
            "calibration error is higher than that of hard targets.",
            sources("wagner-2023/ece/cifar10-resnet56", *KINDS.values()),
            "ECE at alpha 0.1 minus ECE at alpha 0",
            *above(0, results.difference("ece", SMOOTHED, HARD)),
            results.then("ece", ".3f", HARD, SMOOTHED) + " at alpha = 0.1",
            "Only the replication prints this; Müller et al. give no calibration for CIFAR-10.",
        ),
    )
