"""What is trained for figure 1, on which classes it is looked at, and what is measured."""

from __future__ import annotations

from typing import Any

from softtargets.data import CIFAR10_CLASSES, CIFAR100_FINE
from softtargets.runs import Run
from softtargets.studies.measures import accuracy
from softtargets.studies.muller_figure_1.geometry import arc_of, logit_gaps, norm_variation, predicted_gap
from softtargets.studies.muller_images import trials_of
from softtargets.studies.planes import kept_view, plane_numbers, view_of
from softtargets.studies.study import Settings, Trial

ALPHAS = (0.0, 0.1)
GRID = dict.fromkeys(("cifar10", "cifar100"), ALPHAS)
NAMES = {"cifar10": CIFAR10_CLASSES, "cifar100": CIFAR100_FINE}
SPLITS = {"train": "training", "validation": "held out"}

# The paper's classes; and, for the arc, two classes that are much alike with a third that is not (the last). The
# paper's are two breeds of poodle and a fish, of ImageNet; ours were chosen by what they are, before any training.
TRIPLES = {
    "cifar10": {"paper": ("airplane", "automobile", "bird"), "similar": ("cat", "dog", "airplane")},
    "cifar100": {
        "paper": ("beaver", "dolphin", "otter"),
        "similar": ("maple_tree", "oak_tree", "aquarium_fish"),
    },
}


def trials(settings: Settings) -> list[Trial]:
    """Both networks without and with smoothing, for each seed."""
    return trials_of(settings, GRID)


def places(network: str, which: str) -> tuple[int, int, int]:
    """The three classes by number."""
    a, b, c = (NAMES[network].index(name) for name in TRIPLES[network][which])
    return a, b, c


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Clusters on the paper's plane, the arc of similar classes, the gap between logits, norms of templates."""
    network, alpha, weights = trial.labels["network"], trial.labels["alpha"], run.weights()
    head, bias = weights["head.weight"], weights["head.bias"]
    said = {split: run.predictions(split) for split in SPLITS}
    found: dict[str, float] = {f"{split}_accuracy": accuracy(one) for split, one in said.items()}
    for split, one in said.items():
        numbers = plane_numbers(view_of(one, head, places(network, "paper")))
        found |= {f"{split}_{key}": value for key, value in numbers.items()}
        found[f"{split}_arc"] = arc_of(one, head, places(network, "similar"))
    found["gap"], found["gap_deviation"] = logit_gaps(said["train"].logits, said["train"].labels)
    if alpha:
        found["gap_ratio"] = found["gap"] / predicted_gap(alpha, len(head))
    return found | {"norm_variation": norm_variation(head, bias)}


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """The panels of the pictures: a hundred examples of each class."""
    network, head = trial.labels["network"], run.weights()["head.weight"]
    kept: dict[str, Any] = {}
    for split in SPLITS:
        said = run.predictions(split)
        for which, names in TRIPLES[network].items():
            shown = tuple(name.replace("_", " ") for name in names)
            kept[f"{which}_{split}"] = kept_view(view_of(said, head, places(network, which), shown))
    return kept
