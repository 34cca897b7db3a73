"""Attention with several heads, over whole sentences and one position at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from softtargets.models.dropout import Dropout
from softtargets.models.short_attention import cross_attention, self_attention, takes

# Up to so many keys torch's fast attention on a GPU adds up the gradient in one order, which is one block of keys; it
# has its threads add up more blocks as they come. Of longer sentences few fit into a batch, and the plain way is quick.
# Most trainings on a GPU ask torch for neither, but `short_attention`.
ONE_BLOCK = 64


class Attention(nn.Module):
    """softmax(Q K^T / sqrt(d)) V for each head (Vaswani et al. 2017, section 3.2), and one linear layer behind it.

    What subclasses project queries, keys and values with begins as in fairseq: uniform, Xavier's bound over sqrt(2).
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.merge = linear(width, width)
        self.dropout = Dropout(dropout)

    def attend(
        self, queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool = False
    ) -> Tensor:
        """(N, heads, T, d) over (N, heads, S, d) to (N, T, width); where the mask (N or 1, 1, T or 1, S) is False,
        keys are not looked at. `causal`: none after the query's own.
        """
        drops = self.training and self.dropout.p > 0
        in_any_order = self.training and keys.is_cuda and keys.shape[-2] > ONE_BLOCK
        if drops or in_any_order:
            # Written out: torch's own draws from a generator, and such a training could not be gone on with.
            if causal:
                square = torch.ones(queries.shape[-2], keys.shape[-2], dtype=torch.bool, device=keys.device)
                mask = square.tril() if mask is None else mask & square.tril()
            scores = queries @ keys.transpose(-1, -2) / sqrt(queries.shape[-1])
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            found = self.dropout(scores.softmax(-1).to(values.dtype)) @ values
        else:
            found = functional.scaled_dot_product_attention(queries, keys, values, mask, is_causal=causal)
        merged: Tensor = self.merge(found.transpose(1, 2).flatten(2))
        return merged

    def at_once(self, queries: Tensor, keys: Tensor) -> bool:
        """Whether sentences of these projections are attended to by one operation, which is for training on a GPU."""
        size = self.merge.in_features // self.heads
        return self.training and self.dropout.p == 0 and takes(queries, keys, size)

    def parts(self, projected: Tensor, count: int) -> tuple[Tensor, ...]:
        """(N, T, count * width) to so many of (N, heads, T, width / heads)."""
        apart = projected.unflatten(-1, (count, self.heads, -1))
        return tuple(each.transpose(1, 2) for each in apart.unbind(2))

    def extra_repr(self) -> str:
        """Shown by ``print(net)``."""
        return f"heads={self.heads}"


class SelfAttention(Attention):
    """Every position looks at all positions of its own sentence, or at those before it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout)
        self.project = linear(width, 3 * width, bound=sqrt(1.5 / width))

    def forward(self, states: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """(N, T, width) to the same shape; the mask is (N, 1, 1, T)."""
        projected = self.project(states)
        if self.at_once(projected, projected):
            merged: Tensor = self.merge(self_attention(projected, mask, self.heads, causal))
            return merged
        queries, keys, values = self.parts(projected, 3)
        return self.attend(queries, keys, values, mask, causal)

    def step(self, states: Tensor, keys: Tensor, values: Tensor, place: Tensor, line: Tensor) -> Tensor:
        """One position of `beams` hypotheses of each input, (N, beams, width) to the same shape.

        Their keys and values are written into what is kept, (N, heads, capacity, beams, d), at `place`, (1,). Of all
        that the hypotheses of an input keep, `line` (N, 1, beams, capacity * beams) says what is whose past.
        """
        queries, new_keys, new_values = self.parts(self.project(states), 3)
        keys.index_copy_(2, place, new_keys.unsqueeze(2))
        values.index_copy_(2, place, new_values.unsqueeze(2))
        return self.attend(queries, keys.flatten(2, 3), values.flatten(2, 3), line)


class CrossAttention(Attention):
    """Positions of one sentence look at another."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__(width, heads, dropout)
        self.project = linear(width, width, bound=sqrt(1.5 / width))
        self.remember = linear(width, 2 * width, bound=sqrt(1.5 / width))

    def remembered(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values (N, heads, S, d) of what is looked at, (N, S, width)."""
        keys, values = self.parts(self.remember(memory), 2)
        return keys, values

    def forward(self, states: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        """(N, T, width) over (N, S, width) to the shape of the first; the mask is (N, 1, 1, S)."""
        remembered, projected = self.remember(memory), self.project(states)
        if self.at_once(projected, remembered):
            merged: Tensor = self.merge(cross_attention(projected, remembered, mask, self.heads))
            return merged
        (queries,), (keys, values) = self.parts(projected, 1), self.parts(remembered, 2)
        return self.attend(queries, keys, values, mask)

    def step(self, states: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """The same over keys and values that were `remembered`."""
        (queries,) = self.parts(self.project(states), 1)
        return self.attend(queries, keys, values, mask)


def linear(inputs: int, outputs: int, bound: float | None = None) -> nn.Linear:
    """Weights uniform within the bound, Xavier's (Glorot and Bengio 2010) unless given; the bias starts at zero."""
    layer = nn.Linear(inputs, outputs)
    limit = sqrt(6 / (inputs + outputs)) if bound is None else bound
    nn.init.uniform_(layer.weight, -limit, limit)
    nn.init.zeros_(layer.bias)
    return layer


@contextmanager
def known_attention() -> Iterator[None]:
    """Without cuDNN's attention, which makes plans for every shape anew, and need not add up in one order.

    >>> with known_attention():
    ...     torch.backends.cuda.cudnn_sdp_enabled()
    False
    """
    was_on = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was_on)
