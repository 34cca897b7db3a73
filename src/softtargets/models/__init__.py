"""Nets: one net, one file. All are `Classifier`s: `features`, `head`, `templates`."""

from softtargets.models.classifier import Classifier
from softtargets.models.cnn import CNN
from softtargets.models.mlp import MLP

# The names by which recipes call them. Each takes (shape, classes, **options of the recipe's model).
MODELS: dict[str, type[Classifier]] = {"mlp": MLP, "cnn": CNN}

__all__ = ["CNN", "MLP", "MODELS", "Classifier"]
