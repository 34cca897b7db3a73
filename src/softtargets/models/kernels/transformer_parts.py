"""What a Transformer has learnt, as its kernels read it, and the gradients of all that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from softtargets.models.attention import SelfAttention
from softtargets.models.kernels import joining
from softtargets.models.kernels.joining import Drawing, Norm, States
from softtargets.models.transformer import Transformer
from softtargets.models.transformer_layers import DecoderLayer, EncoderLayer, FeedForward, Residual

# Layers whose sums of parts lie in one tensor, to be added up by one kernel.
_TOGETHER = 6


class Linear(NamedTuple):
    """A matrix (outputs, inputs) and a bias."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, layer: nn.Linear) -> Linear:
        return cls(layer.weight, layer.bias)

    def __call__(self, rows: Tensor) -> Tensor:
        """Of rows (n, inputs)."""
        return torch.addmm(self.bias, rows, self.weight.t())


class Join(NamedTuple):
    """The dropout, the sum and the norm around a layer."""

    drawing: Drawing
    gains: Tensor
    shifts: Tensor
    eps: float

    @classmethod
    def of(cls, around: Residual) -> Join:
        norm = around.norm
        return cls(Drawing.of(around.dropout), norm.weight, norm.bias, norm.eps)

    def __call__(self, before: States, branch: Tensor, length: int) -> tuple[States, Norm]:
        """norm(states + dropout(branch)), of sentences with so many places."""
        return joining.add_and_norm(before, branch, self.drawing, self.gains, self.shifts, self.eps, length)


class Layer(NamedTuple):
    """A layer of either stack; `ask` and `remember` are for attention over the source."""

    heads: int
    project: Linear
    merge: Linear
    widen: Linear
    narrow: Linear
    joins: tuple[Join, ...]
    ask: Linear | None = None
    remember: Linear | None = None
    merge_found: Linear | None = None

    @classmethod
    def of(cls, layer: EncoderLayer | DecoderLayer) -> Layer:
        forward: FeedForward = layer.feed_forward
        own: SelfAttention = layer.own
        joins = tuple(Join.of(each) for each in cast("Iterable[Residual]", layer.around))
        project, merge = Linear.of(own.project), Linear.of(own.merge)
        widen, narrow = Linear.of(forward.widen), Linear.of(forward.narrow)
        found = cls(own.heads, project, merge, widen, narrow, joins)
        if isinstance(layer, EncoderLayer):
            return found
        cross = layer.cross
        ask, remember, merge = (Linear.of(each) for each in (cross.project, cross.remember, cross.merge))
        return found._replace(ask=ask, remember=remember, merge_found=merge)

    def learnt(self) -> list[Tensor]:
        """Weights and biases of products, then gains and shifts of norms."""
        products = [each for each in self if isinstance(each, Linear)]
        return [tensor for one in products for tensor in one] + [
            tensor for join in self.joins for tensor in (join.gains, join.shifts)
        ]


class Plan(NamedTuple):
    """A net as this call finds it."""

    tables: tuple[Tensor, Tensor]  # of source and target, perhaps the same
    dropouts: tuple[Drawing, Drawing]
    encoder: list[Layer]
    decoder: list[Layer]

    @classmethod
    def of(cls, net: Transformer) -> Plan:
        embed = net.embed
        return cls(
            (embed.source.weight, embed.target.weight),
            (Drawing.of(embed.source_dropout), Drawing.of(embed.target_dropout)),
            [Layer.of(each) for each in cast("Iterable[EncoderLayer]", net.encoder)],
            [Layer.of(each) for each in cast("Iterable[DecoderLayer]", net.decoder)],
        )

    def learnt(self) -> list[Tensor]:
        """All that a gradient is wanted of, each once."""
        tables = self.tables[: 1 if self.tables[0] is self.tables[1] else 2]
        return [*tables, *(tensor for layer in [*self.encoder, *self.decoder] for tensor in layer.learnt())]


class Gradients:
    """The gradients that have been found, by what they belong to; sums over rows are added up at the end at once."""

    def __init__(self) -> None:
        self._of: dict[int, Tensor] = {}
        self._rooms: dict[tuple[int, int], list[_Room]] = {}

    def of_product(self, linear: Linear, upstream: Tensor, seen: Tensor) -> Tensor:
        """Note the gradient of the matrix; gives that of the rows it has seen."""
        # Whoever trains may want it at a place of their own.
        into: Tensor | None = getattr(linear.weight, "gradient_goes_to", None)
        self._of[id(linear.weight)] = torch.mm(upstream.t(), seen, out=into)
        return upstream @ linear.weight

    def note(self, tensor: Tensor, gradient: Tensor) -> None:
        """This one is known."""
        self._of[id(tensor)] = gradient

    def room(
        self, parts: int, columns: int, *owners: tuple[Tensor, int], together: int = _TOGETHER
    ) -> Tensor:
        """Where a kernel leaves sums of parts (parts, columns), those of each tensor from a column on.

        Those of so many layers lie `together`.
        """
        rooms = self._rooms.setdefault((parts, columns), [])
        if not rooms or len(rooms[-1].owners) == len(rooms[-1].whole):
            rooms.append(_Room(torch.empty(together, parts, columns, device=owners[0][0].device), []))
        whole, there = rooms[-1]
        there.append(owners)
        return whole[len(there) - 1]

    def all_of(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Of each of these tensors, in its precision."""
        for whole, there in (room for rooms in self._rooms.values() for room in rooms):
            sums = joining.sums_of(whole[: len(there)])
            in_dtype = {sums.dtype: sums}
            for place, owners in enumerate(there):
                for tensor, begin in owners:
                    # All at once: a kernel for each would take longer than the sums.
                    if tensor.dtype not in in_dtype:
                        in_dtype[tensor.dtype] = sums.to(tensor.dtype)
                    found = in_dtype[tensor.dtype]
                    self._of[id(tensor)] = found[place, begin : begin + tensor.numel()]
        return [self._of[id(tensor)] for tensor in tensors]


class _Room(NamedTuple):
    """Sums of parts of several layers, and whose they are."""

    whole: Tensor
    owners: list[tuple[tuple[Tensor, int], ...]]
