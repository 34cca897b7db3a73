"""The networks that Müller et al. 2019 train for pictures and calibration: AlexNet, ResNet-56 and Inception-v4.

Their table 2, figure 1, figure 2 with table 3 and the authors' response are about the same trainings, which these
studies therefore share: a recipe that two of them name is one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from softtargets.recipes import CNN, SGD, Flip, Recipe, Step
from softtargets.runs import Predictions, Run
from softtargets.studies.grids import SMOOTHING_AXES, each_seed, smoothing, stretched
from softtargets.studies.measures import accuracy, likelihood_and_calibration
from softtargets.studies.protocols import (
    ALEXNET_CIFAR10,
    INCEPTION_V4_IMAGENET,
    RESNET56_CIFAR100,
    held_out,
    shrunk,
)
from softtargets.studies.results import Results
from softtargets.studies.study import Settings, Trial
from softtargets.studies.words import percent

# The default is small; Inception-v4 is for who has ImageNet.
SMALL, FULL, IMAGENET = "small", "full", "imagenet"
SIZES = (SMALL, FULL, IMAGENET)
AXES = ("seed", *SMOOTHING_AXES)
KEEP = ("test:scores", "validation:scores")
# What our trainings of ResNet-56 and AlexNet add to the paper's, or read into it: pages that train one of them say so.
_DEEP = (
    "ResNet-56 is trained for whole epochs: 205 are 64,165 steps (the paper: 64,000). Its weight decay is added to the "
    "gradient after clipping, not before, and the last layer's biases have it too."
)
ALEXNET = (
    "AlexNet's 1246 epochs are 389,998 steps (the paper: 390,000). It is augmented as in TensorFlow's tutorial, "
    "brightness and contrast included; the paper does not say whether it kept these. Its decay of 0.04 in “the last "
    "two dense layers” is on the two that the tutorial decays."
)
BF16 = "Matrix products and convolutions are computed in bf16."
RESNET56 = f"{_DEEP} {BF16}"
TRAINED = (f"{_DEEP} {ALEXNET} {BF16}",)
# Seeds that decide. The response counts errors of five runs, and has five.
SEEDS = 3


@dataclass(frozen=True)
class Network:
    """A network on a dataset: its names, and how it is trained at each size that has it."""

    key: str
    title: str
    dataset: str
    recipes: Mapping[str, Recipe]


# For a CPU, where even a short training of these networks takes an hour: two convolutions in the place of both.
_SMALL: dict[str, Any] = {
    "epochs": 8,
    "batch": 32,
    "augmentation": (Flip(),),
    "optimiser": SGD(lr=0.02, momentum=0.9),
    "multiplier": 1.0,
}
_SMALL_CIFAR10 = shrunk(ALEXNET_CIFAR10, images=2000, model=CNN(channels=(16, 32), hidden=64), **_SMALL)
_SMALL_CIFAR100 = shrunk(RESNET56_CIFAR100, images=3000, model=CNN(channels=(16, 32), hidden=128), **_SMALL)

NETWORKS = {
    one.key: one
    for one in (
        Network("cifar10", "AlexNet on CIFAR-10", "CIFAR-10", {SMALL: _SMALL_CIFAR10, FULL: ALEXNET_CIFAR10}),
        Network(
            "cifar100",
            "ResNet-56 on CIFAR-100",
            "CIFAR-100",
            {SMALL: _SMALL_CIFAR100, FULL: RESNET56_CIFAR100},
        ),
        Network(
            "imagenet",
            "Inception-v4 on ImageNet",
            "ImageNet",
            {IMAGENET: held_out(INCEPTION_V4_IMAGENET, 50_000)},
        ),
    )
}


def trials_of(settings: Settings, alphas: Mapping[str, Sequence[float]]) -> list[Trial]:
    """Each network of this size with each of its strengths of smoothing, for each seed."""
    grid: list[Trial] = []
    for key, strengths in alphas.items():
        recipe = NETWORKS[key].recipes.get(settings.size)
        if recipe is not None:
            cells = (
                ({"regulariser": smoothing(alpha)}, {"network": key, "alpha": alpha}) for alpha in strengths
            )
            grid += each_seed(settings, _base(settings, recipe), cells)
    return grid


def _base(settings: Settings, recipe: Recipe) -> Recipe:
    """With the user's changes; in a longer or shorter training the rate drops at the same shares of it."""
    base = settings.base(recipe)
    if base.epochs == recipe.epochs or not isinstance(recipe.schedule, Step):
        return base
    return stretched(base, settings, *(place / (recipe.epochs or 1) for place in recipe.schedule.milestones))


def held_out_split(run: Run) -> str:
    """The images that the paper shows results on: those held out, or the test set where none are."""
    return "validation" if run.has_predictions("validation") else "test"


