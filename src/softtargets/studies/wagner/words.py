"""Sentences that the studies of the replication share."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.studies.results import Results
from softtargets.studies.wagner.networks import Network
from softtargets.studies.words import counted


def how_trained(results: Results, networks: Sequence[Network]) -> str:
    """What each network was trained and measured on, as far as it has been."""
    said = []
    for network in networks:
        mine = results.where(network=network.key)
        if not mine.outcomes:
            said.append(f"{network.name} has not been trained yet.")
            continue
        run, recipe = mine.first().run, mine.first().trial.recipe
        examples = run.provenance["examples"]
        length = counted(recipe.epochs, "epoch") if recipe.epochs else counted(recipe.steps or 0, "step")
        on = network.evaluated if network.evaluated in examples else "test"
        what = "test images" if on == "test" else "training images that were held out"
        said.append(
            f"{network.name}: {examples['train']:,} images for {length}, measured on {examples[on]:,} {what} "
            f"({counted(len(mine.seeds), 'seed')})."
        )
    return " ".join(said)


def about_sizes(size: str) -> str:
    """What the small size cannot say, and how to get more."""
    if size == "small":
        return (
            "This is the small size, for a CPU: few images, few epochs and three strengths. Fully connected networks "
            "are narrower, a small convolutional network stands for AlexNet and a residual network of eight layers for "
            "ResNet-56. Printed numbers are shown and not compared. With --set size=full the networks of the paper are "
            "trained."
        )
    if size == "full":
        return (
            "EMNIST, CUB-200-2011 and Tiny ImageNet have sizes of their own for users who have the data: --set "
            "size=emnist, size=cub200 and size=tiny-imagenet (the last two need timm and its pre-trained weights)."
        )
    return ""
