"""What is trained: one recipe per net, which our engine and the eager loop both follow. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, replace

from softtargets.recipes import (
    CIFAR10,
    CNN,
    MLP,
    MNIST,
    SGD,
    AlexNet,
    Crop,
    Digits,
    Flip,
    LabelSmoothing,
    Linear,
    PreActResNet,
    Recipe,
    ResNet18,
    Shift,
)

# Nobody waits for the end of a training whose speed is measured.
ENDLESS = 1_000_000
CLASSES = 10


@dataclass(frozen=True)
class TrainedNet:
    """A net with the augmentation and the optimiser it is trained with, on images of one shape."""

    title: str
    shape: tuple[int, int, int]
    recipe: Recipe


def _recipe(**parts: object) -> Recipe:
    # The rate is small since random labels are learnt: the speed is the same, and nothing diverges.
    shared = {"regulariser": LabelSmoothing(alpha=0.1), "epochs": ENDLESS}
    return Recipe(**shared | parts)  # type: ignore[arg-type]


_GREY, _COLOUR = (1, 28, 28), (3, 32, 32)
_PADDED = (Crop(padding=4), Flip())

# The nets of the papers' image experiments as these train them (Müller et al. 2019 and its replication of 2023).
TRAINED = {
    "fcn": TrainedNet(
        "FCN 784-1200-1200-10, 28 x 28",
        _GREY,
        _recipe(
            data=MNIST(),
            model=MLP(hidden=(1200, 1200), init_std=0.03),
            augmentation=(Shift(pixels=2),),
            optimiser=SGD(lr=0.01, momentum=0.9, dampening=0.9),
        ),
    ),
    "cnn": TrainedNet(
        "CNN, two convolutions, 28 x 28",
        _GREY,
        _recipe(data=MNIST(), model=CNN(), optimiser=SGD(lr=0.01, momentum=0.9)),
    ),
    "alexnet": TrainedNet(
        "AlexNet of the TensorFlow tutorial, 24 x 24",
        _COLOUR,
        _recipe(
            data=CIFAR10(standardise="image"),
            model=AlexNet(),
            augmentation=(Crop(padding=0, size=24), Flip()),
            optimiser=SGD(
                lr=0.01, weight_decay=0.004, decay_on=("local3.weight", "local4.weight"), decay_form="loss"
            ),
            multiplier=3.0,
        ),
    ),
    "resnet56": TrainedNet(
        "Pre-activation ResNet-56, 32 x 32",
        _COLOUR,
        _recipe(
            data=CIFAR10(standardise="channel"),
            model=PreActResNet(depth=56),
            augmentation=_PADDED,
            optimiser=SGD(lr=0.01, momentum=0.9, nesterov=True, weight_decay=1e-4),
            clip=1.0,
        ),
    ),
    "resnet18": TrainedNet(
        "ResNet-18 for CIFAR, 32 x 32",
        _COLOUR,
        _recipe(
            data=CIFAR10(standardise="channel"),
            model=ResNet18(),
            augmentation=_PADDED,
            optimiser=SGD(lr=0.01, momentum=0.9, weight_decay=5e-4),
        ),
    ),
}

# To compare accuracies: trainings that end, on data that is really there. The falling rate makes seeds agree better.
TRAININGS = {
    "digits": replace(
        TRAINED["fcn"].recipe,
        data=Digits(),
        model=MLP(hidden=(256, 256)),
        augmentation=(Shift(pixels=1),),
        optimiser=SGD(lr=0.1, momentum=0.9),
        schedule=Linear(),
        epochs=30,
        batch=64,
    ),
    "mnist": replace(
        TRAINED["fcn"].recipe,
        optimiser=SGD(lr=0.5, momentum=0.9, dampening=0.9),
        schedule=Linear(),
        epochs=10,
    ),
    "cifar10": replace(
        TRAINED["alexnet"].recipe,
        optimiser=replace(TRAINED["alexnet"].recipe.optimiser, lr=0.05),
        schedule=Linear(),
        epochs=20,
    ),
}
