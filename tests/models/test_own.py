"""Networks of one's own: which layer is taken for the last, what is passed to the class, what is refused."""

import hashlib
import sys
import textwrap

import pytest
import torch
from torch import nn

from softtargets.models import Dropout, Own, own_class, source_digest

SOURCE = """
    import torch
    from torch import nn

    class Small(nn.Module):
        def __init__(self, channels, num_classes, width=8, dropout=0.0):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(channels, width, 3), nn.BatchNorm2d(width), nn.ReLU(), nn.Flatten(1))
            self.drop = nn.Dropout(dropout)
            self.mid = nn.LazyLinear(num_classes) if width == 99 else nn.Linear(width * 36, 12)
            self.fc = nn.Linear(12, num_classes)

        def forward(self, x):
            return self.fc(self.drop(self.mid(self.body(x)).relu()))

    class Halves(nn.Module):
        def __init__(self, shape, classes):
            super().__init__()
            self.inner = nn.Linear(shape[0] * shape[1] * shape[2], 7)
            self.head = nn.Linear(7, classes)

        def features(self, x):
            return self.inner(x.flatten(1)).tanh()

        def forward(self, x):
            return self.head(self.features(x)) * 1.0

    class Softened(Halves):
        def features(self, x):
            return x

        def forward(self, x):
            return self.head(self.inner(x.flatten(1))).log_softmax(1)

    class Twice(Halves):
        def forward(self, x):
            once = self.head(self.inner(x.flatten(1)))
            return self.head(self.inner(x.flatten(1)))

        def features(self, x):
            return x.flatten(1)[:, :7]

    class Wrong(Halves):
        def __init__(self, shape, classes):
            super().__init__(shape, classes + 1)

    class Failing(nn.Module):
        def __init__(self, depth):
            raise RuntimeError("no such depth")

    def function(classes):
        return 3
"""
SHAPE = (1, 8, 8)


@pytest.fixture(autouse=True)
def nets(tmp_path, monkeypatch):
    (tmp_path / "mynets.py").write_text(textwrap.dedent(SOURCE))
    (tmp_path / "broken.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    for name in ("mynets", "broken"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield tmp_path / "mynets.py"
    sys.modules.pop("mynets", None)


def built(name, classes=5, **options):
    net = f"mynets:{name}"
    return Own(SHAPE, classes, net, tuple(options.items()), source_digest(net))


def test_the_linear_layer_that_is_computed_last_is_the_head():
    torch.manual_seed(0)
    own = built("Small", width=4)
    torch.manual_seed(0)
    plain = own_class("mynets:Small")(1, 5, width=4)
    images = torch.randn(3, *SHAPE)
    assert torch.equal(own(images), plain(images))
    assert isinstance(own.head, nn.Linear)
    assert own.templates.shape == (5, 12)
    assert torch.equal(own.head(own.features(images)), own(images))
    assert sorted(own.state_dict())[:2] == ["head.bias", "head.weight"]
    assert own.training


def test_a_net_in_two_halves_is_taken_at_its_word():
    own = built("Halves")
    images = torch.randn(3, *SHAPE)
    assert own.features(images).shape == (3, 7)
    assert torch.equal(own(images), own.head(own.features(images)))


def test_its_trial_leaves_no_trace():
    own = built("Small")
    assert own.net.body[1].num_batches_tracked == 0
    assert torch.equal(own.net.body[1].running_mean, torch.zeros(8))


def test_its_dropout_draws_by_place():
    own = built("Small", dropout=0.5)
    assert isinstance(own.net.drop, Dropout)
    place = torch.tensor([3, 4, 0])
    own.draw_from(place)
    images = torch.randn(4, *SHAPE)
    own.net.body.eval()
    first = own(images)
    torch.manual_seed(99)
    assert torch.equal(own(images), first)


def test_it_is_built_without_content_too():
    with torch.device("meta"):
        own = built("Small")
    assert own.head.weight.is_meta


def test_the_digest_is_of_the_file_whatever_its_line_endings(nets):
    content = nets.read_bytes()
    found = source_digest("mynets:Small")
    assert found == hashlib.sha256(content).hexdigest()[:16]
    nets.write_bytes(content.replace(b"\n", b"\r\n"))
    assert source_digest("mynets:Small") == found
    nets.write_bytes(content + b"# another\n")
    with pytest.raises(
        ValueError,
        match=f"another version, {found}; to use this version, set model.digest: '{source_digest('mynets:Small')}'",
    ):
        Own(SHAPE, 5, "mynets:Small", (), found)
    with pytest.raises(ValueError, match="the recipe does not name a digest"):
        Own(SHAPE, 5, "mynets:Small")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Softened", {}, "does not compute its logits in a last linear layer"),
        ("Twice", {}, "does not compute its logits in a last linear layer"),
        ("Wrong", {}, r"returns \(2, 6\) for 2 images of 5 classes"),
        ("Failing", {"depth": 3}, r"mynets:Failing\(depth=3\) cannot be made: RuntimeError: no such depth"),
        ("Failing", {}, r"mynets:Failing\(\) cannot be made: TypeError"),
        ("function", {}, "makes a int, not a torch.nn.Module"),
        ("Nobody", {}, "has no class 'Nobody'; it has Failing, Halves, Small"),
    ],
)
def test_what_cannot_be_is_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        built(name, **options)


def test_modules_that_are_not_there_or_fail_are_named():
    with pytest.raises(ValueError, match="no Python file for the module 'nowhere'"):
        source_digest("nowhere:Net")
    with pytest.raises(ValueError, match="write it as module:Class"):
        source_digest("mynets.Small")
    with pytest.raises(ValueError, match="'broken' of 'broken:Net' cannot be imported: division by zero"):
        own_class("broken:Net")
    with pytest.raises(ValueError, match="fails on images of 3 x 4 x 4"):
        Own((3, 4, 4), 5, "mynets:Small", (("width", 4),), source_digest("mynets:Small"))
