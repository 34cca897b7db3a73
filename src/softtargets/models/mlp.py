"""Fully connected net."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from torch import Tensor, nn

from softtargets.models.classifier import Classifier
from softtargets.models.dropout import Dropout


class MLP(Classifier):
    """Hidden layers with ReLU and dropout. 784-1200-1200-10 is the MNIST teacher of Hinton et al. 2015.

    The fully connected nets of Müller et al. 2019 (appendix A.5) are ``hidden=(1200, 1200)`` (teacher) and
    ``(800, 800)`` (student) with ``init_std=0.03``: every weight and bias drawn from N(0, init_std^2). The paper says
    "variance 0.03"; the code of the 2023 replication takes 0.03 as the standard deviation, and so do we: as a variance
    it would make the activations sqrt(1200 / 2 * 0.03), or four times, larger with every layer. None is torch's own
    initialisation. Müller et al. name no dropout; the replication uses 0.5 (section 2.2).

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
        init_std: float | None = None,
    ) -> None:
        super().__init__()
        widths = [prod(shape), *hidden]
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
            if dropout:
                layers.append(Dropout(dropout))
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(widths[-1], classes)
        if init_std is not None:
            for weight in self.parameters():
                nn.init.normal_(weight, std=init_std)
        self.number_dropouts()

    def features(self, images: Tensor) -> Tensor:
        """The last hidden layer."""
        activations: Tensor = self.body(images)
        return activations
