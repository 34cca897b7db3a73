"""Transformers that kernels compute as a whole, and the same by their layers in double precision."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

pytest.importorskip("triton")

from softtargets.models import Transformer
from softtargets.models.kernels import transformer, use_kernels
from softtargets.models.kernels.transformer import FusedTransformer, is_whole
from softtargets.randomness import key_words

from .running import interpreted, numbers

SMALL = {"vocabulary": 30, "width": 32, "heads": 2, "inner": 48, "encoder_layers": 2, "decoder_layers": 2}


def made(dropout=0.3, rows_before=None, seed=0, **options):
    """A net whose norms and biases are not those that it begins with, and that draws from a place."""
    torch.manual_seed(seed)
    net = Transformer(**SMALL | options, dropout=dropout)
    with torch.no_grad():
        for weight in net.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    before = [] if rows_before is None else [torch.tensor([rows_before])]
    net.draw_from(torch.cat((key_words(3, "dropout"), torch.tensor([5]), *before)))
    net.head.fused = True
    return net.train()


def sentences(count=5, source=7, target=6, seed=1, device="cpu"):
    """One with nothing but padding, and some that are shorter than others."""
    generator = torch.Generator().manual_seed(seed)
    sources = torch.randint(1, 30, (count, source), generator=generator)
    prefixes = torch.randint(1, 30, (count, target), generator=generator)
    sources[0, 1:] = 0
    sources[-1] = 0
    prefixes[count // 2, target // 2 :] = 0
    return sources.to(device), prefixes.to(device)


def fused(net):
    ours = deepcopy(net)
    ours.__class__ = FusedTransformer
    return ours


def learnt(net, given, upstream):
    """States, and the gradients of all that they depend on, by name."""
    states = net(*given)
    found = torch.autograd.grad(states, list(net.parameters()), upstream.to(states.dtype), allow_unused=True)
    names = [name for name, _ in net.named_parameters()]
    return states.detach(), {name: each for name, each in zip(names, found, strict=True) if each is not None}


def tensors(net):
    """Weights and buffers, as a net borrows them in a training."""
    return dict(net.named_parameters(remove_duplicate=False)) | dict(
        net.named_buffers(remove_duplicate=False)
    )


@pytest.fixture
def on_a_cpu(monkeypatch):
    """In the precision of the weights, by the interpreter."""
    monkeypatch.setattr(transformer, "takes", lambda *_: True)
    monkeypatch.setattr(transformer, "asked_for", lambda weight: weight.dtype)


@interpreted
@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (5, 7, 6)),
        ({"share": "none", "dropout": 0.1}, (5, 7, 6)),
        ({"share": "decoder", "dropout": 0.0}, (3, 1, 9)),
        ({"width": 48, "heads": 3, "inner": 100, "encoder_layers": 1, "decoder_layers": 1}, (2, 20, 3)),
        ({"rows_before": 3, "encoder_layers": 1, "decoder_layers": 3}, (1, 4, 5)),
        ({"width": 80, "heads": 5, "encoder_layers": 1, "decoder_layers": 1}, (40, 3, 2)),
    ],
)
def test_states_and_gradients_against_double_precision(on_a_cpu, options, shape):
    net, given = made(**options), sentences(*shape)
    upstream = numbers(shape[0], shape[2], net.templates.shape[1])
    ours = fused(net)
    assert ours.trains_whole(given, tensors(ours))
    states, gradients = learnt(ours, given, upstream)
    exact, wanted = learnt(deepcopy(net).double(), given, upstream)
    assert (states.double() - exact).abs().max() < 1e-5
    assert gradients.keys() == wanted.keys()
    for name, right in wanted.items():
        assert (gradients[name].double() - right).norm() <= 5e-6 * (right.norm() + 1e-2), name


@interpreted
def test_the_same_bits_every_time(on_a_cpu):
    net, given = made(), sentences()
    upstream = numbers(5, 6, 32)
    (states, first), (again, second) = (learnt(fused(net), given, upstream) for _ in range(2))
    assert torch.equal(states, again)
    assert all(torch.equal(gradient, second[name]) for name, gradient in first.items())


@interpreted
def test_gradients_are_made_once(on_a_cpu):
    net = fused(made(encoder_layers=1, decoder_layers=1))
    loss = net(*sentences()).square().sum()
    weights = [net.encoder[0].own.merge.weight]
    torch.autograd.grad(loss, weights, retain_graph=True)
    with pytest.raises(RuntimeError, match="call the net again"):
        torch.autograd.grad(loss, weights)


@interpreted
def test_gradients_of_products_go_where_somebody_wants_them(on_a_cpu):
    net, given = fused(made()), sentences()
    _, wanted = learnt(net, given, numbers(5, 6, 32))
    weight = net.encoder[1].feed_forward.widen.weight
    weight.gradient_goes_to = torch.full_like(weight, torch.nan).detach()
    _, found = learnt(net, given, numbers(5, 6, 32))
    name = "encoder.1.feed_forward.widen.weight"
    assert found[name].data_ptr() == weight.gradient_goes_to.data_ptr()
    assert torch.equal(found[name], wanted[name])


@interpreted
def test_logits_where_states_are_not_wanted(on_a_cpu):
    net, given = made(), sentences()
    net.head.fused = False
    logits = fused(net)(*given)
    assert logits.shape == (5, 6, 30)
    assert torch.allclose(logits, net(*given), atol=1e-5)


@pytest.mark.parametrize(
    "options",
    [{"norm": "pre"}, {"width": 24, "heads": 2}],
)
def test_other_nets_are_left_to_their_layers(options):
    net = Transformer(**SMALL | options)
    assert not is_whole(net)
    use_kernels(net, stacked=False)
    assert type(net) is Transformer


def test_a_net_alone_is_a_whole_and_one_of_a_stack_is_not():
    alone, stacked = made(), made()
    use_kernels(alone, stacked=False)
    use_kernels(stacked, stacked=True)
    assert (type(alone), type(stacked)) == (FusedTransformer, Transformer)


@pytest.mark.parametrize(
    "options",
    [{"attention_dropout": 0.1}, {"activation_dropout": 0.1}],
)
def test_dropout_elsewhere_is_left_to_layers(on_a_cpu, options):
    net = fused(made(**options))
    assert not net.trains_whole(sentences(), tensors(net))


def test_by_its_layers_where_kernels_do_not_compute():
    net, given = made(), sentences()
    ours = fused(net)
    assert torch.equal(ours(*given), net(*given))  # in single precision
    assert torch.equal(ours.eval()(*given), net.eval()(*given))


def test_without_a_place_torch_draws(on_a_cpu):
    net = fused(made())
    net.draw_from(None)
    assert not net.trains_whole(sentences(), tensors(net))


def test_not_in_evaluation_nor_for_weights_in_another_precision(on_a_cpu, monkeypatch):
    net = fused(made())
    learnt_by = tensors(net)
    assert net.trains_whole(sentences(), learnt_by)
    monkeypatch.setattr(transformer, "asked_for", lambda _: torch.bfloat16)
    assert not net.trains_whole(sentences(), learnt_by)
    monkeypatch.undo()
    assert not net.eval().trains_whole(sentences(), learnt_by)


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({"width": 512, "heads": 4, "inner": 1024, "encoder_layers": 3, "decoder_layers": 3}, (60, 12, 16)),
        ({"width": 256, "heads": 4, "inner": 1024, "share": "none", "dropout": 0.1}, (33, 100, 7)),
        ({"width": 64, "heads": 2, "dropout": 0.0}, (300, 5, 8)),
    ],
)
def test_on_a_gpu_as_near_to_the_truth_as_layers_are(options, shape):
    net, given = made(**options).cuda(), sentences(*shape, device="cuda")
    upstream = numbers(shape[0], shape[2], net.templates.shape[1], device="cuda").bfloat16().float()
    low = [
        module for module in net.modules() if isinstance(module, torch.nn.Linear) and module is not net.head
    ]
    rounded = deepcopy(net)
    for module in low:
        module.to(torch.bfloat16)
    for ours, theirs in zip(net.parameters(), rounded.parameters(), strict=True):
        theirs.data.copy_(ours)

    def by_kernels():
        with torch.autocast("cuda", torch.bfloat16):
            ours = fused(net)
            assert ours.trains_whole(given, tensors(ours))
            return learnt(ours, given, upstream)

    exact, wanted = learnt(deepcopy(rounded).double(), given, upstream)
    with torch.autocast("cuda", torch.bfloat16):
        plain, by_layers = learnt(deepcopy(rounded), given, upstream)
    states, gradients = by_kernels()
    for _ in range(2):
        again, others = by_kernels()
        assert torch.equal(states, again)
        assert all(torch.equal(gradient, others[name]) for name, gradient in gradients.items())

    def off(value, right):
        return float((value.double() - right).norm() / right.norm())

    assert off(states, exact) < 1.3 * off(plain, exact) + 1e-3
    assert gradients.keys() == wanted.keys()
    for name, right in wanted.items():
        assert off(gradients[name], right) < 1.3 * off(by_layers[name], right) + 2e-3, name
