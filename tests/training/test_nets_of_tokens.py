"""Encoder-decoders as chains of links: several tensors go from link to link, weights are shared, dropouts are not."""

from __future__ import annotations

import pytest
import torch

from softtargets.models import Transformer
from softtargets.randomness import key_words
from softtargets.training.nets import Forward, Single
from softtargets.training.recording import compiling_as_often_as_needed

from .test_nets import compiled  # noqa: F401 - a fixture

SIZES = {"width": 8, "heads": 2, "inner": 12, "encoder_layers": 3, "decoder_layers": 2}
SOURCE = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
PREFIX = torch.tensor([[1, 9, 10], [1, 4, 0]])


def made(**options):
    torch.manual_seed(0)
    return Transformer(vocabulary=11, dropout=0.3, activation_dropout=0.2, **SIZES, **options)


def single(model, forward=None):
    nets = Single(model, key_words(3, "dropout")[None], forward)
    nets.set_place(torch.tensor([7]))
    return nets


@pytest.mark.parametrize("share", ["all", "decoder", "none"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_links_give_what_the_net_gives_and_every_layer_drops_numbers_of_its_own(share, norm, compiled):  # noqa: F811
    model, alone = made(share=share, norm=norm), made(share=share, norm=norm)
    forward = Forward(made(share=share, norm=norm), False, worth=lambda shape: True, dynamic=True)
    nets = single(model, forward)
    alone.draw_from(nets.place)
    found, wanted = nets.train((SOURCE[None], PREFIX[None]))[0], alone.train()(SOURCE, PREFIX)
    assert torch.equal(found, wanted)
    gradients = torch.autograd.grad(found.square().sum(), nets.leaves)
    for one, other in zip(
        gradients, torch.autograd.grad(wanted.square().sum(), list(alone.parameters())), strict=True
    ):
        torch.testing.assert_close(one, other)
    assert torch.equal(nets.look((SOURCE, PREFIX), shared=True)[0], alone.eval()(SOURCE, PREFIX))
    assert compiled.called


@pytest.mark.parametrize("share", ["all", "decoder", "none"])
def test_averages_are_kept_under_every_name_of_a_shared_matrix(share):
    nets = single(made(share=share))
    averages = [torch.zeros_like(parameter) for parameter in nets.parameters]
    kept = nets.swapped(averages).state(0)
    assert kept.keys() == nets.model.state_dict().keys()
    assert not any(value.any() for value in kept.values())


def test_layers_that_are_alike_are_compiled_once(compiled):  # noqa: F811
    links = [link for *_, link in Forward(made(norm="pre"), False, worth=lambda shape: True)._links]
    # Both sides' embedding, three layers, a norm, two layers, a norm, and the head.
    assert [links.index(link) for link in links] == [0, 1, 1, 1, 4, 5, 5, 7, 8]


def test_the_compiler_understands_every_link_for_all_lengths(monkeypatch):
    """All but its last step, which makes programs for a GPU."""
    original, asked = torch.compile, []

    def compile_up_to_there(function, dynamic, **options):
        asked.append(dynamic)
        return original(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)

    monkeypatch.setattr(torch, "compile", compile_up_to_there)
    torch.compiler.reset()
    model, alone = made(), made()
    nets = single(model, Forward(made(), False, worth=lambda shape: True, dynamic=True))
    alone.draw_from(nets.place)
    with compiling_as_often_as_needed():
        for length in (3, 5, 6):
            prefix = torch.randint(4, 11, (2, length))
            found = nets.train((SOURCE[None], prefix[None]))[0]
            torch.testing.assert_close(found, alone.train()(SOURCE, prefix))
    assert asked
    assert all(asked)


def test_each_kind_of_link_is_compiled_once_for_batches_of_all_shapes(monkeypatch):
    original, graphs = torch.compile, []

    def noting(graph, example):
        graphs.append(graph)
        return graph.forward

    monkeypatch.setattr(
        torch,
        "compile",
        lambda function, dynamic, options: original(function, backend=noting, dynamic=dynamic),
    )
    torch.compiler.reset()
    model = made()
    model.fused = True  # the last links compute nothing, which must not keep the compiler from the others
    skeleton = made()
    skeleton.fused = True
    nets = single(model, Forward(skeleton, False, worth=lambda shape: True, dynamic=True))
    with compiling_as_often_as_needed():
        for rows, source, target in ((4, 12, 12), (3, 16, 16), (2, 20, 24), (2, 24, 20)):
            inputs = (torch.randint(4, 11, (1, rows, side)) for side in (source, target))
            assert nets.train(tuple(inputs)).shape == (1, rows, target, 8)
    torch.compiler.reset()
    assert len(graphs) == 3  # the embedding, a layer of the encoder, a layer of the decoder
