"""What a recipe can train on. Each name is also the name `softtargets data` knows the set by."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, ClassVar, Literal

from softtargets.recipes.schema import Count, Index, Part

__all__ = [
    "CIFAR10",
    "CIFAR100",
    "CUB200",
    "EMNIST",
    "MNIST",
    "Dataset",
    "Digits",
    "FashionMNIST",
    "ImageDataset",
    "ImageNet",
    "TinyImageNet",
]


class Dataset(Part):
    """Fields that every dataset has.

    validation:  how many examples at the end of the training set are held out as the ``validation`` split.
    limit:       train on the first so many of the rest; nothing means all of them.

    A kind of dataset says which task of the engine it is for, and in which unit its work is counted. Neither is part
    of a recipe's identity.
    """

    task: ClassVar[str]
    unit: ClassVar[str]
    training_examples: ClassVar[int | None] = (
        None  # before validation and limit; None where it is not always the same
    )

    validation: Index = 0
    limit: Count | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the splits that there are."""
        return ("train", "validation", "test") if self.validation else ("train", "test")

    def reader_options(self) -> dict[str, Any]:
        """The fields that only this dataset has: what its reader must be told."""
        above = [kind for kind in type(self).__mro__[1:] if issubclass(kind, Dataset)]
        shared = {field.name for kind in above for field in fields(kind)}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in shared}


class ImageDataset(Dataset):
    """Labelled images.

    standardise: ``unit`` divides by 255; ``channel`` also subtracts the training mean and divides by the
                 training deviation of each channel; ``image`` does so with each image's own.
    """

    task: ClassVar[str] = "images"
    unit: ClassVar[str] = "images"

    standardise: Literal["unit", "channel", "image"] = "unit"


class Digits(ImageDataset, name="digits"):
    """scikit-learn's handwritten digits: 1,797 grey images of 8 x 8, 10 classes, no download."""

    training_examples: ClassVar[int | None] = 1_297


class MNIST(ImageDataset, name="mnist"):
    """Handwritten digits: 60,000 training and 10,000 test images, 28 x 28 grey, 10 classes."""

    training_examples: ClassVar[int | None] = 60_000


class FashionMNIST(ImageDataset, name="fashion-mnist"):
    """Articles of clothing: 60,000 training and 10,000 test images, 28 x 28 grey, 10 classes."""

    training_examples: ClassVar[int | None] = 60_000


class EMNIST(ImageDataset, name="emnist"):
    """Handwritten digits and letters, 28 x 28 grey. The replication uses the balanced `part`, 47 classes."""

    part: Literal["byclass", "bymerge", "balanced", "letters", "digits", "mnist"] = "balanced"


class CIFAR10(ImageDataset, name="cifar10"):
    """50,000 training and 10,000 test colour images, 32 x 32, 10 classes. `labels` may be CIFAR-10N's human ones."""

    training_examples: ClassVar[int | None] = 50_000

    labels: Literal["clean", "aggregate", "worse", "random1", "random2", "random3"] = "clean"


class CIFAR100(ImageDataset, name="cifar100"):
    """50,000 training and 10,000 test colour images, 32 x 32, 100 fine or 20 coarse classes."""

    training_examples: ClassVar[int | None] = 50_000

    labels: Literal["clean", "noisy"] = "clean"
    coarse: bool = False


class CUB200(ImageDataset, name="cub200"):
    """Caltech-UCSD Birds 200-2011: 5,994 training and 5,794 test photographs, 200 classes, cropped to `size`."""

    training_examples: ClassVar[int | None] = 5_994

    size: Count = 224


class TinyImageNet(ImageDataset, name="tiny-imagenet"):
    """Tiny ImageNet: 100,000 training images, 64 x 64, 200 classes; its 10,000 validation images are our test set."""

    training_examples: ClassVar[int | None] = 100_000

    size: Count = 64


class ImageNet(ImageDataset, name="imagenet"):
    """ImageNet (ILSVRC 2012), resized and cropped to `size`; its validation set is our test set."""

    size: Count = 224
