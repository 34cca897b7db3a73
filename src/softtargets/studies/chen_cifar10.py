"""The theory of Chen et al. 2020 beside models on CIFAR-10: their figures 5 to 7.

What is trained: a tiny grid for a CPU, the paper's network and training for a GPU.
"""

from __future__ import annotations

from softtargets.recipes import CIFAR10, MLP, SGD, Linear, Recipe, ResNet18, Step
from softtargets.studies.chen_plane import Plane, Scope, plane_study

# The clean rates of figure 7.
TINY = Plane(rates=(0.5, 0.95), masses=(0.35, 0.65, 0.8, 0.9, 1.0))
# A part of the full one: the clean rates of figure 7 alone.
CORE = Plane(rates=(0.5, 0.95), masses=(0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0))
# 40 cells, with three seeds 120 runs of 5 million images; of the core 48.
FULL = Plane(rates=(0.5, 0.7, 0.85, 0.95, 1.0), masses=(0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0))

QUICK = Recipe(
    data=CIFAR10(limit=1000, standardise="channel"),
    model=MLP(hidden=(64,)),
    optimiser=SGD(lr=0.02, momentum=0.9),
    schedule=Linear(),
    epochs=30,
    batch=32,
)
# Appendix C: "ResNet18 (1,000,000 parameters)", which a width of 19 comes nearest to.
PAPER = Recipe(
    data=CIFAR10(standardise="channel"),
    model=ResNet18(width=19),
    optimiser=SGD(lr=0.01, momentum=0.9),
    schedule=Step(milestones=(50, 75), factor=0.5),
    epochs=100,
    batch=128,
    precision="bf16",
)

AS_PRINTED = (
    "The paper says “ResNet18 (1,000,000 parameters)” and not how it was made smaller; ours has stages of 19, 38, 76 "
    "and 152 channels. Mini-batches, learning rate, its halving, momentum and epochs are the paper's. It mentions no "
    "augmentation, and here is none; images are standardised by channel, and matrix products and convolutions are "
    "computed in bf16.",
)

SCOPE = Scope(
    dataset="CIFAR-10",
    grids={"tiny": (TINY, QUICK), "core": (CORE, PAPER), "full": (FULL, PAPER)},
    apart={
        "tiny": (
            "This is the tiny size, for a CPU. It trains a fully connected network with one hidden layer on the first "
            "1,000 images; the paper trains a ResNet-18 of a million weights on all 50,000 for 100 epochs. Such a "
            "network misclassifies most test images whatever its labels, and the theory, which knows no error but that "
            "of the labels, cannot hold for it. It shows how the comparison is made and what it looks like where the "
            "theory's assumption fails; it neither confirms nor refutes the paper. With --set size=full the paper's "
            "training is done.",
        ),
        "core": (
            "This is a part of the full size, the two clean rates of figure 7. All that is said of the plane is said "
            "of these.",
            *AS_PRINTED,
        ),
        "full": (*AS_PRINTED, "The clean rates of figure 7 are among ours."),
    },
    losses_only=True,
)

study = plane_study(
    SCOPE,
    name="chen-cifar10",
    title="Does the theory of optimal smoothing hold on CIFAR-10?",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) predict the test loss of a network from two numbers: how many of its "
        "training labels are right, and how much they are smoothed. Here both are varied on CIFAR-10, and the test "
        "loss is measured beside what was predicted, against clean labels and against corrupted ones."
    ),
)
