"""A Transformer computed as a whole in training: matrix products by NVIDIA's library, and what lies between by kernels.

States are kept as normalised sums in single precision and as what products read, in low precision. Gradients come back
along both ways and are added where a kernel reads them. All layers of the decoder ask the encoder's result for keys and
values in one product, whose gradient is one product too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import Function, once_differentiable

from softtargets.models.dropout import Dropout
from softtargets.models.embedding import PAD, sinusoids
from softtargets.models.kernels import attending, joining
from softtargets.models.kernels.attending import Parts
from softtargets.models.kernels.joining import Norm, States
from softtargets.models.kernels.launch import gradient_of_table
from softtargets.models.kernels.maps import asked_for
from softtargets.models.kernels.transformer_parts import Gradients, Join, Layer, Linear, Plan
from softtargets.models.short_attention import takes
from softtargets.models.transformer import Transformer
from softtargets.models.transformer_layers import DecoderLayer, EncoderLayer, Residual

# Kernels hold a row of states as a whole.
WIDEST = 4096


class FusedTransformer(Transformer):
    """A Transformer that normalises after each sum, whose training is computed as a whole where `trains_whole` says so.

    Weights may have an attribute `gradient_goes_to`, a tensor like them: their gradient is then written there. So a net
    must not be asked twice before the gradients of the first time are used.
    """

    def forward(self, *inputs: Tensor) -> Tensor:
        """Logits, or penultimate states where they are `fused`; by its layers where kernels do not know what to do."""
        if not self.trains_whole(inputs, self._tensors()):
            return super().forward(*inputs)
        plan = Plan.of(self)
        states = _Whole.apply(plan, *inputs, *plan.learnt())  # type: ignore[no-untyped-call]
        logits: Tensor = self.head(states)
        return logits

    def trains_whole(self, inputs: tuple[Tensor, ...], tensors: Mapping[str, Tensor]) -> bool:
        """Whether kernels compute it in training, with these weights and buffers by their names.

        They do where products are made of matrices in the low precision that autocast asks for, on sentences that are
        short enough for our attention, and if nothing is dropped inside of attention and feed-forward nets.
        """
        source, prefix = inputs
        if not (self.training and self._draws_from_a_place(tensors)):
            return False
        tables = [tensors[f"embed.{side}.weight"] for side in ("source", "target")]
        low = [tensors[f"{name}.{kind}"] for name in self._inner for kind in ("weight", "bias")]
        dtype = asked_for(tables[0])
        if any(each.dtype != dtype for each in low) or any(table.dtype != torch.float32 for table in tables):
            return False
        longest = max(source.shape[1], prefix.shape[1])
        made = low[0].new_empty(0).expand(1, longest, 0)
        return longest <= self.longest and takes(made, made, self._size)

    def _tensors(self) -> dict[str, Tensor]:
        return dict(self.named_parameters(remove_duplicate=False)) | dict(
            self.named_buffers(remove_duplicate=False)
        )

    @property
    def _size(self) -> int:
        """Of a head."""
        own = cast("EncoderLayer", self.encoder[0]).own
        return own.project.in_features // own.heads

    @property
    def _inner(self) -> list[str]:
        """The names of all linear layers but the last."""
        return [
            name
            for name, module in self.named_modules()
            if isinstance(module, nn.Linear) and module is not self.head
        ]

    def _draws_from_a_place(self, tensors: Mapping[str, Tensor]) -> bool:
        """Whether dropouts stand where kernels look for them, and do not ask torch's generator."""
        around = [each.dropout for each in self.modules() if isinstance(each, Residual)]
        known = {id(each) for each in (*around, self.embed.source_dropout, self.embed.target_dropout)}
        return all(
            each.p == 0 or (id(each) in known and f"{name}.place" in tensors)
            for name, each in self.named_modules()
            if isinstance(each, Dropout)
        )


