"""The small "AlexNet" of TensorFlow's CIFAR-10 tutorial."""

from __future__ import annotations

from math import ceil

import torch
from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.arguments import check_size
from softtargets.models.classifier import Classifier


class AlexNet(Classifier):
    """Two 5 x 5 convolutions with local response normalisation, two hidden layers of 384 and 192.

    What Müller et al. 2019 (appendix A.1) call AlexNet and train on CIFAR-10: the net of TensorFlow's deep_cnn
    tutorial, ``cifar10.py`` in tutorials/image/cifar10 of tensorflow/models, of which we keep every choice:

    - conv1 and conv2 have 64 channels and "SAME" padding; conv1 is pooled and then normalised, conv2 normalised and
      then pooled; pooling is 3 x 3 with stride 2 and "SAME" padding (`same_max_pool`);
    - weights from normal distributions cut at two standard deviations, which are 0.05 (convolutions), 0.04 (local3,
      local4) and 1/192 (head); biases 0 in conv1 and the head, 0.1 in between.

    The tutorial trains on crops of 24 x 24, which leave 6 x 6 x 64 = 2304 inputs for local3. It decays the weights of
    local3 and local4 only; here they are the parameters ``local3.weight`` and ``local4.weight``.

    >>> net = AlexNet(shape=(3, 24, 24), classes=10)
    >>> net.local3.in_features, net.features(torch.zeros(5, 3, 24, 24)).shape
    (2304, torch.Size([5, 192]))
    """

    def __init__(self, shape: tuple[int, int, int], classes: int) -> None:
        super().__init__()
        check_size(shape, 4, "two poolings")
        depth, height, width = shape
        self.conv1 = nn.Conv2d(depth, 64, kernel_size=5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, kernel_size=5, padding=2)
        # Each pooling halves and rounds up; twice is a quarter, rounded up.
        self.local3 = nn.Linear(64 * ceil(height / 4) * ceil(width / 4), 384)
        self.local4 = nn.Linear(384, 192)
        self.head = nn.Linear(192, classes)
        _initialise(self.conv1, std=0.05, bias=0.0)
        _initialise(self.conv2, std=0.05, bias=0.1)
        _initialise(self.local3, std=0.04, bias=0.1)
        _initialise(self.local4, std=0.04, bias=0.1)
        _initialise(self.head, std=1 / 192, bias=0.0)

    def features(self, images: Tensor) -> Tensor:
        """The second hidden layer."""
        maps = local_response_norm(same_max_pool(functional.relu(self.conv1(images))))
        maps = same_max_pool(local_response_norm(functional.relu(self.conv2(maps))))
        hidden = functional.relu(self.local3(maps.flatten(1)))
        return functional.relu(self.local4(hidden))


def local_response_norm(
    maps: Tensor, radius: int = 4, bias: float = 1.0, alpha: float = 0.001 / 9, beta: float = 0.75
) -> Tensor:
    """x_c / (bias + alpha * sum over |d - c| <= radius of x_d^2)^beta, as ``tf.nn.lrn`` has it.

    Krizhevsky et al. 2012, section 3.3, with the tutorial's constants. torch's own version divides alpha by the
    number of channels in the window, TensorFlow's does not.

    >>> local_response_norm(torch.ones(1, 2, 1, 1), alpha=0.5, beta=1.0).flatten()
    tensor([0.5000, 0.5000])
    """
    # One row per channel: a window of channels is then a window of rows, and sums come from one pooling.
    squares = maps.square().flatten(2)
    window = (2 * radius + 1, 1)
    sums = functional.avg_pool2d(squares, window, stride=1, padding=(radius, 0), divisor_override=1)
    return maps * (bias + alpha * sums.reshape(maps.shape)).pow(-beta)


def same_max_pool(maps: Tensor) -> Tensor:
    """Maxima over 3 x 3 with stride 2 and TensorFlow's "SAME" padding: n pixels become ceil(n / 2).

    An odd number of pixels is padded by one on both sides, an even one only at its end, where torch's symmetric
    padding would shift every window by one pixel.

    >>> same_max_pool(torch.arange(4.0).repeat(1, 1, 4, 1))[0, 0, 0]
    tensor([2., 3.])
    """
    height, width = maps.shape[-2:]
    return functional.max_pool2d(
        functional.pad(maps, (width % 2, 1, height % 2, 1), value=-torch.inf), kernel_size=3, stride=2
    )


def _initialise(layer: nn.Conv2d | nn.Linear, std: float, bias: float) -> None:
    assert layer.bias is not None
    nn.init.trunc_normal_(layer.weight, std=std, a=-2 * std, b=2 * std)
    nn.init.constant_(layer.bias, bias)
