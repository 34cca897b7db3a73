from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.func import functional_call

from softtargets.exceptions import SofttargetsError
from softtargets.models import TRANSFORMER_SIZES, Dropout, Transformer
from softtargets.models.embedding import PAD, sinusoids
from softtargets.randomness import key_words
from softtargets.translation import symbols

NORMS = ["post", "pre"]
WIDTH, HEADS, INNER, VOCABULARY = 12, 3, 20, 17


def make(seed=0, dtype=torch.float64, **options):
    torch.manual_seed(seed)
    sizes = {"width": WIDTH, "heads": HEADS, "inner": INNER, "encoder_layers": 2, "decoder_layers": 2}
    net = Transformer(VOCABULARY, **sizes | {"dropout": 0.0, "longest": 16} | options).to(dtype)
    with torch.no_grad():  # biases and norms that are all alike would hide mistakes
        for name, value in net.named_parameters():
            if value.ndim == 1:
                value.add_(0.1 * torch.randn_like(value))
                assert "norm" in name or "bias" in name
    return net.eval()


def batch(seed=0):
    generator = torch.Generator().manual_seed(seed)
    source = torch.randint(4, VOCABULARY, (3, 5), generator=generator)
    source[0, 4] = source[1, 2] = source[2, 3] = symbols.EOS
    source[1, 3:] = source[2, 4:] = PAD
    prefix = torch.randint(4, VOCABULARY, (3, 4), generator=generator)
    prefix[:, 0] = symbols.BOS
    return source, prefix


def test_padding_is_the_symbol_for_it():
    assert PAD == symbols.PAD


# --- against torch's own layers, with the same weights ---


