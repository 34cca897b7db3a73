"""A step of a beam search by kernels: few launches, and weights that are converted once instead of at every step."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from softtargets.models import Cache, Transformer
from softtargets.models.embedding import sinusoids

if TYPE_CHECKING:
    from softtargets.models.transformer_layers import DecoderLayer, Residual
    from softtargets.translation.beam import Beams

# Rows that one program of a norm makes, keys that one of attention looks at at a time, tokens that are moved at a time.
_NORM_ROWS, _KEYS, _MOVED = 4, 64, 32
# Keys of a source that are looked at at a time, and tokens whose logits one program makes.
_SOURCE_KEYS, _CHUNK = 32, 128
# A program of a norm has whole rows in registers.
_WIDEST = 4096


@dataclass(frozen=True)
class _Product:
    """A linear layer in the precision that is computed in."""

    weight: Tensor
    bias: Tensor

    def __call__(self, values: Tensor) -> Tensor:
        return torch.addmm(self.bias, values, self.weight.t())

    def relu(self, values: Tensor) -> Tensor:
        """With negative numbers as zero, in the same launch."""
        found: Tensor = torch._addmm_activation(self.bias, values, self.weight.t())
        return found


class Weights:
    """The weights of a decoder in the precision that a search computes in; `refresh` reads the model's anew, in place.

    A recorded step has them where they were, so weights that were trained on are seen without another recording.
    """

    def __init__(self, model: Transformer, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._pairs: list[tuple[Tensor, Tensor]] = []
        self.layers = [
            (
                self._product(layer.own.project),
                self._product(layer.own.merge),
                self._product(layer.cross.project),
                self._product(layer.cross.merge),
                self._product(layer.feed_forward.widen),
                self._product(layer.feed_forward.narrow),
            )
            for layer in cast("list[DecoderLayer]", model.decoder)
        ]
        self.templates = self._copy(model.head.weight)

    def refresh(self) -> None:
        """Copy what is the model's now; what has that precision already is the model's own."""
        if self._pairs:
            copies, originals = zip(*self._pairs, strict=True)
            torch._foreach_copy_(copies, [each.detach() for each in originals])

    def _product(self, layer: nn.Linear) -> _Product:
        return _Product(self._copy(layer.weight), self._copy(layer.bias))

    def _copy(self, original: Tensor) -> Tensor:
        given = original.detach()
        if given.dtype == self.dtype:
            return given
        copy = given.to(self.dtype)
        self._pairs.append((copy, original))
        return copy


def fits(model: Transformer, dtype: torch.dtype) -> bool:
    """Whether the kernels compute what this model computes: not in double precision, nor with very wide rows."""
    return torch.float64 not in (dtype, model.head.weight.dtype) and model.head.weight.shape[1] <= _WIDEST


def compute_dtype(model: Transformer) -> torch.dtype:
    """What autocast computes products in, or the model's own precision."""
    device = model.head.weight.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else model.head.weight.dtype


