"""The nets a recipe can name; `softtargets.models` builds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from softtargets.recipes.schema import Count, Part, ProperFraction


@dataclass(frozen=True, kw_only=True)
class Model(Part):
    """The slot for a net."""


@dataclass(frozen=True, kw_only=True)
class MLP(Model):
    """Fully connected, ReLU; the papers' MNIST nets are two hidden layers of 1200 (teacher) or 800."""

    name: ClassVar[str] = "mlp"
    hidden: tuple[Count, ...] = (1200, 1200)
    dropout: ProperFraction = 0.0


@dataclass(frozen=True, kw_only=True)
class CNN(Model):
    """Two 3 x 3 convolutions, each followed by 2 x 2 max pooling, and one hidden layer."""

    name: ClassVar[str] = "cnn"
    channels: tuple[Count, Count] = (32, 64)
    hidden: Count = 128
    dropout: ProperFraction = 0.0
