from __future__ import annotations

import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from softtargets.exceptions import SofttargetsError
from softtargets.models import Timm

from .looking import check_stack


class Head(nn.Module):
    """As in many of timm's nets, the classifier is a part of a part."""

    def __init__(self, width, classes, linear=True):
        super().__init__()
        self.fc = nn.Linear(width, classes) if linear else nn.Conv2d(width, classes, 1)

    def forward(self, maps, pre_logits=False):
        pooled = maps.mean((2, 3))
        return pooled if pre_logits else self.fc(pooled)


class Net(nn.Module):
    """What we ask of a net of timm, and no more."""

    def __init__(self, width, num_classes, in_chans, linear=True, **cfg):
        super().__init__()
        self.conv = nn.Conv2d(in_chans, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.head = Head(width, num_classes, linear)
        self.pretrained_cfg = {"input_size": (3, 224, 224), "fixed_input_size": False} | cfg

    def forward_features(self, images):
        return self.norm(self.conv(images)).relu()

    def forward_head(self, maps, pre_logits=False):
        return self.head(maps, pre_logits=pre_logits)

    def forward(self, images):
        return self.forward_head(self.forward_features(images))

    def get_classifier(self):
        return self.head.fc


NETS = {
    "resnet18": {"width": 6},
    "resnet50": {"width": 9},
    "vit_tiny": {"width": 6, "fixed_input_size": True},
    "convnet": {"width": 6, "linear": False},
}


@pytest.fixture
def timm(monkeypatch):
    """A timm of ours, which remembers what it was asked for."""
    module = ModuleType("timm")
    module.asked = []

    def create_model(name, pretrained=False, **options):
        module.asked.append((name, pretrained))
        architecture, _, tag = name.partition(".")
        if tag not in ("", "a1_in1k"):
            raise RuntimeError(f"Invalid pretrained tag ({tag}) for {architecture}.")
        return Net(**NETS[architecture], **options)

    module.create_model = create_model
    module.is_model = lambda name: name.partition(".")[0] in NETS
    module.list_models = lambda: sorted(NETS)
    monkeypatch.setitem(sys.modules, "timm", module)
    return module


def test_the_net_is_timms_in_two_halves(timm):
    torch.manual_seed(0)
    net = Timm((2, 8, 8), 5, net="resnet50").eval()
    torch.manual_seed(0)
    original = timm.create_model("resnet50", num_classes=5, in_chans=2).eval()
    images = torch.randn(3, 2, 8, 8)
    assert torch.equal(net(images), original(images))
    assert torch.equal(net.features(images), original.forward_features(images).mean((2, 3)))
    assert torch.equal(net.templates, original.head.fc.weight)
    assert timm.asked[0] == ("resnet50", False)


def test_the_classifier_has_one_name_and_is_stored_once(timm):
    net = Timm((3, 8, 8), 5, net="resnet18")
    assert [name for name in net.state_dict() if net.state_dict()[name].shape == (5, 6)] == ["head.weight"]
    assert len(net.state_dict()) == len({id(value) for value in net.state_dict(keep_vars=True).values()})
    net(torch.randn(4, 3, 8, 8)).square().sum().backward()
    assert net.head.weight.grad.abs().sum() > 0


def test_pretrained_weights_and_tags_are_timms_business(timm):
    Timm((3, 8, 8), 5, net="resnet18.a1_in1k", pretrained=True)
    assert timm.asked == [("resnet18.a1_in1k", True)]
    with pytest.raises(ValueError, match=r"timm cannot make 'resnet18.b2': Invalid pretrained tag \(b2\)"):
        Timm((3, 8, 8), 5, net="resnet18.b2")


def test_a_stack_of_them_works(timm):
    torch.manual_seed(0)
    check_stack([Timm((3, 8, 8), 5, net="resnet18") for _ in range(3)], (3, 8, 8))


def test_an_unknown_net_is_refused_with_the_nearest_ones(timm):
    with pytest.raises(
        ValueError, match=r"timm has no network 'resnet5' \(did you mean 'resnet50' or 'resnet18'\?\)"
    ):
        Timm((3, 8, 8), 5, net="resnet5")
    with pytest.raises(
        ValueError, match=r"^timm has no network 'zzz'; timm.list_models\(\) names all it has$"
    ):
        Timm((3, 8, 8), 5, net="zzz")


def test_a_net_for_images_of_one_size_refuses_others(timm):
    with pytest.raises(ValueError, match="timm's 'vit_tiny' only takes images of 224 x 224, not of 32 x 32"):
        Timm((3, 32, 32), 5, net="vit_tiny")
    Timm((3, 224, 224), 5, net="vit_tiny")


def test_a_net_without_templates_is_refused(timm):
    with pytest.raises(
        ValueError, match="the classifier of timm's 'convnet' is a Conv2d, not a linear layer"
    ):
        Timm((3, 8, 8), 5, net="convnet")


def test_without_timm_the_way_to_get_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(SofttargetsError, match=r"pip install timm"):
        Timm((3, 8, 8), 5, net="resnet18")


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("resnet18", (3, 64, 64)),
        ("mobilenetv3_small_100", (1, 64, 64)),
        ("vit_tiny_patch16_224", (3, 224, 224)),
    ],
)
def test_nets_of_the_real_timm(name, shape):
    real = pytest.importorskip("timm")
    torch.manual_seed(0)
    net = Timm(shape, 7, net=name).cuda().eval()
    torch.manual_seed(0)
    original = real.create_model(name, num_classes=7, in_chans=shape[0]).cuda().eval()
    images = torch.randn(2, *shape, device="cuda")
    with torch.no_grad():
        torch.testing.assert_close(net(images), original(images))
        assert net.features(images).shape == (2, net.head.in_features)
    assert "head.weight" in net.state_dict()


@pytest.mark.cuda
def test_the_real_timm_refuses_like_ours():
    pytest.importorskip("timm")
    with pytest.raises(ValueError, match=r"timm has no network 'resnet5'.*did you mean"):
        Timm((3, 64, 64), 7, net="resnet5")
    with pytest.raises(ValueError, match="takes images of 224 x 224 only"):
        Timm((3, 32, 32), 7, net="vit_tiny_patch16_224")
    with pytest.raises(ValueError, match=r"timm cannot make 'resnet18\.zzz'"):
        Timm((3, 64, 64), 7, net="resnet18.zzz")
