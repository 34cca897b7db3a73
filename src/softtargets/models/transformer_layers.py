"""What the two stacks of a Transformer are made of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from softtargets.models.attention import CrossAttention, SelfAttention, linear
from softtargets.models.dropout import Dropout

Flow = tuple[Tensor, Tensor, Tensor]  # states of the source, states of the target, which of the source count


class EncoderLayer(nn.Module):
    """Self-attention over the source, then a feed-forward net."""

    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        attention: float,
        activation: float,
        pre: bool,
    ) -> None:
        super().__init__()
        self.own = SelfAttention(width, heads, attention)
        self.feed_forward = FeedForward(width, inner, activation)
        self.around = nn.ModuleList([Residual(width, dropout, pre) for _ in range(2)])

    def forward(self, states: Tensor, written: Tensor, seen: Tensor) -> Flow:
        """Another source; the target is passed on."""
        return self.encode(states, seen), written, seen

    def encode(self, states: Tensor, seen: Tensor) -> Tensor:
        """(N, S, width) to the same shape."""
        states = self.around[0](states, partial(self.own, mask=seen))
        encoded: Tensor = self.around[1](states, self.feed_forward)
        return encoded


class DecoderLayer(nn.Module):
    """Self-attention over the target so far, attention over the source, then a feed-forward net."""

    def __init__(
        self,
        width: int,
        heads: int,
        inner: int,
        dropout: float,
        attention: float,
        activation: float,
        pre: bool,
    ) -> None:
        super().__init__()
        self.own = SelfAttention(width, heads, attention)
        self.cross = CrossAttention(width, heads, attention)
        self.feed_forward = FeedForward(width, inner, activation)
        self.around = nn.ModuleList([Residual(width, dropout, pre) for _ in range(3)])

    def forward(self, memory: Tensor, states: Tensor, seen: Tensor) -> Flow:
        """Another target; the source is passed on."""
        own, cross = partial(self.own, causal=True), partial(self.cross, memory=memory, mask=seen)
        return memory, self._decode(states, own, cross), seen

    def step(
        self,
        states: Tensor,
        kept: tuple[Tensor, Tensor],
        source: tuple[Tensor, Tensor],
        seen: Tensor,
        line: Tensor,
        place: Tensor,
    ) -> Tensor:
        """One position of some hypotheses, (N, beams, width), with keys and values of a `Cache`."""
        own = partial(self.own.step, keys=kept[0], values=kept[1], place=place, line=line)
        cross = partial(self.cross.step, keys=source[0], values=source[1], mask=seen)
        return self._decode(states, own, cross)

    def _decode(
        self, states: Tensor, own: Callable[[Tensor], Tensor], cross: Callable[[Tensor], Tensor]
    ) -> Tensor:
        states = self.around[0](states, own)
        states = self.around[1](states, cross)
        decoded: Tensor = self.around[2](states, self.feed_forward)
        return decoded


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between them, the same at every position."""

    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.widen, self.narrow = linear(width, inner), linear(inner, width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor) -> Tensor:
        """(N, T, width) to the same shape."""
        narrowed: Tensor = self.narrow(self.dropout(self.widen(states).relu()))
        return narrowed


class Residual(nn.Module):
    """norm(x + dropout(f(x))), or x + dropout(f(norm(x))) with the norm in front."""

    def __init__(self, width: int, dropout: float, pre: bool) -> None:
        super().__init__()
        self.pre = pre
        self.norm, self.dropout = nn.LayerNorm(width), Dropout(dropout)

    def forward(self, states: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
        """(N, T, width) to the same shape."""
        if self.pre:
            with_it: Tensor = states + self.dropout(layer(self.norm(states)))
        else:
            with_it = self.norm(states + self.dropout(layer(states)))
        return with_it

    def extra_repr(self) -> str:
        """Shown by ``print(net)``."""
        return f"pre={self.pre}"