def theirs(net, source, prefix):
    """torch.nn's layers and plain loops for what comes before them."""
    pre = net.middle is not None
    options = {"dropout": 0.0, "batch_first": True, "norm_first": pre, "dtype": torch.float64}
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, **options),
        len(net.encoder),
        nn.LayerNorm(WIDTH, dtype=torch.float64) if pre else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, **options),
        len(net.decoder),
        nn.LayerNorm(WIDTH, dtype=torch.float64) if pre else None,
    )

    def copy(to, layer):
        attentions = [(to.self_attn, layer.own)]
        if hasattr(layer, "cross"):
            attentions.append((to.multihead_attn, layer.cross))
        for attention, own in attentions:
            weights, biases = [own.project.weight], [own.project.bias]
            if own is not layer.own:
                weights.append(own.remember.weight)
                biases.append(own.remember.bias)
            attention.in_proj_weight.copy_(torch.cat(weights))
            attention.in_proj_bias.copy_(torch.cat(biases))
            attention.out_proj.load_state_dict(own.merge.state_dict())
        to.linear1.load_state_dict(layer.feed_forward.widen.state_dict())
        to.linear2.load_state_dict(layer.feed_forward.narrow.state_dict())
        for number, around in enumerate(layer.around, 1):
            getattr(to, f"norm{number}").load_state_dict(around.norm.state_dict())

    with torch.no_grad():
        for stack, layers in ((encoder, net.encoder), (decoder, net.decoder)):
            for to, layer in zip(stack.layers, layers, strict=True):
                copy(to, layer)
        if pre:
            encoder.norm.load_state_dict(net.middle.norm.state_dict())
            decoder.norm.load_state_dict(net.last.norm.state_dict())

        def placed(table, tokens):
            rows = []
            for row in tokens.tolist():
                vectors = []
                for place, token in enumerate(row):
                    rates = [10_000 ** (-k / (WIDTH // 2 - 1)) for k in range(WIDTH // 2)]
                    waves = [math.sin(place * rate) for rate in rates] + [
                        math.cos(place * rate) for rate in rates
                    ]
                    scaled = [math.sqrt(WIDTH) * value for value in table[token].tolist()]
                    vectors.append([a + b for a, b in zip(scaled, waves, strict=True)])
                rows.append(vectors)
            return torch.tensor(rows, dtype=torch.float64)

        states = placed(net.embed.source.weight, source)
        memory = encoder.train()(states, src_key_padding_mask=source == PAD)
        mask = torch.ones(prefix.shape[1], prefix.shape[1], dtype=torch.bool).triu(1)
        written = placed(net.embed.target.weight, prefix)
        return decoder.train()(written, memory, tgt_mask=mask, memory_key_padding_mask=source == PAD)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("share", ["all", "decoder", "none"])
def test_it_computes_what_torchs_layers_compute_with_the_same_weights(norm, share):
    net = make(norm=norm, share=share, decoder_layers=3)
    source, prefix = batch()
    features = net.features(source, prefix)
    expected = theirs(net, source, prefix)
    assert torch.allclose(features, expected, rtol=1e-10, atol=1e-12)
    logits = torch.einsum("ntd,vd->ntv", expected, net.templates) + net.head.bias
    assert torch.allclose(net(source, prefix), logits, rtol=1e-10, atol=1e-12)


# --- padding, companions, causality ---


@pytest.mark.parametrize("norm", NORMS)
def test_a_sentence_does_not_depend_on_padding_or_companions(norm):
    net = make(norm=norm)
    source, prefix = batch()
    together = net(source, prefix)
    for row, length in enumerate([5, 3, 4]):
        alone = net(source[row : row + 1, :length], prefix[row : row + 1])
        assert torch.allclose(alone[0], together[row], rtol=1e-12, atol=1e-13)
        padded = nn.functional.pad(source[row : row + 1, :length], (0, 7))
        assert torch.allclose(net(padded, prefix[row : row + 1])[0], together[row], rtol=1e-12, atol=1e-13)


def test_what_comes_later_is_not_seen_and_what_came_before_is():
    net = make()
    source, prefix = batch()
    before = net(source, prefix)
    changed = prefix.clone()
    changed[:, 2] = (prefix[:, 2] - 4 + 1) % (VOCABULARY - 4) + 4
    after = net(source, changed)
    assert torch.equal(after[:, :2], before[:, :2])
    assert not torch.isclose(after[:, 2:], before[:, 2:]).all(-1).any()
    other = source.clone()
    other[:, 0] = (source[:, 0] - 4 + 1) % (VOCABULARY - 4) + 4
    assert not torch.isclose(net(other, prefix), before).all(-1).any()


@pytest.mark.parametrize("attention_dropout", [0.0, 0.3])
def test_a_row_of_nothing_but_padding_gives_numbers_and_gradients(attention_dropout):
    net = make(attention_dropout=attention_dropout).train()
    source, prefix = batch()
    source[1], prefix[2] = PAD, PAD
    logits = net(source, prefix)
    assert logits.isfinite().all()
    logits.square().sum().backward()
    assert all(value.grad.isfinite().all() for value in net.parameters())


# --- weights ---


def test_shared_weights_are_one_and_the_bias_is_always_its_own():
    everything, decoder, none = (make(share=share) for share in ("all", "decoder", "none"))
    assert everything.head.weight is everything.embed.source.weight is everything.embed.target.weight
    assert decoder.head.weight is decoder.embed.target.weight is not decoder.embed.source.weight
    tables = {none.head.weight, none.embed.source.weight, none.embed.target.weight}
    assert len(tables) == 3
    counts = [sum(value.numel() for value in net.parameters()) for net in (everything, decoder, none)]
    assert counts[1] - counts[0] == counts[2] - counts[1] == VOCABULARY * WIDTH
    assert all(net.head.bias.shape == (VOCABULARY,) for net in (everything, decoder, none))
    assert deepcopy(everything).head.weight.shape == everything.templates.shape
    copied = deepcopy(everything)
    assert copied.head.weight is copied.embed.source.weight


def test_weights_begin_as_published():
    torch.manual_seed(0)
    net = Transformer(1000, width=64, heads=4, inner=96, encoder_layers=1, decoder_layers=1, share="none")
    for table in (net.embed.source.weight, net.embed.target.weight, net.head.weight):
        assert table.std().item() == pytest.approx(64**-0.5, rel=0.02)
    layer = net.decoder[0]
    bounds = {
        layer.own.project: math.sqrt(6 / 128 / 2),
        layer.cross.project: math.sqrt(6 / 128 / 2),
        layer.cross.remember: math.sqrt(6 / 128 / 2),
        layer.own.merge: math.sqrt(6 / 128),
        layer.feed_forward.widen: math.sqrt(6 / 160),
        layer.feed_forward.narrow: math.sqrt(6 / 160),
    }
    for linear, bound in bounds.items():
        assert 0.98 * bound < linear.weight.abs().max().item() <= bound
        assert linear.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.03)
        assert linear.bias.count_nonzero() == 0
    assert net.head.bias.count_nonzero() == 0


@pytest.mark.parametrize("norm", NORMS)
def test_gradients_reach_every_weight_and_are_right(norm):
    net = make(norm=norm, share="decoder", encoder_layers=1, decoder_layers=1).train()
    source, prefix = batch()

    def loss():
        return net(source, prefix).sin().sum()

    gradients = torch.autograd.grad(loss(), list(net.parameters()))
    generator = torch.Generator().manual_seed(1)
    for value, gradient in zip(net.parameters(), gradients, strict=True):
        assert gradient.abs().sum() > 0
        direction = torch.randn(value.shape, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            value.add_(direction, alpha=1e-6)
            up = loss()
            value.sub_(direction, alpha=2e-6)
            down = loss()
            value.add_(direction, alpha=1e-6)
        expected = (gradient * direction).sum().item()
        assert ((up - down) / 2e-6).item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_published_sizes_have_as_many_weights_as_published():
    with torch.device("meta"):
        base = Transformer(37_000, **TRANSFORMER_SIZES["base"])
    # Vaswani et al. 2017, table 3: 65 million, with a joint vocabulary of about 37,000.
    assert sum(value.numel() for value in base.parameters()) == pytest.approx(63e6, rel=0.01)
    layers = {name: (size["encoder_layers"], size["inner"]) for name, size in TRANSFORMER_SIZES.items()}
    assert layers == {"replication": (3, 512), "multi30k": (4, 1024), "iwslt": (6, 1024), "base": (6, 2048)}


# --- lengths ---


def test_what_is_longer_than_the_net_is_refused_by_name():
    net = make(longest=5)
    source, prefix = batch()
    assert net(source, prefix).shape == (3, 4, VOCABULARY)
    with pytest.raises(
        SofttargetsError, match=r"^source has 6 positions, but the model was made for at most 5;"
    ):
        net(nn.functional.pad(source, (0, 1)), prefix)
    with pytest.raises(
        SofttargetsError, match=r"^prefix has 6 positions, but the model was made for at most 5;"
    ):
        net(source, nn.functional.pad(prefix, (0, 2)))
    with pytest.raises(SofttargetsError, match=r"^capacity has 6 positions"):
        net.start(net.encode(source), capacity=6)


def test_compiled_for_all_lengths_the_longest_is_not_known():
    """A kernel that holds as many positions as there may be at most takes many minutes to assemble."""
    net, most = make(longest=9), []

    def look(graph, inputs):
        values = [node.meta["example_value"] for node in graph.graph.nodes if node.op == "placeholder"]
        sizes = [value.node for value in values if isinstance(value, torch.SymInt)]
        most.extend(size.shape_env.var_to_range[size.expr].upper for size in sizes)
        return graph.forward

    source, prefix = batch()
    found = torch.compile(net.embed, dynamic=True, backend=look)(source, prefix)
    assert torch.equal(found[0], net.embed(source, prefix)[0])
    assert len(most) > 1
    assert all(upper > 9 for upper in most)


def test_positions_far_away_are_exact_to_single_precision():
    found = sinusoids(torch.tensor([1023]), 512)[0].double()
    exact = [f(1023 * 10_000 ** (-k / 255)) for f in (math.sin, math.cos) for k in range(256)]
    assert torch.allclose(found, torch.tensor(exact, dtype=torch.float64), atol=2e-4)


# --- dropout ---

DROPPING = {"dropout": 0.3, "attention_dropout": 0.2, "activation_dropout": 0.1}
PLACE = torch.cat((key_words(0, "dropout"), torch.tensor([3])))


def test_dropouts_are_our_own_and_numbered():
    net = make(**DROPPING)
    dropouts = [module for module in net.modules() if isinstance(module, Dropout)]
    assert [dropout.layer for dropout in dropouts] == list(range(len(dropouts)))
    assert not [module for module in net.modules() if isinstance(module, nn.Dropout)]
    # Two of embeddings; of each layer one per residual, per attention, and one in the feed-forward net.
    assert len(dropouts) == 2 + 2 * (2 + 1 + 1) + 2 * (3 + 2 + 1)


@pytest.mark.parametrize("option", DROPPING)
def test_dropout_acts_in_training_only_and_depends_on_its_place_alone(option):
    net = make(**{option: 0.5})
    source, prefix = batch()
    shown = net(source, prefix)
    place = PLACE.clone()
    net.train().draw_from(place)
    first = net(source, prefix)
    torch.manual_seed(1)
    assert torch.equal(net(source, prefix), first)
    assert not torch.allclose(first, shown)
    place[2] += 1
    assert not torch.allclose(net(source, prefix), first)
    assert torch.equal(net.eval()(source, prefix), shown)


def test_attention_written_out_is_attention():
    """Without a drop that takes anything, what is written out for dropout gives the same numbers."""
    plain, written = make(), make(attention_dropout=1e-30)
    source, prefix = batch()
    written.train().draw_from(PLACE)
    assert torch.allclose(written(source, prefix), plain(source, prefix), rtol=1e-12, atol=1e-13)


# --- links ---


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("training", [True, False])
def test_the_links_one_after_another_are_the_net(norm, training):
    net = make(norm=norm, **DROPPING).train(training)
    net.draw_from(PLACE)
    source, prefix = batch()
    values = source, prefix
    for link in net.links:
        values = link(*values) if isinstance(values, tuple) else link(values)
    assert torch.equal(values, net(source, prefix))
    assert {id(v) for link in net.links for v in link.parameters()} == {id(v) for v in net.parameters()}


def test_layers_that_are_alike_have_the_same_repr():
    net = make(norm="pre", **DROPPING)
    assert len({repr(layer) for layer in net.encoder}) == len({repr(layer) for layer in net.decoder}) == 1
    assert repr(make(norm="post").encoder[0]) != repr(make(norm="pre").encoder[0])


def test_fused_it_gives_states_in_training_alone():
    net = make()
    source, prefix = batch()
    assert not net.fused
    net.fused = True
    assert net(source, prefix).shape == (3, 4, VOCABULARY)
    net.train()
    assert torch.equal(net(source, prefix), net.features(source, prefix))
    assert torch.equal(deepcopy(net)(source, prefix), net.features(source, prefix))


# --- what the engine does with nets ---


def test_it_can_be_computed_without_content():
    with torch.device("meta"):
        net = Transformer(VOCABULARY, **TRANSFORMER_SIZES["replication"] | {"attention_dropout": 0.1})
        source = torch.empty(4, 7, dtype=torch.int64)
        net.draw_from(torch.empty(3, dtype=torch.int64))
        for training in (True, False):
            assert net.train(training)(source, source).shape == (4, 7, VOCABULARY)


def test_borrowed_weights_are_used_under_every_name():
    net, other = make(seed=0), make(seed=1)
    source, prefix = batch()
    before = net(source, prefix)
    borrowed = functional_call(net, dict(other.named_parameters()), (source, prefix))
    assert torch.equal(borrowed, other(source, prefix))
    assert torch.equal(net(source, prefix), before), "and given back"


def test_it_compiles_whole_and_drops_the_same():
    net = make(dtype=torch.float32, norm="pre", encoder_layers=1, decoder_layers=1, **DROPPING).train()
    net.draw_from(PLACE)
    source, prefix = batch()
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager")
    ours, theirs = compiled(source, prefix), net(source, prefix)
    assert torch.allclose(ours, theirs, atol=1e-5)
    found, expected = (
        torch.autograd.grad(each.square().sum(), list(net.parameters())) for each in (ours, theirs)
    )
    assert all(torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(found, expected, strict=True))


def test_in_a_stack_each_net_does_what_it_does_alone():
    nets = [make(seed=seed, encoder_layers=1, decoder_layers=1) for seed in range(3)]
    source, prefix = batch()
    parameters, buffers = torch.func.stack_module_state(nets)
    found = torch.vmap(lambda p, b: functional_call(nets[0], (p, b), (source, prefix)))(parameters, buffers)
    for net, each in zip(nets, found, strict=True):
        assert torch.allclose(each, net(source, prefix), rtol=1e-10, atol=1e-12)


# --- one position at a time ---


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_one_position_at_a_time_gives_the_states_of_all_at_once(norm, dtype):
    net = make(norm=norm, dtype=dtype)
    source, prefix = batch()
    expected = net.features(source, prefix)
    cache = net.start(net.encode(source), capacity=6)
    for place, tokens in enumerate(prefix.T):
        states, cache = net.advance(tokens, cache)
        assert torch.allclose(
            states, expected[:, place], rtol=1e-5, atol=1e-5 if dtype == torch.float32 else 1e-12
        )


def test_hypotheses_of_one_input_go_on_from_one_another():
    """Four hypotheses of each input; after every step each goes on from any of them, as a beam search does."""
    net, beams, steps = make(), 4, 6
    source, _ = batch()
    generator = torch.Generator().manual_seed(0)
    cache = net.start(net.encode(source), beams, capacity=steps)
    kept = [keys.data_ptr() for keys in cache.keys]
    prefixes = torch.empty(3 * beams, 0, dtype=torch.int64)
    for _ in range(steps):
        tokens = torch.randint(1, VOCABULARY, (3 * beams,), generator=generator)
        prefixes = torch.cat((prefixes, tokens[:, None]), 1)
        states, cache = net.advance(tokens, cache)
        expected = net.features(source.repeat_interleave(beams, 0), prefixes)[:, -1]
        assert torch.allclose(states, expected, rtol=1e-10, atol=1e-12)
        index = torch.randint(0, beams, (3, beams), generator=generator) + beams * torch.arange(3)[:, None]
        cache = cache.reorder(index.flatten())
        prefixes = prefixes[index.flatten()]
    assert [keys.data_ptr() for keys in cache.keys] == kept
    with pytest.raises((IndexError, RuntimeError)):
        net.advance(tokens, cache)


def test_a_cache_can_be_begun_anew_where_it_is():
    net = make()
    (source, prefix), (other, _) = batch(0), batch(1)
    cache = net.start(net.encode(source), capacity=4)
    for tokens in prefix.T:
        net.advance(tokens, cache)
    again = net.start(net.encode(other), cache=cache)
    assert again is cache
    for place, tokens in enumerate(prefix.T):
        states, cache = net.advance(tokens, cache)
        assert torch.allclose(states, net.features(other, prefix)[:, place], rtol=1e-10, atol=1e-12)


@pytest.mark.cuda
def test_a_step_can_be_recorded_and_replayed():
    net = make(dtype=torch.float32).cuda()
    source, prefix = (each.cuda() for each in batch())
    expected = net.features(source, prefix)
    with torch.no_grad():
        memory = net.encode(source)
        cache = net.start(memory, capacity=4)
        tokens = prefix[:, 0].clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            net.advance(tokens, cache)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            states, _ = net.advance(tokens, cache)
        net.start(memory, cache=cache)
        for place in range(4):
            tokens.copy_(prefix[:, place])
            graph.replay()
            assert torch.allclose(states, expected[:, place], atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_are_not_rounded_in_evaluation(dtype):
    net = make(dtype=dtype).eval()
    source, prefix = batch()
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        states, logits = net.features(source, prefix), net(source, prefix)
    assert logits.dtype == torch.float32
    exact = states.double() @ net.head.weight.double().T + net.head.bias.double()
    assert torch.allclose(logits.double(), exact, rtol=1e-5, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert net.train()(source, prefix).dtype == torch.bfloat16
