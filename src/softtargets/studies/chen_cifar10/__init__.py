"""The theory of Chen et al. 2020 beside nets on CIFAR-10: their figures 5 to 7."""

from softtargets.studies.chen_cifar10.grid import SCOPE
from softtargets.studies.chen_plane import plane_study

study = plane_study(
    SCOPE,
    name="chen-cifar10",
    title="Does the theory of optimal smoothing hold on CIFAR-10?",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) predict the test loss of a net from two numbers: how many of its training "
        "labels are right, and how much they are smoothed. Here both are varied on CIFAR-10, and the test loss is "
        "measured beside what was predicted, against clean labels and against corrupted ones."
    ),
)
