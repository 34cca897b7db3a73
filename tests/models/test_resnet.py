from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import ResNet

from .looking import check_stack

# He et al. 2016, and the counts that torchvision's nets have with 1000 classes.
PARAMETERS = {18: 11_689_512, 34: 21_797_672, 50: 25_557_032, 101: 44_549_160, 152: 60_192_808}


@pytest.mark.parametrize("depth", PARAMETERS)
def test_it_has_the_layers_and_the_parameters_of_its_name(depth):
    with torch.device("meta"):
        net = ResNet((3, 224, 224), 1000, depth)
    assert sum(weight.numel() for weight in net.parameters()) == PARAMETERS[depth]
    shortcuts = sum(
        "shortcut" in name for name, module in net.named_modules() if isinstance(module, nn.Conv2d)
    )
    layers = sum(isinstance(module, nn.Conv2d) for module in net.modules()) - shortcuts + 1
    assert (layers, shortcuts) == (depth, 4 if depth >= 50 else 3)


@pytest.mark.parametrize(("depth", "width"), [(18, 128), (50, 512)])
def test_maps_are_halved_five_times(depth, width):
    net = ResNet((3, 64, 64), 7, depth, width=16)
    assert net.stem(torch.zeros(1, 3, 64, 64)).shape == (1, 16, 16, 16)
    assert net.body(net.stem(torch.zeros(1, 3, 64, 64))).shape == (1, width, 2, 2)
    assert net(torch.zeros(2, 3, 64, 64)).shape == (2, 7)


def test_a_bottleneck_halves_its_maps_in_the_middle():
    """As in torchvision; He's own code does so in the first convolution."""
    net = ResNet((3, 64, 64), 7, 50, width=4)
    strides = [(m.conv1.stride, m.conv2.stride, m.conv3.stride) for m in net.body if m.conv2.stride != (1, 1)]
    assert strides == [((1, 1), (2, 2), (1, 1))] * 3


def test_convolutions_start_by_fan_out():
    torch.manual_seed(0)
    net = ResNet((3, 64, 64), 7, 34)
    weight = net.body[5].conv2.weight
    assert abs(float(weight.std()) - (2 / (weight.shape[0] * 9)) ** 0.5) < 0.001


def test_too_small_images_and_unknown_depths_are_refused():
    with pytest.raises(ValueError, match="five halvings need at least 32 x 32"):
        ResNet((3, 31, 40), 10)
    with pytest.raises(ValueError, match="depth 20 is not one of 18, 34, 50, 101, 152"):
        ResNet((3, 64, 64), 10, 20)


def test_nets_of_a_stack_say_what_they_say_alone():
    check_stack([ResNet((3, 32, 32), 5, 18, width=4) for _ in range(3)], (3, 32, 32))
