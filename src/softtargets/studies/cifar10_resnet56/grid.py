"""What the study of ResNet-56 trains on CIFAR-10, and what it measures on each run."""

from __future__ import annotations

from softtargets.runs import Run
from softtargets.studies.grids import each_seed, smoothing, stretched
from softtargets.studies.measures import accuracy, likelihood_and_calibration
from softtargets.studies.protocols import RESNET56, RESNET56_CIFAR10_ALL
from softtargets.studies.study import Settings, Trial

ALPHAS = (0.0, 0.1)

MODEL, NET = RESNET56, RESNET56_CIFAR10_ALL


def trials(settings: Settings) -> list[Trial]:
    """Without and with smoothing, for each seed; rates drop at a half and three quarters of the training."""
    net = stretched(settings.base(NET), settings, 1 / 2, 3 / 4)
    return each_seed(
        settings, net, [({"regulariser": smoothing(alpha)}, {"alpha": alpha}) for alpha in ALPHAS]
    )


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy after the last epoch, likelihood and calibration, all on the test images."""
    test = run.predictions("test")
    return {
        "accuracy": accuracy(test),
        **likelihood_and_calibration(test.logits, test.labels),
    }
