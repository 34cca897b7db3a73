"""The networks a recipe can name; `softtargets.models` builds them."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, NonNegative, Part, Positive, ProperFraction, Scalar, Width

__all__ = [
    "CNN",
    "MLP",
    "AlexNet",
    "InceptionV4",
    "MobileNetV2",
    "Model",
    "Own",
    "PreActResNet",
    "ResNeXt29",
    "ResNet",
    "ResNet18",
    "Timm",
    "Transformer",
]


class Model(Part):
    """The slot for a network."""


class MLP(Model, name="mlp"):
    """A fully connected network with ReLU.

    The papers' networks for MNIST have two hidden layers of 1200 units (teacher) or 800 (student), and init_std 0.03.
    """

    hidden: tuple[Width, ...] = (1200, 1200)
    dropout: ProperFraction = 0.0
    init_std: Positive | None = None

    def check(self) -> None:
        """Thousands of layers take minutes to make and learn nothing."""
        if len(self.hidden) > 1000:
            raise RecipeError(f"{len(self.hidden)} layers are too many; give at most 1000", "hidden")
        if any(a * b >= 2**60 for a, b in pairwise(self.hidden)):
            raise RecipeError(
                "two neighbouring layers are so wide that the weights between them cannot be counted; make them "
                "smaller",
                "hidden",
            )


class CNN(Model, name="cnn"):
    """Two 3 x 3 convolutions, each followed by 2 x 2 max pooling, and one hidden layer."""

    channels: tuple[Width, Width] = (32, 64)
    hidden: Width = 128
    dropout: ProperFraction = 0.0


class AlexNet(Model, name="alexnet"):
    """The small AlexNet of TensorFlow's CIFAR-10 tutorial, made for crops of 24 x 24.

    `lrn` is how strong its local response normalisation is, compared with the tutorial's, and `head` how the weights of
    the last layer start. The replication's code comes to 1/8 and ``equal`` (ERRATA.md, R8 and R9).
    """

    lrn: NonNegative = 1.0
    head: Literal["random", "equal"] = "random"


class PreActResNet(Model, name="preact_resnet"):
    """Pre-activation ResNet of 6n + 2 layers; Müller et al. use stages 32, 64, 128 of variant tensor2tensor.

    `init` is how convolutions start: as the variant has it, or from N(0, 2 / fan_out), as in the replication's code.
    """

    depth: Count = 56
    stages: tuple[Width, Width, Width] = (16, 32, 64)
    stem_channels: Width = 16
    stem: Count = 3
    variant: Literal["he", "tensor2tensor"] = "he"
    init: Literal["variant", "fan_out"] = "variant"

    def check(self) -> None:
        """Refused here and not by the network alone, which may be built only after its teacher has been trained."""
        if self.depth < 8 or self.depth % 6 != 2:
            raise RecipeError(f"{self.depth} is not 6n + 2, such as 20, 32, 44 or 56", "depth")
        if self.stem % 2 == 0:
            raise RecipeError(
                f"{self.stem} is even; the kernel must be odd to have a middle, such as 3 or 7", "stem"
            )


class ResNet18(Model, name="resnet18"):
    """ResNet-18 for small images; width 19 gives about a million parameters."""

    width: Width = 64


class ResNet(Model, name="resnet"):
    """ResNet of 18, 34, 50, 101 or 152 layers for photographs, as torchvision's; made for 224 x 224."""

    depth: Count = 50
    width: Width = 64

    def check(self) -> None:
        """Refused here and not by the network alone, which may be built only after its teacher has been trained."""
        if self.depth not in (18, 34, 50, 101, 152):
            raise RecipeError(f"{self.depth} is not one of 18, 34, 50, 101, 152", "depth")


class InceptionV4(Model, name="inception_v4"):
    """Inception-v4 for photographs of at least 75 x 75, made for 299 x 299."""

    dropout: ProperFraction = 0.2


class MobileNetV2(Model, name="mobilenet_v2"):
    """MobileNetV2 for small images."""

    stem: Literal["1x1", "3x3"] = "1x1"


class ResNeXt29(Model, name="resnext29"):
    """ResNeXt-29 for small images, 8 x 64d by default."""

    cardinality: Width = 8
    base_width: Width = 64


class Timm(Model, name="timm", shorthand="net"):
    """Any network of timm: ``{name: timm, net: resnet50}``, or ``timm:resnet50`` for short."""

    net: str
    pretrained: bool = False

    def check(self) -> None:
        """A name is needed; whether timm knows it, only timm can say."""
        if not self.net:
            raise RecipeError("is empty; give the name of a network of timm, such as resnet50", "net")


class Own(Model, name="own", shorthand="net"):
    """A network of your own: ``{name: own, net: "module:Class"}``, or ``own:module:Class`` for short.

    The class is called with `options`, and with shape, channels and classes where its constructor names them; it gives
    logits by a linear layer that is computed last. `digest` says which version of its file it is, so that a run never
    stands for another: ``softtargets recipe model module:Class`` prints the part with it.
    """

    net: str
    options: tuple[tuple[str, Scalar], ...] = ()
    digest: str = ""

    def check(self) -> None:
        """A module and a class; whether they are there, only Python can say."""
        module, _, name = self.net.partition(":")
        if not name.isidentifier() or not all(part.isidentifier() for part in module.split(".")):
            raise RecipeError(f"{self.net!r} is not written as module:Class, such as mynets:SmallNet", "net")
        if any(not key.isidentifier() for key, _ in self.options):
            raise RecipeError("names of options must be valid names of Python arguments", "options")


class Transformer(Model, name="transformer"):
    """Encoder-decoder Transformer for translation; the vocabulary comes with the data.

    The replication has 3 + 3 layers, inner 512, dropout 0; LABO and fairseq on IWSLT inner 1024, 4 heads, dropout 0.3.
    `share` says which of the two embeddings and the last layer are one matrix, `longest` how many tokens fit.
    """

    width: Width = 512
    heads: Count = 8
    inner: Width = 2048
    encoder_layers: Count = 6
    decoder_layers: Count = 6
    dropout: ProperFraction = 0.1
    attention_dropout: ProperFraction = 0.0
    activation_dropout: ProperFraction = 0.0
    norm: Literal["post", "pre"] = "post"
    share: Literal["all", "decoder", "none"] = "all"
    longest: Count = 1024

    def check(self) -> None:
        """Heads divide the width among themselves, and positions have sines and cosines."""
        if self.width % self.heads or self.width % 2:
            raise RecipeError(f"{self.width} is not even and a multiple of the {self.heads} heads", "width")
