"""The encoder-decoder Transformer, for translation."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.classifier import Classifier
from softtargets.models.embedding import Embed
from softtargets.models.transformer_layers import DecoderLayer, EncoderLayer, Flow

# Transformer(vocabulary, **TRANSFORMER_SIZES["iwslt"]). The replication's is that of PyTorch's tutorial, iwslt that of
# fairseq (transformer_iwslt_de_en), base that of Vaswani et al. (table 3), which Müller et al. train on WMT; multi30k
# is ours, enough for 29,000 short sentences.
TRANSFORMER_SIZES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        name: MappingProxyType(
            {
                "width": width,
                "heads": heads,
                "inner": inner,
                "encoder_layers": layers,
                "decoder_layers": layers,
                "dropout": dropout,
            }
        )
        for name, width, heads, inner, layers, dropout in (
            ("replication", 512, 8, 512, 3, 0.0),
            ("multi30k", 256, 4, 1024, 4, 0.3),
            ("iwslt", 512, 4, 1024, 6, 0.3),
            ("base", 512, 8, 2048, 6, 0.1),
        )
    }
)


class Memory(NamedTuple):
    """What the encoder made of sources: states (N, S, width), and which of them count, (N, 1, 1, S)."""

    states: Tensor
    seen: Tensor


@dataclass
class Cache:
    """What a decoder keeps of the positions that it has been through, `beams` hypotheses for each input.

    All tensors stay where they are, so that a step can be recorded as a CUDA graph. Keys and values are never moved:
    hypotheses write theirs side by side, and `line` (N, beams, capacity, beams) says which of them are whose past.
    """

    keys: list[Tensor]  # of each layer (N, heads, capacity, beams, d)
    values: list[Tensor]
    source_keys: list[Tensor]  # of each layer (N, heads, S, d), shared by the hypotheses of an input
    source_values: list[Tensor]
    seen: Tensor  # (N, 1, 1, S)
    line: Tensor
    place: Tensor  # (1,), the position that comes next

    def reorder(self, index: Tensor) -> Cache:
        """Make row r go on from where row index[r] is; both must be hypotheses of the same input. (n,)"""
        self.line.copy_(self.line.flatten(0, 1).index_select(0, index).view_as(self.line))
        return self


class Transformer(Classifier):
    """Vaswani et al., "Attention is all you need", 2017: tokens of a source and a prefix to logits of what comes next.

    A source (N, S) is read by the encoder, token 0 being padding. The decoder sees the prefix (N, T), which begins with
    a symbol for that, up to each position, and gives logits (N, T, V) of the token after it. ``norm="post"`` normalises
    after each sum as the paper does, ``"pre"`` before each layer and once at the end of both stacks. ``share="all"``
    has one matrix for both embeddings and the templates of the last layer, ``"decoder"`` one for the target's two.
    Positions are tensor2tensor's sines and cosines, for up to `longest` of them. Embeddings begin as N(0, 1 / width)
    and are multiplied by sqrt(width); linear layers are Xavier-uniform as in fairseq. `TRANSFORMER_SIZES` has
    published sizes.

    With the attribute ``fused = True`` it gives in training the penultimate states instead of logits, for a loss that
    multiplies by the templates itself.

    >>> net = Transformer(vocabulary=20, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1).eval()
    >>> source, prefix = torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([[1, 9], [1, 8]])
    >>> net(source, prefix).shape, net.features(source, prefix).shape, net.templates.shape
    (torch.Size([2, 2, 20]), torch.Size([2, 2, 8]), torch.Size([20, 8]))

    One position at a time, with what was computed before kept:

    >>> cache = net.start(net.encode(source), beams=1, capacity=2)
    >>> for tokens in prefix.T:
    ...     states, cache = net.advance(tokens, cache)
    >>> torch.allclose(states, net.features(source, prefix)[:, -1], atol=1e-6)
    True
    """

    head: Head

    def __init__(
        self,
        vocabulary: int,
        width: int = 512,
        heads: int = 8,
        inner: int = 2048,
        encoder_layers: int = 6,
        decoder_layers: int = 6,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation_dropout: float = 0.0,
        norm: Literal["post", "pre"] = "post",
        share: Literal["all", "decoder", "none"] = "all",
        longest: int = 1024,
    ) -> None:
        super().__init__()
        if width % heads or width % 2:
            raise ValueError(f"width {width} must be even and a multiple of the {heads} heads")
        if norm not in ("post", "pre") or share not in ("all", "decoder", "none"):
            raise ValueError(
                f"norm must be post or pre, not {norm!r}, and share must be all, decoder or none, not {share!r}"
            )
        self.vocabulary, self.longest = vocabulary, longest
        options = (width, heads, inner, dropout, attention_dropout, activation_dropout, norm == "pre")
        self.embed = Embed(vocabulary, width, dropout, longest, shared=share == "all")
        self.encoder = nn.ModuleList([EncoderLayer(*options) for _ in range(encoder_layers)])
        self.middle = Middle(width) if norm == "pre" else None
        self.decoder = nn.ModuleList([DecoderLayer(*options) for _ in range(decoder_layers)])
        self.last = Last(width, normalises=norm == "pre")
        self.head = Head(width, vocabulary)
        if share != "none":
            self.head.weight = self.embed.target.weight
        self.number_dropouts()

    @property
    def fused(self) -> bool:
        """Whether penultimate states instead of logits are given in training."""
        return self.head.fused

    @fused.setter
    def fused(self, value: bool) -> None:
        self.head.fused = value

    @property
    def links(self) -> list[nn.Module]:
        """What leads from source and prefix to logits; all but the first and the last pass on a `Flow`."""
        middle = [] if self.middle is None else [self.middle]
        return [self.embed, *self.encoder, *middle, *self.decoder, self.last, self.head]

    def features(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Penultimate states (N, T, width) of sources (N, S) and prefixes (N, T)."""
        values: Any = source, prefix
        for link in self.links[:-1]:
            values = link(*values)
        states: Tensor = values
        return states

    def encode(self, source: Tensor) -> Memory:
        """What the decoder needs to know of sources (N, S)."""
        states, seen = self.embed.read(source)
        for layer in cast("list[EncoderLayer]", self.encoder):
            states = layer.encode(states, seen)
        return Memory(states if self.middle is None else self.middle.norm(states), seen)

    def start(
        self, memory: Memory, beams: int = 1, capacity: int | None = None, cache: Cache | None = None
    ) -> Cache:
        """Before the first position: room for `capacity` positions (`longest`) of so many hypotheses of each input.

        With a `cache` of the same shapes that one is begun anew, in place.
        """
        kept = [layer.cross.remembered(memory.states) for layer in cast("list[DecoderLayer]", self.decoder)]
        if cache is not None:
            for own, given in zip(
                (cache.source_keys, cache.source_values), zip(*kept, strict=True), strict=True
            ):
                torch._foreach_copy_(own, list(given))
            cache.seen.copy_(memory.seen)
            cache.line.zero_()
            cache.place.zero_()
            return cache
        capacity = self.longest if capacity is None else capacity
        self.embed.check_length("capacity", capacity)
        inputs, heads, _, size = kept[0][0].shape
        room = [keys.new_zeros(inputs, heads, capacity, beams, size) for keys, _ in kept]
        return Cache(
            keys=room,
            values=[torch.zeros_like(each) for each in room],
            source_keys=[keys.contiguous() for keys, _ in kept],
            source_values=[values.contiguous() for _, values in kept],
            seen=memory.seen.clone(),
            line=memory.seen.new_zeros(inputs, beams, capacity, beams),
            place=torch.zeros(1, dtype=torch.int64, device=memory.states.device),
        )

    def advance(self, tokens: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """One position: the tokens (n,) of n = inputs * beams hypotheses, those of one input side by side, to
        penultimate states (n, width). The cache is written to, and given back.
        """
        inputs, beams = cache.line.shape[:2]
        itself = torch.eye(beams, dtype=torch.bool, device=tokens.device)[:, None]
        cache.line.index_copy_(2, cache.place, itself.expand(inputs, -1, -1, -1))
        line = cache.line.flatten(2).unsqueeze(1)
        states = self.embed.write(tokens.view(inputs, beams), cache.place)
        for number, layer in enumerate(cast("list[DecoderLayer]", self.decoder)):
            own = cache.keys[number], cache.values[number]
            source = cache.source_keys[number], cache.source_values[number]
            states = layer.step(states, own, source, cache.seen, line, cache.place)
        cache.place.add_(1)
        return self.last.norm(states).flatten(0, 1), cache


class Middle(nn.Module):
    """The norm at the end of an encoder whose layers have theirs in front."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, states: Tensor, written: Tensor, seen: Tensor) -> Flow:
        """The source normalised; the target is passed on."""
        return self.norm(states), written, seen


class Last(nn.Module):
    """Of all that flows the target, normalised where layers have their norms in front."""

    slight = True

    def __init__(self, width: int, normalises: bool) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width) if normalises else nn.Identity()

    def forward(self, states: Tensor, written: Tensor, seen: Tensor) -> Tensor:
        """Penultimate states."""
        normalised: Tensor = self.norm(written)
        return normalised


class Head(nn.Linear):
    """Logits; if `fused`, in training the states as they are, since the loss multiplies them by the templates.

    In evaluation they have single precision at least, also under autocast: with eight bits many tokens would be equally
    likely, and what a beam search chooses, or a model is measured by, would be the rounding.
    """

    slight = True

    def __init__(self, width: int, vocabulary: int) -> None:
        super().__init__(width, vocabulary)
        self.fused = False
        nn.init.normal_(self.weight, std=width**-0.5)
        nn.init.zeros_(self.bias)

    def forward(self, states: Tensor) -> Tensor:
        """(..., width) to (..., V)."""
        if self.training:
            return states if self.fused else super().forward(states)
        dtype = torch.promote_types(torch.promote_types(states.dtype, self.weight.dtype), torch.float32)
        # Where tensors have no content, there is no autocast either.
        with nullcontext() if states.is_meta else torch.autocast(states.device.type, enabled=False):
            return functional.linear(states.to(dtype), self.weight.to(dtype), self.bias.to(dtype))
