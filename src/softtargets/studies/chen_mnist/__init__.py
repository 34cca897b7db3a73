"""The theory of Chen et al. 2020 beside nets on MNIST: their figures 5 to 11."""

from softtargets.studies.chen_mnist.grid import SCOPE
from softtargets.studies.chen_plane import plane_study

study = plane_study(
    SCOPE,
    name="chen-mnist",
    title="Does the theory of optimal smoothing hold on MNIST?",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) predict the test loss of a net from two numbers: how many of its training "
        "labels are right, and how much they are smoothed. Here both are varied on MNIST, and the test loss is "
        "measured beside what was predicted: against clean labels, against corrupted ones, at the end and with early "
        "stopping."
    ),
)
