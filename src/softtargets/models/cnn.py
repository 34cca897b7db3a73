"""Small convolutional net."""

from __future__ import annotations

from torch import Tensor, nn

from softtargets.models.classifier import Classifier, check_size
from softtargets.models.dropout import Dropout


class CNN(Classifier):
    """Two 3 x 3 convolutions with 2 x 2 max pooling and ReLU, then one hidden layer.

    Two convolutional and two linear layers are all that Chen et al. 2020 (appendix C) tell of the "custom CNN" of
    their MNIST experiments; kernels, channels, pooling and the hidden width are ours, so this stands for their net
    without being known to be it.

    >>> import torch
    >>> net = CNN(shape=(1, 28, 28), classes=10)
    >>> net.features(torch.zeros(5, 1, 28, 28)).shape
    torch.Size([5, 128])
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        channels: tuple[int, int] = (32, 64),
        hidden: int = 128,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_size(shape, 4, "two poolings")
        depth, height, width = shape
        first, second = channels
        self.body = nn.Sequential(
            # Activations of the maxima are the maxima of the activations, at a quarter of the work.
            nn.Conv2d(depth, first, kernel_size=3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(first, second, kernel_size=3, padding=1),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            Dropout(dropout),
            nn.Linear(second * (height // 4) * (width // 4), hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, classes)
        self.number_dropouts()

    def features(self, images: Tensor) -> Tensor:
        """The hidden layer."""
        activations: Tensor = self.body(images)
        return activations
