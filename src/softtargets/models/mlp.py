"""Fully connected net."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from torch import Tensor, nn

from softtargets.models.classifier import Classifier


class MLP(Classifier):
    """Hidden layers with ReLU and dropout. 784-1200-1200-10 is the MNIST teacher of Hinton et al. 2015.

    >>> import torch
    >>> net = MLP(shape=(1, 8, 8), classes=10, hidden=(64, 32))
    >>> net.features(torch.zeros(5, 1, 8, 8)).shape, net.templates.shape
    (torch.Size([5, 32]), torch.Size([10, 32]))
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        hidden: Sequence[int] = (1200, 1200),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [prod(shape), *hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
            if dropout:
                layers.append(nn.Dropout(dropout))
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(widths[-1], classes)

    def features(self, images: Tensor) -> Tensor:
        """The last hidden layer."""
        activations: Tensor = self.body(images)
        return activations