def is_whole(net: Transformer) -> bool:
    """Whether a net normalises after each sum, and is made of layers that kernels know."""
    width = net.embed.source.weight.shape[1]
    return (
        net.middle is None
        and len(net.encoder) > 0
        and len(net.decoder) > 0
        and all(type(layer) is EncoderLayer for layer in net.encoder)
        and all(type(layer) is DecoderLayer for layer in net.decoder)
        and width % 16 == 0
        and width <= WIDEST
    )


# --- both ways through it ---


class _Whole(Function):
    """From tokens to penultimate states in low precision, (sentences, places, width)."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, source: Tensor, prefix: Tensor, *learnt: Tensor) -> Tensor:
        return _forward(ctx, plan, source, prefix)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        if not ctx.decoder:
            raise RuntimeError(
                "what a step has kept is used up by its gradients; call the net again for others"
            )
        gradients = _backward(ctx, upstream)
        return None, None, None, *gradients.all_of(ctx.plan.learnt())


class _Seen(NamedTuple):
    """What the backward pass needs of a layer with attention: what it read, projected and found, and made of it."""

    read: Tensor
    projected: Tensor
    found: Tensor
    norm: Norm


class _Kept(NamedTuple):
    """What the backward pass needs of a layer."""

    own: _Seen
    cross: _Seen | None
    read: Tensor  # by the feed-forward net
    given: Tensor  # by its ReLU
    norm: Norm


def _forward(ctx: Any, plan: Plan, source: Tensor, prefix: Tensor) -> Tensor:
    ctx.plan, ctx.tokens, ctx.seen = plan, (source, prefix), seen_of(source)
    width = plan.tables[0].shape[1]
    dtype = plan.encoder[0].project.weight.dtype
    embedded = [
        joining.embedded(
            tokens.contiguous(),
            table,
            waves_for(tokens.shape[1], width, table.device),
            drawing,
            sqrt(width),
            dtype,
        )
        for tokens, table, drawing in zip(ctx.tokens, plan.tables, plan.dropouts, strict=True)
    ]
    memory, states = embedded
    ctx.encoder, ctx.decoder = [], []
    shape, target = source.shape, prefix.shape
    for layer in plan.encoder:
        memory, own = _attend(layer, memory, shape, ctx.seen, causal=False)
        memory = _feed(ctx.encoder, layer, memory, own, None, shape[1])
    ctx.memory = memory.low
    ctx.remember = _together(plan.decoder)
    ctx.remembered = ctx.remember(memory.low).view(*shape, -1)
    for layer, remembered in zip(plan.decoder, _each(ctx.remembered, plan.decoder), strict=True):
        states, own = _attend(layer, states, target, None, causal=True)
        states, cross = _look_back(layer, states, target, remembered, ctx.seen)
        states = _feed(ctx.decoder, layer, states, own, cross, target[1])
    return states.low.view(*target, width)


def _attend(
    layer: Layer, states: States, shape: torch.Size, seen: Tensor | None, causal: bool
) -> tuple[States, _Seen]:
    projected = layer.project(states.low).view(*shape, -1)
    found = attending.attend(Parts.of(projected), seen, layer.heads, causal).flatten(0, 1)
    joined, norm = layer.joins[0](states, layer.merge(found), shape[1])
    return joined, _Seen(states.low, projected, found, norm)


def _look_back(
    layer: Layer, states: States, shape: torch.Size, remembered: Tensor, seen: Tensor
) -> tuple[States, _Seen]:
    assert layer.ask is not None
    assert layer.merge_found is not None
    asked = layer.ask(states.low).view(*shape, -1)
    found = attending.attend(Parts.of_two(asked, remembered), seen, layer.heads, False).flatten(0, 1)
    joined, norm = layer.joins[1](states, layer.merge_found(found), shape[1])
    return joined, _Seen(states.low, asked, found, norm)


def _feed(
    kept: list[_Kept], layer: Layer, states: States, own: _Seen, cross: _Seen | None, length: int
) -> States:
    given = torch._addmm_activation(layer.widen.bias, states.low, layer.widen.weight.t())
    joined, norm = layer.joins[-1](states, layer.narrow(given), length)
    kept.append(_Kept(own, cross, states.low, given, norm))
    return joined


def _backward(ctx: Any, upstream: Tensor) -> Gradients:
    plan: Plan = ctx.plan
    source, prefix = ctx.tokens
    gradients = Gradients()
    upstream = upstream.flatten(0, 1).contiguous()
    back: tuple[Tensor | None, Tensor] = (None, upstream)
    of_remembered = torch.empty_like(ctx.remembered)
    each = zip(_each(ctx.remembered, plan.decoder), _each(of_remembered, plan.decoder), strict=True)
    for layer, (remembered, of_own) in reversed(list(zip(plan.decoder, each, strict=True))):
        kept = ctx.decoder.pop()
        back = _back_through_feed(gradients, layer, kept, back, prefix.shape[1])
        back = _back_through_cross(gradients, layer, kept.cross, back, remembered, of_own, ctx.seen)
        back = _back_through_own(gradients, layer, kept.own, back, None, causal=True)
    of_target = back
    flat = of_remembered.flatten(0, 1)
    back = None, _back_through_memory(gradients, plan.decoder, ctx.remember, flat, ctx.memory)
    for layer in reversed(plan.encoder):
        kept = ctx.encoder.pop()
        back = _back_through_feed(gradients, layer, kept, back, source.shape[1])
        back = _back_through_own(gradients, layer, kept.own, back, ctx.seen, causal=False)
    _back_to_tables(gradients, plan, (source, prefix), (back, of_target))
    return gradients


# What comes back to states: in single precision, and in that of products.
Back = tuple["Tensor | None", Tensor]


def _before(
    gradients: Gradients, join: Join, bias: Tensor, norm: Norm, back: Back, length: int
) -> tuple[Tensor, Tensor]:
    """Through a norm, its sum and dropout: what goes straight on, and what goes back into the branch."""
    rows, width = norm.normal.shape
    owners = (join.gains, 0), (join.shifts, width), (bias, 2 * width)
    room = gradients.room(joining.programs_of(rows, width), 3 * width, *owners)
    return joining.gradients_before(*back, norm, join.gains, join.drawing, room, length)


def _columns(gradients: Gradients, bias: Tensor, matrix: Tensor, seen: Tensor | None = None) -> None:
    """Leave what belongs to a bias, and mask the matrix by what a ReLU has given."""
    room = gradients.room(joining.parts_of(len(matrix)), matrix.shape[1], (bias, 0))
    joining.partial_sums(matrix, room, seen)


def _back_through_feed(
    gradients: Gradients, layer: Layer, kept: _Kept, back: Back, length: int
) -> tuple[Tensor, Tensor]:
    straight, branch = _before(gradients, layer.joins[-1], layer.narrow.bias, kept.norm, back, length)
    of_given = gradients.of_product(layer.narrow, branch, kept.given)
    _columns(gradients, layer.widen.bias, of_given, kept.given)
    return straight, gradients.of_product(layer.widen, of_given, kept.read)


def _back_through_own(
    gradients: Gradients, layer: Layer, kept: _Seen, back: Back, seen: Tensor | None, causal: bool
) -> tuple[Tensor, Tensor]:
    length = kept.projected.shape[1]
    straight, branch = _before(gradients, layer.joins[0], layer.merge.bias, kept.norm, back, length)
    of_found = gradients.of_product(layer.merge, branch, kept.found).view(*kept.projected.shape[:2], -1)
    of_projected = torch.empty_like(kept.projected)
    attending.gradients_of_attention(
        of_found, Parts.of(kept.projected), seen, layer.heads, causal, Parts.of(of_projected)
    )
    flat = of_projected.flatten(0, 1)
    _columns(gradients, layer.project.bias, flat)
    return straight, gradients.of_product(layer.project, flat, kept.read)


def _back_through_cross(
    gradients: Gradients,
    layer: Layer,
    kept: _Seen | None,
    back: Back,
    remembered: Tensor,
    of_remembered: Tensor,
    seen: Tensor,
) -> tuple[Tensor, Tensor]:
    assert kept is not None
    assert layer.ask is not None
    assert layer.merge_found is not None
    length = kept.projected.shape[1]
    straight, branch = _before(gradients, layer.joins[1], layer.merge_found.bias, kept.norm, back, length)
    of_found = gradients.of_product(layer.merge_found, branch, kept.found).view(kept.projected.shape)
    of_asked = torch.empty_like(kept.projected)
    parts, into = Parts.of_two(kept.projected, remembered), Parts.of_two(of_asked, of_remembered)
    attending.gradients_of_attention(of_found, parts, seen, layer.heads, False, into)
    flat = of_asked.flatten(0, 1)
    _columns(gradients, layer.ask.bias, flat)
    return straight, gradients.of_product(layer.ask, flat, kept.read)


def _back_through_memory(
    gradients: Gradients, layers: Sequence[Layer], remember: Linear, upstream: Tensor, memory: Tensor
) -> Tensor:
    """All layers' gradients of what they remember are one product; so are those of their weights."""
    of_weight = upstream.t() @ memory
    owners, begin = [], 0
    for layer in layers:
        assert layer.remember is not None
        outputs = len(layer.remember.weight)
        gradients.note(layer.remember.weight, of_weight[begin : begin + outputs])
        owners.append((layer.remember.bias, begin))
        begin += outputs
    joining.partial_sums(
        upstream, gradients.room(joining.parts_of(len(upstream)), begin, *owners, together=1)
    )
    return upstream @ remember.weight


