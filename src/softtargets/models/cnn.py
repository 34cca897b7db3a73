"""Small convolutional net."""

from __future__ import annotations

from torch import Tensor, nn

from softtargets.models.classifier import Classifier


class CNN(Classifier):
    """Two 3 x 3 convolutions with ReLU and 2 x 2 max pooling, then one hidden layer.

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
        depth, height, width = shape
        if min(height, width) < 4:
            raise ValueError(f"images of {height} x {width} are too small: two poolings need at least 4 x 4")
        first, second = channels
        self.body = nn.Sequential(
            nn.Conv2d(depth, first, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, kernel_size=3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(dropout),
            nn.Linear(second * (height // 4) * (width // 4), hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, classes)

    def features(self, images: Tensor) -> Tensor:
        """The hidden layer."""
        activations: Tensor = self.body(images)
        return activations
