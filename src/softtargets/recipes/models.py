"""The nets a recipe can name; `softtargets.models` builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Part, Positive, ProperFraction


@dataclass(frozen=True, kw_only=True)
class Model(Part):
    """The slot for a net."""


@dataclass(frozen=True, kw_only=True)
class MLP(Model):
    """Fully connected, ReLU; the papers' MNIST nets are two hidden layers of 1200 (teacher) or 800, init_std 0.03."""

    name: ClassVar[str] = "mlp"
    hidden: tuple[Count, ...] = (1200, 1200)
    dropout: ProperFraction = 0.0
    init_std: Positive | None = None


@dataclass(frozen=True, kw_only=True)
class CNN(Model):
    """Two 3 x 3 convolutions, each followed by 2 x 2 max pooling, and one hidden layer."""

    name: ClassVar[str] = "cnn"
    channels: tuple[Count, Count] = (32, 64)
    hidden: Count = 128
    dropout: ProperFraction = 0.0


@dataclass(frozen=True, kw_only=True)
class AlexNet(Model):
    """The small AlexNet of TensorFlow's CIFAR-10 tutorial, made for crops of 24 x 24."""

    name: ClassVar[str] = "alexnet"


@dataclass(frozen=True, kw_only=True)
class PreActResNet(Model):
    """Pre-activation ResNet of 6n + 2 layers; Müller et al. use stages 32, 64, 128 of variant tensor2tensor."""

    name: ClassVar[str] = "preact_resnet"
    depth: Count = 56
    stages: tuple[Count, Count, Count] = (16, 32, 64)
    stem_channels: Count = 16
    stem: Count = 3
    variant: Literal["he", "tensor2tensor"] = "he"

    def check(self) -> None:
        """Refused here and not by the net alone, which may be built only after its teacher has been trained."""
        if self.depth < 8 or self.depth % 6 != 2:
            raise RecipeError(f"{self.depth} is not 6n + 2, such as 20, 32, 44 or 56", "depth")
        if self.stem % 2 == 0:
            raise RecipeError(f"{self.stem} is even; a kernel needs a middle, such as 3 or 7", "stem")


@dataclass(frozen=True, kw_only=True)
class ResNet18(Model):
    """ResNet-18 for small images; width 19 gives about a million parameters."""

    name: ClassVar[str] = "resnet18"
    width: Count = 64


@dataclass(frozen=True, kw_only=True)
class MobileNetV2(Model):
    """MobileNetV2 for small images."""

    name: ClassVar[str] = "mobilenet_v2"
    stem: Literal["1x1", "3x3"] = "1x1"


@dataclass(frozen=True, kw_only=True)
class ResNeXt29(Model):
    """ResNeXt-29 for small images, 8 x 64d unless told otherwise."""

    name: ClassVar[str] = "resnext29"
    cardinality: Count = 8
    base_width: Count = 64


@dataclass(frozen=True, kw_only=True)
class Timm(Model):
    """Any net of timm: ``{name: timm, net: resnet50}``, or ``timm:resnet50`` for short."""

    name: ClassVar[str] = "timm"
    shorthand: ClassVar[str] = "net"
    net: str
    pretrained: bool = False

    def check(self) -> None:
        """A name is needed; whether timm knows it, only timm can say."""
        if not self.net:
            raise RecipeError("is empty; give the name of a net of timm, such as resnet50", "net")
