"""Nets: one net, one file. All are `Classifier`s: `features`, `head`, `templates`."""

from softtargets.models.alexnet import AlexNet
from softtargets.models.attention import known_attention
from softtargets.models.classifier import Classifier
from softtargets.models.cnn import CNN
from softtargets.models.dropout import Dropout
from softtargets.models.embedding import sinusoids
from softtargets.models.evaluating import evaluating
from softtargets.models.inception_v4 import InceptionV4
from softtargets.models.mlp import MLP
from softtargets.models.mobilenet_v2 import MobileNetV2
from softtargets.models.own import Own, own_class, source_digest
from softtargets.models.preact_resnet import PreActResNet
from softtargets.models.resnet import ResNet
from softtargets.models.resnet18 import ResNet18
from softtargets.models.resnext29 import ResNeXt29
from softtargets.models.timm import Timm
from softtargets.models.transformer import TRANSFORMER_SIZES, Cache, Memory, Transformer

# The names by which recipes call them. Each takes (shape, classes, **options of the recipe's model); what is for text
# takes (vocabulary, **options).
MODELS: dict[str, type[Classifier]] = {
    "mlp": MLP,
    "cnn": CNN,
    "alexnet": AlexNet,
    "preact_resnet": PreActResNet,
    "resnet18": ResNet18,
    "resnet": ResNet,
    "inception_v4": InceptionV4,
    "mobilenet_v2": MobileNetV2,
    "resnext29": ResNeXt29,
    "timm": Timm,
    "own": Own,
    "transformer": Transformer,
}

__all__ = [
    "CNN",
    "MLP",
    "MODELS",
    "TRANSFORMER_SIZES",
    "AlexNet",
    "Cache",
    "Classifier",
    "Dropout",
    "InceptionV4",
    "Memory",
    "MobileNetV2",
    "Own",
    "PreActResNet",
    "ResNeXt29",
    "ResNet",
    "ResNet18",
    "Timm",
    "Transformer",
    "evaluating",
    "known_attention",
    "own_class",
    "sinusoids",
    "source_digest",
]
