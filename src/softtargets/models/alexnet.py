"""The small "AlexNet" of TensorFlow's CIFAR-10 tutorial."""

from __future__ import annotations

from math import ceil
from typing import Literal

from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.classifier import Classifier, check_size
from softtargets.models.pooling import SameMaxPool

# What the replication's code starts the last layer with.
EQUAL = -1 / 96


class AlexNet(Classifier):
    """Two 5 x 5 convolutions with local response normalisation, two hidden layers of 384 and 192.

    What Müller et al. 2019 (appendix A.1) call AlexNet and train on CIFAR-10: the net of TensorFlow's deep_cnn
    tutorial, ``cifar10.py`` in tutorials/image/cifar10 of tensorflow/models, of which we keep every choice:

    - conv1 and conv2 have 64 channels and "SAME" padding; conv1 is pooled and then normalised, conv2 normalised and
      then pooled; pooling is 3 x 3 with stride 2 and "SAME" padding (`SameMaxPool`);
    - weights from normal distributions cut at two standard deviations, which are 0.05 (convolutions), 0.04 (local3,
      local4) and 1/192 (head); biases 0 in conv1 and the head, 0.1 in between.

    The tutorial trains on crops of 24 x 24, which leave 6 x 6 x 64 = 2304 inputs for local3. It decays the weights of
    local3 and local4 only; here they are the parameters ``local3.weight`` and ``local4.weight``.

    Two options are what the code of the 2023 replication made of it (ERRATA.md, R8 and R9). `lrn` multiplies the
    strength of the normalisation: there it comes to 1/8, in a window of 8 channels instead of 9, which stays 9 here.
    ``head="equal"`` starts every weight of the last layer at -1/96, as a cut at a = b = -1/96 leaves it.

    >>> import torch
    >>> net = AlexNet(shape=(3, 24, 24), classes=10)
    >>> net.local3.in_features, net.features(torch.zeros(5, 3, 24, 24)).shape
    (2304, torch.Size([5, 192]))
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        lrn: float = 1.0,
        head: Literal["random", "equal"] = "random",
    ) -> None:
        super().__init__()
        check_size(shape, 4, "two poolings")
        if head not in ("random", "equal"):
            raise ValueError(f"there is no start of the head {head!r}; allowed: random, equal")
        depth, height, width = shape
        self.conv1 = nn.Conv2d(depth, 64, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, kernel_size=5, padding=2)
        # Each pooling halves and rounds up; twice is a quarter, rounded up.
        self.local3 = nn.Linear(64 * ceil(height / 4) * ceil(width / 4), 384)
        self.local4 = nn.Linear(384, 192)
        self.head = nn.Linear(192, classes)
        self.norm, self.pool = LocalResponseNorm(lrn), SameMaxPool()
        layers: list[nn.Conv2d | nn.Linear] = [self.conv1, self.conv2, self.local3, self.local4, self.head]
        for layer, std, bias in zip(
            layers, (0.05, 0.05, 0.04, 0.04, 1 / 192), (0, 0.1, 0.1, 0.1, 0), strict=True
        ):
            nn.init.trunc_normal_(layer.weight, std=std, a=-2 * std, b=2 * std)
            assert layer.bias is not None
            nn.init.constant_(layer.bias, bias)
        if head == "equal":
            nn.init.constant_(self.head.weight, EQUAL)

    def features(self, images: Tensor) -> Tensor:
        """The second hidden layer."""
        # The tutorial has the activation before the pooling: the same numbers, and four times the work.
        maps = self.norm(functional.relu(self.pool(self.conv1(images))))
        maps = self.pool(self.norm(functional.relu(self.conv2(maps))))
        hidden = functional.relu(self.local3(maps.flatten(1)))
        return functional.relu(self.local4(hidden))


class LocalResponseNorm(nn.Module):
    """`local_response_norm` as a layer, with the tutorial's constants; `strength` multiplies its alpha."""

    radius, bias, beta = 4, 1.0, 0.75

    def __init__(self, strength: float = 1.0) -> None:
        super().__init__()
        self.alpha = strength * (0.001 / 9)

    def forward(self, maps: Tensor) -> Tensor:
        """Maps of the same shape."""
        return local_response_norm(maps, self.radius, self.bias, self.alpha, self.beta)


def local_response_norm(maps: Tensor, radius: int, bias: float, alpha: float, beta: float) -> Tensor:
    """x_c / (bias + alpha * sum over |d - c| <= radius of x_d^2)^beta, as ``tf.nn.lrn`` has it.

    Krizhevsky et al. 2012, section 3.3. torch's own version divides alpha by the number of channels in the window,
    TensorFlow's does not.

    >>> import torch
    >>> local_response_norm(torch.ones(1, 2, 1, 1), radius=1, bias=1.0, alpha=0.5, beta=1.0).flatten()
    tensor([0.5000, 0.5000])
    """
    # One row per channel: a window of channels is then a window of rows, and sums come from one pooling.
    squares = maps.square().flatten(2)
    window = (2 * radius + 1, 1)
    sums = functional.avg_pool2d(squares, window, stride=1, padding=(radius, 0), divisor_override=1)
    return maps * (bias + alpha * sums.reshape(maps.shape)).pow(-beta)
