"""What the study of ResNet-56 trains on CIFAR-10, and what it measures on each run."""

from __future__ import annotations

from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.recipes import (
    CIFAR10,
    SGD,
    Crop,
    CrossEntropy,
    Flip,
    LabelSmoothing,
    PreActResNet,
    Recipe,
    Step,
)
from softtargets.runs import Run
from softtargets.studies.study import Settings, Trial

ALPHAS = (0.0, 0.1)
KEEP = ("test",)

MODEL = PreActResNet(depth=56, stages=(32, 64, 128), variant="tensor2tensor")
NET = Recipe(
    data=CIFAR10(standardise="image"),
    model=MODEL,
    augmentation=(Crop(padding=4), Flip()),
    optimiser=SGD(lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-4),
    schedule=Step(milestones=(102, 153), factor=0.1, unit="epoch"),
    epochs=205,
    batch=128,
    clip=1.0,
    multiplier=3.0,
    precision="bf16",
)


def trials(settings: Settings) -> list[Trial]:
    """Without and with smoothing, for each seed."""
    net = _dropping(settings.base(NET), settings)
    return [
        Trial(
            net.replace(
                {"regulariser": LabelSmoothing(alpha=alpha) if alpha else CrossEntropy(), "seed": seed}
            ),
            {"alpha": alpha},
        )
        for seed in range(settings.seeds)
        for alpha in ALPHAS
    ]


def _dropping(net: Recipe, settings: Settings) -> Recipe:
    """With rates that drop at a half and three quarters of the training, however long a user makes it."""
    if net.epochs is None or any(key.split(".")[0] == "schedule" for key in settings.changes):
        return net
    drops = {max(share * net.epochs // 4, 1) for share in (2, 3)}
    return net.replace({"schedule.milestones": tuple(sorted(drops))})


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy after the last epoch, likelihood and calibration, all on the test images."""
    test = run.predictions("test")
    return {
        "accuracy": float(run.summary["test_accuracy"]),
        "nll": float(F.cross_entropy(test.logits, test.labels)),
        "ece": expected_calibration_error(test.logits.softmax(-1), test.labels),
    }
