"""Sentences that pages of studies beyond the papers share."""

from __future__ import annotations

from softtargets.report import Section
from softtargets.studies.beyond.grid import networks_of
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.words import counted, unless_full


def how_trained(results: Results) -> str:
    """What was trained, in a paragraph."""
    names = networks_of(results)
    there = [names[key] for key in names if results.where(network=key).outcomes]
    return (
        f"{size_of(results).capitalize()} size: {'; '.join(there)}; "
        f"{counted(len(results.seeds), 'seed')}. All is measured on the test images."
    )


def trainings(results: Results) -> Section:
    """Whose trainings these are, and what the small size leaves out."""
    return Section.of(
        "What was trained",
        "The question is ours, the trainings are not: they are those of the tables 2 and 3 of Wagner et al. (2023), as "
        "the studies of these tables have them, and their runs are used again. Smoothing spreads its share over all "
        "classes. ResNet-56 on CIFAR-100 is trained on 40,000 images, all others on the whole training set.",
        unless_full(
            size_of(results),
            "This is the small size, for a CPU: 2,000 training images, few epochs, a fully connected network with 200 "
            "units in each layer, a small convolutional network in the place of AlexNet and a ResNet of depth 8 in "
            "that of ResNet-56. Its verdicts are about these models. With --set size=full the papers' models are "
            "trained.",
        ),
    )
