from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import InceptionV4


@pytest.fixture(scope="module")
def net():
    with torch.device("meta"):
        return InceptionV4((3, 299, 299), 1000)


def test_it_has_the_parameters_that_are_known(net):
    """Those of timm's ``inception_v4``, which is the one that was published."""
    assert sum(weight.numel() for weight in net.parameters()) == 42_679_816


def test_maps_have_the_sizes_of_the_papers_figure_9(net):
    maps, found = torch.zeros(1, 3, 299, 299, device="meta"), []
    for layer in net.stem:
        maps = layer(maps)
    found.append(tuple(maps.shape[1:]))
    for layer in net.body:
        maps = layer(maps)
        found.append(tuple(maps.shape[1:]))
    a, b, c = (384, 35, 35), (1024, 17, 17), (1536, 8, 8)
    assert found == [a] * 5 + [b] * 8 + [c] * 4


def test_it_is_149_convolutions_and_one_layer(net):
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 149
    assert all(module.bias is None for module in convolutions)
    assert {module.eps for module in net.modules() if isinstance(module, nn.BatchNorm2d)} == {1e-3}


def test_it_takes_photographs_from_75_pixels_on():
    net = InceptionV4((3, 75, 75), 4).eval()
    with torch.no_grad():
        assert net(torch.zeros(2, 3, 75, 75)).shape == (2, 4)
        assert net.features(torch.zeros(2, 3, 75, 80)).shape == (2, 1536)
    with pytest.raises(ValueError, match="need at least 75 x 75"):
        InceptionV4((3, 74, 90), 4)


def test_its_links_are_all_of_it(net):
    own = {id(weight) for link in net.links for weight in link.parameters()}
    assert own == {id(weight) for weight in net.parameters()}
