from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.func import stack_module_state

from softtargets.models import CNN, MLP, AlexNet, MobileNetV2, PreActResNet, ResNet18
from softtargets.training import nets
from softtargets.training.nets import Forward
from softtargets.training.recording import compiling_as_often_as_needed

SHAPE = (3, 8, 8)
SMALL = {"stages": (2, 4, 6), "stem_channels": 2}
NETS = {
    "mlp": lambda: MLP(SHAPE, 7, hidden=(9,)),
    "cnn": lambda: CNN(SHAPE, 7, channels=(3, 4), hidden=9),
    "alexnet": lambda: AlexNet(SHAPE, 7),
    # So deep that the names of blocks begin alike: body.1 and body.10.
    "he": lambda: PreActResNet(SHAPE, 7, depth=26, **SMALL),
    "tensor2tensor": lambda: PreActResNet(SHAPE, 7, depth=8, variant="tensor2tensor", **SMALL),
    "resnet18": lambda: ResNet18(SHAPE, 7, width=4),
    "mobilenet_v2": lambda: MobileNetV2(SHAPE, 7),
}


class Compiled:
    """Stands for torch.compile: notes whom it was given and who is called, and compiles nothing."""

    def __init__(self):
        self.given, self.called = [], []

    def __call__(self, function, **options):
        self.given.append(function)

        def call(*values):
            self.called.append(function)
            return function(*values)

        return call


@pytest.fixture
def compiled(monkeypatch):
    pytest.importorskip("triton")  # for the kernels, though no layer uses them without autocast
    noting = Compiled()
    monkeypatch.setattr(torch, "compile", noting)
    return noting


def batches_of(size):
    """Worth compiling: inputs of so many images."""
    return lambda shape: shape[0] == size


def trained(net, images):
    """The net after a step of its batch norms, so that its buffers are its own."""
    net.train()(images)
    return net


def weights(net):
    return dict(net.named_parameters()), {name: value.clone() for name, value in net.named_buffers()}