def _back_to_tables(
    gradients: Gradients, plan: Plan, tokens: tuple[Tensor, Tensor], back: tuple[Back, Back]
) -> None:
    """What comes back to embedded tokens, added up for each row of the tables; of one table both sides together."""
    rows, width = [each.numel() for each in tokens], plan.tables[0].shape[1]
    found = torch.empty(sum(rows), width, device=tokens[0].device)
    sides = found.split(rows)
    for place, (of_states, of_low) in enumerate(back):
        assert of_states is not None
        length = tokens[place].shape[1]
        joining.gradient_of_embedded(
            of_states, of_low, plan.dropouts[place], sqrt(width), length, sides[place]
        )
    flat = [each.flatten() for each in tokens]
    if plan.tables[0] is plan.tables[1]:
        gradients.note(plan.tables[0], _table_gradient(found, torch.cat(flat), plan.tables[0]))
        return
    for table, side, own in zip(plan.tables, sides, flat, strict=True):
        gradients.note(table, _table_gradient(side, own, table))


def _table_gradient(upstream: Tensor, tokens: Tensor, table: Tensor) -> Tensor:
    """Padding is looked up more often than anything else, so that its row is added up in parts."""
    gradient = gradient_of_table(upstream, tokens, len(table), apart=PAD)
    joining.sum_of_rows(upstream, tokens, PAD, into=gradient[PAD])
    return gradient


# --- pieces ---


def seen_of(source: Tensor) -> Tensor:
    """Which positions of sources count, (N, 1, 1, S): all, if there is nothing but padding."""
    seen = source != PAD
    return (seen | ~seen.any(-1, keepdim=True))[:, None, None]


_waves: dict[tuple[int, int, torch.device], Tensor] = {}


def waves_for(length: int, width: int, device: torch.device) -> Tensor:
    """What is added to so many places of a sentence, computed once for each length.

    Never while a step is recorded, since trials come before, and a recording begins when the device is done: so other
    streams find it complete.
    """
    known = length, width, device
    if known not in _waves:
        _waves[known] = sinusoids(torch.arange(length, device=device), width)
    return _waves[known]


def _together(layers: Sequence[Layer]) -> Linear:
    """The layers' products with the encoder's result as one."""
    each = [layer.remember for layer in layers if layer.remember is not None]
    if len(each) == 1:
        return each[0]
    return Linear(torch.cat([one.weight for one in each]), torch.cat([one.bias for one in each]))


def _each(remembered: Tensor, layers: Sequence[Layer]) -> tuple[Tensor, ...]:
    """The part of every layer."""
    return remembered.chunk(len(layers), -1)