def on_both(run: Run) -> dict[str, float]:
    """Accuracy, likelihood and calibration on the test images and, as ``held_out_...``, on those held out."""
    found = {name: _quality(run.predictions(name)) for name in ("test", held_out_split(run))}
    return found["test"] | {f"held_out_{key}": value for key, value in found[held_out_split(run)].items()}


def _quality(said: Predictions) -> dict[str, float]:
    return {"accuracy": accuracy(said), **likelihood_and_calibration(said.logits, said.labels)}


def networks_in(results: Results) -> list[str]:
    """The networks of which there are runs, in the order of the paper."""
    there = {outcome.trial.labels["network"] for outcome in results.outcomes}
    return [key for key in NETWORKS if key in there]


def as_printed(results: Results, keys: Iterable[str] = NETWORKS) -> list[str]:
    """The networks whose printed numbers may be asked for: trained as at full size, or not trained yet.

    Of another model or another training, such as our Inception-v4, only directions can be compared. Those that are not
    trained yet are taken to be trained as the others are.
    """
    full = {key: NETWORKS[key].recipes[FULL] for key in keys if FULL in NETWORKS[key].recipes}
    there = {key: recipe for key, recipe in full.items() if key in networks_in(results)}
    alike = {
        key: all(_same_training(one.trial.recipe, recipe) for one in results.where(network=key).outcomes)
        for key, recipe in there.items()
    }
    return [key for key in full if alike.get(key, all(alike.values()))]


def _same_training(recipe: Recipe, full: Recipe) -> bool:
    return recipe.replace({"regulariser": full.regulariser, "seed": full.seed}) == full


def compared(results: Results, keys: Sequence[str]) -> list[str]:
    """The networks that claims about directions compare: CIFAR's, and ImageNet's where it is trained, if need be alone.

    CIFAR's also before they are trained: one that is trained later must not turn the verdict on another (`judge`).
    """
    there = networks_in(results)
    cifar = [] if there == ["imagenet"] else [key for key in keys if key != "imagenet"]
    return [*cifar, *(key for key in keys if key == "imagenet" and key in there)]


def title_of(results: Results, key: str) -> str:
    """What a page calls a network: the paper's name for it, unless another one was trained in its place."""
    network = NETWORKS[key]
    theirs = next(reversed(list(network.recipes.values()))).model
    alike = all(one.trial.recipe.model == theirs for one in results.where(network=key).outcomes)
    return network.title if alike else f"A small network on {network.dataset}"


def deviations(results: Results) -> tuple[str, ...]:
    """What differs from the paper, for the end of a page."""
    size = results.outcomes[0].trial.labels.get("size", FULL) if results.outcomes else FULL
    known = {SMALL: _small, FULL: _full, IMAGENET: _imagenet}[size]()
    return (*known, *(_length(results, key, size) for key in networks_in(results)))


def _length(results: Results, key: str, size: str) -> str:
    """What a user made of the length; nothing where it is as it was."""
    meant = NETWORKS[key].recipes[size].epochs
    found = {outcome.trial.recipe.epochs for outcome in results.where(network=key).outcomes} - {meant}
    epochs = " or ".join(str(one) for one in sorted(one for one in found if one is not None))
    return f"{title_of(results, key)} was trained for {epochs} epochs instead of {meant}." if epochs else ""


def _small() -> tuple[str, ...]:
    return (
        "This is the small size, for a CPU: a network of two convolutions in the place of AlexNet and ResNet-56, for "
        "8 epochs, on 2,000 images of CIFAR-10 and 3,000 of CIFAR-100. It shows how the page is made and which way "
        "things go; printed numbers are not compared. With --set size=full the paper's training is done.",
    )


def _full() -> tuple[str, ...]:
    return (
        "The paper holds 10,000 of the 50,000 training images out, and shows results on them. So do we, with the last "
        "10,000, where a printed number is compared. Directions are judged on the test set of 10,000 other images, "
        "since the held-out ones choose temperatures here.",
        *TRAINED,
    )


def _imagenet() -> tuple[str, ...]:
    return (
        "Printed numbers are not compared: batches are 256 instead of 4096, and rate, schedule, length and "
        "augmentation, which the paper leaves open, are ours. Network, momentum, weight decay and the "
        "average of the weights are the paper's.",
    )


def shown_alpha(alpha: float) -> str:
    """``hard targets`` or ``smoothing 0.1``."""
    return f"smoothing {alpha:g}" if alpha else "hard targets"


def two_accuracies(results: Results, network: str, alphas: tuple[float, float] = (0.0, 0.1)) -> str:
    """``72.1 %, then 72.7 %``: on the test set, without smoothing and with."""
    found = (results.sample("accuracy", network=network, alpha=alpha).mean for alpha in alphas)
    return ", then ".join("–" if value != value else percent(value, 1) for value in found)