def check_same(forward, models, images, training, exactly):
    """Logits, gradients and buffers are those of the nets; `models` in a stack if there are several."""
    stacked = len(models) > 1
    parameters, buffers = stack_module_state(models) if stacked else weights(models[0])
    logits = forward(parameters, buffers, (images if stacked else images[0],), training, shared=not stacked)
    gradients = torch.autograd.grad(logits.square().sum(), list(parameters.values()))
    for run, model in enumerate(models):
        alone = deepcopy(model).train(training)
        wanted = alone(images[run])
        own = torch.autograd.grad(wanted.square().sum(), list(alone.parameters()))
        found = logits[run] if stacked else logits
        if exactly:
            assert torch.equal(found, wanted)
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-4)
        scale = max(each.abs().max().item() for each in own)
        for one, other in zip(gradients, own, strict=True):
            assert ((one[run] if stacked else one) - other).abs().max() <= 1e-4 * scale
        for name, value in alone.named_buffers():
            kept = buffers[name][run] if stacked else buffers[name]
            torch.testing.assert_close(kept, value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_a_net_as_it_is(name, training):
    torch.manual_seed(0)
    net, other = (trained(NETS[name](), torch.randn(4, *SHAPE)) for _ in range(2))
    # The skeleton is another net's: it lends its shape and nothing else.
    check_same(Forward(other, stacked=False), [net], torch.randn(1, 4, *SHAPE), training, exactly=True)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", NETS)
def test_links_one_after_another_are_the_net(name, training, compiled):
    """As a smaller batch is computed, and whatever is compiled."""
    torch.manual_seed(0)
    net, other = (trained(NETS[name](), torch.randn(4, *SHAPE)) for _ in range(2))
    forward = Forward(other, stacked=False, worth=batches_of(5))
    check_same(forward, [net], torch.randn(1, 4, *SHAPE), training, exactly=True)
    assert bool(compiled.called) != training


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", [name for name in NETS if name != "mobilenet_v2"])
def test_links_of_a_stack_are_those_of_its_nets(name, training, compiled):
    """But for the net whose last maps have one place: of four numbers, batch norm makes too much of rounding."""
    torch.manual_seed(0)
    models = [trained(NETS[name](), torch.randn(4, *SHAPE)) for _ in range(3)]
    forward = Forward(models[0], stacked=True, worth=batches_of(5))
    check_same(forward, models, torch.randn(3, 4, *SHAPE), training, exactly=False)


@pytest.mark.parametrize("name", ["cnn", "he"])
@pytest.mark.parametrize("batch", [None, 4])
def test_a_stack_may_look_at_the_same_images(name, batch, compiled):
    torch.manual_seed(0)
    models = [trained(NETS[name](), torch.randn(4, *SHAPE)) for _ in range(2)]
    images = torch.randn(5, *SHAPE)
    with torch.no_grad():
        logits = Forward(models[0], True, batch and batches_of(batch))(
            *stack_module_state(models), (images,), False, shared=True
        )
        assert logits.shape == (2, 5, 7)
        for found, model in zip(logits, models, strict=True):
            torch.testing.assert_close(found, model.eval()(images), rtol=1e-3, atol=1e-4)


def test_the_net_that_lends_its_shape_keeps_its_weights_buffers_and_layers(compiled):
    net = trained(NETS["he"](), torch.randn(4, *SHAPE))
    before, kinds = deepcopy(net.state_dict()), [type(module) for module in net.modules()]
    forward = Forward(net, stacked=True, worth=batches_of(4))
    forward(
        *stack_module_state([NETS["he"](), NETS["he"]()]), (torch.randn(2, 4, *SHAPE),), True, shared=False
    )
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert [type(module) for module in net.modules()] == kinds


# --- what is compiled, and when ---


def kinds_of(model, stacked=False):
    forward = Forward(model, stacked, worth=batches_of(4))
    return [link for *_, link in forward._links]


@pytest.mark.parametrize("variant", ["he", "tensor2tensor"])
def test_links_that_are_alike_are_compiled_once(variant, compiled):
    """Stem, end, mean and head; the first block of each stage, and all others of it."""
    for depth in (20, 32):
        links = kinds_of(PreActResNet(SHAPE, 7, depth=depth, variant=variant, **SMALL))
        assert len(links) == (depth - 2) // 2 + 4
        assert len(set(links)) == 4 + 3 * 2


@pytest.mark.parametrize("stacked", [True, False])
def test_what_is_alike_is_still_alike_with_kernels(stacked, compiled):
    """But for the last block of a stage, if those before it hand on sums of their results to their like."""
    links = kinds_of(PreActResNet(SHAPE, 7, depth=26), stacked)
    last = (2, 6, 10) if stacked else (4, 8, 12)
    expected = [0, 1, 2, 2, last[0], 5, 6, 6, last[1], 9, 10, 10, last[2], 13, 14, 15]
    assert [links.index(link) for link in links] == expected


def test_basic_blocks_are_alike_too_and_pass_on_what_the_next_one_asks_for(compiled, monkeypatch):
    from softtargets.models.kernels import basic_blocks

    net = ResNet18(SHAPE, 7, width=16)
    forward = Forward(net, stacked=False, worth=batches_of(4))
    links = [link for *_, link in forward._links]
    assert [links.index(link) for link in links] == [0, 1, 1, *range(3, 11)]
    assert len(compiled.given) == 3  # all but the blocks: stem, mean and head
    monkeypatch.setattr(basic_blocks, "asked_for", lambda maps: torch.float32)
    images = torch.randn(4, *SHAPE)
    for training in (True, False):
        with torch.no_grad():
            found = forward(*weights(deepcopy(net)), (images,), training, shared=True)
            torch.testing.assert_close(found, deepcopy(net).train(training)(images), rtol=1e-3, atol=1e-3)


def test_a_stage_of_one_width_differs_only_where_it_halves(compiled):
    """Blocks are alike whatever the size of the maps that they see."""
    links = kinds_of(PreActResNet(SHAPE, 7, depth=20, stages=(4, 4, 4), stem_channels=4))
    assert [links.index(link) for link in links] == [0, 1, 2, 2, 4, 2, 2, 4, 2, 2, 10, 11, 12]


def test_nets_of_a_few_layers_are_compiled_whole(compiled):
    for name in ("mlp", "cnn", "alexnet"):
        assert len(kinds_of(NETS[name]())) == 1


@pytest.mark.parametrize(
    "other",
    [
        nn.Conv2d(4, 4, 3, padding=1, stride=2),
        nn.Conv2d(4, 4, 3, padding=1, bias=False),
        nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"),
        nn.Conv2d(4, 4, 3, padding=1, groups=2),
        nn.Sequential(nn.Conv2d(4, 4, 3, padding=1)),
    ],
    ids=str,
)
def test_what_computes_something_else_is_of_another_kind(other):
    kind = nets._kind_of(nn.Conv2d(4, 4, 3, padding=1))
    assert nets._kind_of(nn.Conv2d(4, 4, 3, padding=1)) == kind
    assert nets._kind_of(other) != kind


def test_only_batches_of_the_known_size_are_compiled_in_training(compiled):
    net = NETS["he"]()
    forward = Forward(net, stacked=False, worth=batches_of(4))
    links = len(net.links)
    for size, training, expected in ((4, True, links), (3, True, 0), (3, False, links), (9, False, links)):
        compiled.called.clear()
        forward(*weights(net), (torch.randn(size, *SHAPE),), training, shared=True)
        assert len(compiled.called) == expected, (size, training)


def test_no_link_is_left_to_eager_mode(monkeypatch):
    """torch gives up on code that it has compiled eight times, and only warns; a recording lets it go on."""
    pytest.importorskip("triton")
    original, called = torch.compile, []

    def backend(graph, _):
        return lambda *values: called.append(graph) or graph(*values)

    monkeypatch.setattr(
        torch, "compile", lambda function, **options: original(function, backend=backend, dynamic=False)
    )
    torch.compiler.reset()
    net = PreActResNet(SHAPE, 7, depth=14, **SMALL)
    forward = Forward(net, stacked=False, worth=batches_of(4))
    for training in (True, False):
        called.clear()
        with compiling_as_often_as_needed():
            forward(*weights(net), (torch.randn(4, *SHAPE),), training, shared=True)
        assert len(called) == len(net.links)


def test_without_a_size_nothing_is_compiled(compiled):
    net = NETS["he"]()
    for stacked in (True, False):
        Forward(net, stacked)
    assert not compiled.given


# --- through the compiler, on kernels in the interpreter or on a GPU ---


def check_compiled(models, device, dtype, tolerance, modes=(True, False)):
    """In training and in evaluation, against the nets in double precision."""
    stacked = len(models) > 1
    images = torch.randn(len(models), 4, *SHAPE)
    models = [trained(model, seen) for model, seen in zip(models, images, strict=True)]
    exact = [deepcopy(model).double() for model in models]
    models, images = [model.to(device) for model in models], images.to(device)
    forward = Forward(models[0], stacked, worth=batches_of(4))
    parameters, buffers = stack_module_state(models) if stacked else weights(models[0])
    for training in modes:
        with torch.autocast(device, dtype):
            seen = images if stacked else images[0]
            logits = forward(parameters, buffers, (seen,), training, shared=not stacked)
        gradients = torch.autograd.grad(logits.float().square().sum(), list(parameters.values()))
        for run, net in enumerate(exact):
            wanted = net.train(training)(images[run].double().cpu())
            own = torch.autograd.grad(wanted.square().sum(), list(net.parameters()))
            assert relative([logits[run] if stacked else logits], [wanted]) < tolerance
            # A number that falls on the other side of a maximum or of zero has its gradient elsewhere.
            assert relative([each[run] if stacked else each for each in gradients], own) < 10 * tolerance
            for name, value in net.named_buffers():
                kept = (buffers[name][run] if stacked else buffers[name]).cpu()
                torch.testing.assert_close(kept.double(), value.double(), rtol=tolerance, atol=tolerance)


def relative(found, wanted):
    one, other = (
        torch.cat([each.detach().double().cpu().flatten() for each in values]) for values in (found, wanted)
    )
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.skipif(torch.cuda.is_available(), reason="kernels in the interpreter, so without a GPU")
@pytest.mark.parametrize(("name", "runs"), [("cnn", 1), ("tensor2tensor", 2)])
def test_the_compiler_understands_links_with_kernels(name, runs, monkeypatch):
    """All but its last step, which makes programs for a GPU."""
    pytest.importorskip("triton")
    from softtargets.models.kernels import launch

    few = launch.Tiles(64, 64, 128, 1, 1, part=64)  # blocks, of which the interpreter is slow
    monkeypatch.setattr(launch, "gradient_tiles", lambda *sizes: few)
    original = torch.compile

    def compile_up_to_there(function, **options):
        return original(function, backend="aot_eager", fullgraph=True, dynamic=False)

    monkeypatch.setattr(torch, "compile", compile_up_to_there)
    torch.compiler.reset()
    torch.manual_seed(0)
    with compiling_as_often_as_needed():
        modes = (True, False) if runs == 1 else (True,)
        check_compiled([NETS[name]() for _ in range(runs)], "cpu", torch.float16, 2e-2, modes)


@pytest.mark.cuda
@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("name", ["cnn", "alexnet", "tensor2tensor"])
def test_compiled_for_a_gpu(name, runs):
    torch.compiler.reset()
    torch.manual_seed(0)
    check_compiled([NETS[name]() for _ in range(runs)], "cuda", torch.bfloat16, 5e-2)