class KernelStep:
    """One step for one kind of batch: from the last tokens of all hypotheses to the next ones.

    The same as `Transformer.advance`, the head, `likeliest`, `Beams.go_on` and `Cache.reorder` one after another, up to
    rounding; sums of layers stay in single precision, and so do logits, of products in the precision of the weights.
    """

    def __init__(
        self, model: Transformer, weights: Weights, cache: Cache, beams: Beams, temperature: float
    ) -> None:
        self._model, self._weights, self._cache, self._beams = model, weights, cache, beams
        self._temperature = temperature
        table = model.embed.target.weight
        rows, self._width = beams.batch * beams.beam, table.shape[1]
        capacity = cache.line.shape[2]
        self._waves = sinusoids(torch.arange(capacity, device=table.device), self._width)
        self._states = torch.empty(rows, self._width, device=table.device)
        self._low = torch.empty_like(self._states, dtype=weights.dtype)
        self._found = torch.empty_like(self._low)
        self._logits = torch.empty(rows, model.vocabulary, device=table.device)
        self._maxima = torch.empty(rows, -(-model.vocabulary // _CHUNK), device=table.device)
        self._totals = torch.empty_like(self._maxima)
        self._norms = _norms(model)
        self._pre = not isinstance(model.last.norm, nn.Identity)
        self._heads = cache.keys[0].shape[1]
        single = weights.dtype == torch.float32
        self._attention = {
            "BEAMS": beams.beam,
            "HEADS": self._heads,
            "SIZE": self._width // self._heads,
            "ROWS": max(16, _power_of_2(beams.beam)),
            "COLUMNS": max(16, _power_of_2(self._width // self._heads)),
            "PRECISION": "ieee",
            "num_warps": 4 if single else 2,
        }
        self._at_a_time = _KEYS // 2 if single else _KEYS

    def __call__(self) -> None:
        """Take the step, in place; nothing is asked of the device."""
        with torch.autocast(self._states.device.type, enabled=False):
            self._embed()
            norms = iter(self._norms)
            if self._pre:
                self._add(None, next(norms))
            for number, layer in enumerate(self._weights.layers):
                project, merge, ask, merge_source, widen, narrow = layer
                self._attend_to_own(number, project(self._low))
                self._add(merge(self._found), next(norms))
                self._attend_to_source(number, ask(self._low))
                self._add(merge_source(self._found), next(norms))
                self._add(narrow(widen.relu(self._low)), next(norms))
            go_on(self._beams, self._cache, *self._likeliest())

    def _embed(self) -> None:
        from softtargets.translation.kernels.step import embed_kernel

        table = self._model.embed.target.weight.detach()
        embed_kernel[(len(self._states),)](
            table,
            self._waves,
            self._beams.last,
            self._cache.place,
            self._states,
            self._low,
            sqrt(self._width),
            WIDTH=self._width,
            BLOCK=_power_of_2(self._width),
            num_warps=_warps(self._width),
        )

    def _add(self, added: Tensor | None, norm: nn.LayerNorm) -> None:
        from softtargets.translation.kernels.step import sum_norm_kernel

        rows = len(self._states)
        there = self._states if added is None else added
        sum_norm_kernel[(-(-rows // _NORM_ROWS),)](
            self._states,
            there,
            norm.weight.detach(),
            norm.bias.detach(),
            self._low,
            rows,
            norm.eps,
            WIDTH=self._width,
            BLOCK=_power_of_2(self._width),
            ROWS=_NORM_ROWS,
            ADDS=added is not None,
            POST=not self._pre,
            num_warps=_warps(self._width),
        )

    def _attend_to_own(self, number: int, projected: Tensor) -> None:
        from softtargets.translation.kernels.step import own_attention_kernel

        cache = self._cache
        own_attention_kernel[(self._beams.batch, self._heads)](
            projected,
            cache.keys[number],
            cache.values[number],
            cache.line.view(torch.uint8),
            cache.place,
            self._found,
            (self._width // self._heads) ** -0.5,
            CAPACITY=cache.line.shape[2],
            BLOCK=self._at_a_time,
            **self._attention,
        )

    def _attend_to_source(self, number: int, queries: Tensor) -> None:
        from softtargets.translation.kernels.step import cross_attention_kernel

        cache = self._cache
        length = cache.seen.shape[-1]
        cross_attention_kernel[(self._beams.batch, self._heads)](
            queries,
            cache.source_keys[number],
            cache.source_values[number],
            cache.seen.view(torch.uint8),
            self._found,
            length,
            (self._width // self._heads) ** -0.5,
            BLOCK=min(_SOURCE_KEYS, max(16, _power_of_2(length))),
            WHOLE=_power_of_2(length),
            **self._attention,
        )

    def _likeliest(self) -> tuple[Tensor, Tensor]:
        from softtargets.translation.kernels.head import choose_kernel, head_kernel

        rows, vocabulary = self._logits.shape
        chunks = self._maxima.shape[1]
        single = self._weights.dtype == torch.float32
        tall = 64 if single else 128
        head_kernel[(chunks, -(-rows // tall))](
            self._low,
            self._weights.templates,
            self._model.head.bias.detach(),
            self._logits,
            self._maxima,
            self._totals,
            rows,
            self._temperature,
            WIDTH=self._width,
            VOCABULARY=vocabulary,
            CHUNKS=chunks,
            ROWS=tall,
            CHUNK=_CHUNK,
            DEPTH=32 if single else 64,
            SCALED=self._temperature != 1,
            PRECISION="ieee",
            num_warps=8,
            num_stages=3,
        )
        count = self._beams.wanted(vocabulary)
        log_probs = self._logits.new_empty(rows, count)
        tokens = torch.empty_like(log_probs, dtype=torch.int64)
        choose_kernel[(rows,)](
            self._logits,
            self._maxima,
            self._totals,
            log_probs,
            tokens,
            VOCABULARY=vocabulary,
            CHUNKS=chunks,
            CHUNK=_CHUNK,
            BLOCK=_power_of_2(chunks),
            COUNT=count,
            SEARCHED=_power_of_2(min(count, chunks)),
            num_warps=1 if count <= 8 else 4,
        )
        return log_probs, tokens


def go_on(beams: Beams, cache: Cache, added: Tensor, tokens: Tensor) -> None:
    """`Beams.go_on` and `Cache.reorder` in one launch, with both places moved on."""
    from softtargets.translation.kernels.beam import go_on_kernel

    beams.steps += 1
    each, picks = added.shape[1], _power_of_2(2 * beams.beam)
    go_on_kernel[(beams.batch,)](
        added,
        tokens,
        beams.place,
        beams.limits,
        beams.penalties,
        beams.log_probs,
        beams.tokens,
        beams.last,
        beams.parents,
        beams.kept_tokens,
        beams.kept_lengths,
        beams.kept_ends.view(torch.uint8),
        beams.kept_log_probs,
        beams.kept_scores,
        beams.done.view(torch.uint8),
        beams.wrong.view(torch.uint8),
        cache.line.view(torch.uint8),
        EOS=beams.eos,
        BEAM=beams.beam,
        EACH=each,
        NBEST=beams.nbest,
        MOST=beams.most,
        CAPACITY=cache.line.shape[2],
        FALLS=beams.falls,
        CANDIDATES=_power_of_2(beams.beam * each),
        PICKS=picks,
        ENTRIES=_power_of_2(beams.nbest + 2 * beams.beam),
        COLUMNS=_MOVED,
        num_warps=min(8, max(1, picks // 8)),
    )
    torch._foreach_add_([beams.place, cache.place], 1)


def _norms(model: Transformer) -> list[nn.LayerNorm]:
    """In the order in which a step comes to them: behind each sum, or in front of each layer and once at the end."""
    behind = [
        cast("Residual", around).norm
        for layer in cast("list[DecoderLayer]", model.decoder)
        for around in layer.around
    ]
    return behind if isinstance(model.last.norm, nn.Identity) else [*behind, model.last.norm]


def _power_of_2(number: int) -> int:
    return 1 << max(0, number - 1).bit_length()


def _warps(width: int) -> int:
    return min(8, max(1, _power_of_2(width) // 256))
