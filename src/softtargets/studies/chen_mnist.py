"""The theory of Chen et al. 2020 beside models on MNIST: their figures 5 to 11.

What is trained: a small grid for a CPU, the paper's network and training for a GPU.
"""

from __future__ import annotations

from softtargets.recipes import CNN, MLP, MNIST, SGD, Linear, Recipe
from softtargets.studies.chen_plane import Plane, Scope, plane_study

# Clean rates of figure 7 among them; p from near 1/M to no smoothing.
SMALL = Plane(rates=(0.5, 0.7, 0.85, 0.95, 1.0), masses=(0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 1.0))
# The paper's steps are of 0.01 in one direction and 0.1 in the other, without saying which; finer near p = 1 here.
FULL = Plane(
    rates=(0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0),
    masses=(0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0),
)

# Few images and one hidden layer: a CPU needs ten seconds for such a net, and it comes near to learning them by heart.
QUICK = Recipe(
    data=MNIST(limit=2000),
    model=MLP(hidden=(128,)),
    optimiser=SGD(lr=0.1, momentum=0.9),
    schedule=Linear(),
    epochs=40,
    batch=32,
)
# Appendix C. In bf16 a GPU trains a hundred of these nets as one.
PAPER = Recipe(
    data=MNIST(),
    model=CNN(),
    optimiser=SGD(lr=0.01, momentum=0.9),
    epochs=100,
    batch=128,
    precision="bf16",
)

SCOPE = Scope(
    dataset="MNIST",
    grids={"small": (SMALL, QUICK), "full": (FULL, PAPER)},
    apart={
        "small": (
            "This is the small size, for a CPU. It trains a fully connected network with one hidden layer on the first "
            "2,000 digits, at a learning rate that falls from 0.1 to 0; the paper trains a convolutional network on "
            "all 60,000 for 100 epochs at 0.01. It shows how the theory is compared with networks; it neither confirms "
            "nor refutes the paper's figures. With --set size=full the paper's training is done, on a grid of 120 "
            "cells.",
            "With few images the network makes errors on the test set even where all labels are right. The theory "
            "knows no such error, so at high clean rates the measured loss lies above it.",
        ),
        "full": (
            "Appendix C names two convolutional and two linear layers; kernels, channels and the hidden width are "
            "ours. Mini-batches, learning rate, momentum and epochs are the paper's, images are between 0 and 1, and "
            "matrix products and convolutions are computed in bf16.",
        ),
    },
)

study = plane_study(
    SCOPE,
    name="chen-mnist",
    title="Does the theory of optimal smoothing hold on MNIST?",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) predict the test loss of a network from two numbers: how many of its "
        "training labels are right, and how much they are smoothed. Here both are varied on MNIST, and the test loss "
        "is measured beside what was predicted: against clean labels, against corrupted ones, at the end and with "
        "early stopping."
    ),
)
