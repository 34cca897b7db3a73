"""A step of a beam search by kernels: few launches, and weights that are converted once instead of at every step."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from softtargets.arrays import has_room
from softtargets.models import Cache, Transformer, sinusoids

if TYPE_CHECKING:
    from softtargets.translation.beam import Beams

# Rows that one program of a norm makes, positions that one of attention looks at at a time, tokens that are moved at a
# time.
_NORM_ROWS, _POSITIONS, _MOVED = 4, 32, 32
# Keys of a source that are looked at at a time, and tokens whose logits one program makes.
_SOURCE_KEYS, _CHUNK = 32, 128
# Products behind attention are made together with the norm behind them, so many rows at a time, unless the weights, all
# of which each program reads, are so large that two launches are quicker; in single precision torch's are.
_MERGES, _MERGED_ROWS, _WIDEST_MERGED = True, 64, 256
# Bytes of shared memory that it takes, 136 KiB: GPUs for computing have them, those for games do without this kernel.
_MERGED_SHARED = 136 * 1024
# What a Transformer is made of besides our own modules.
_TORCHS = (nn.Linear, nn.LayerNorm, nn.Embedding, nn.Identity, nn.ModuleList)
_OURS = Transformer.__module__.rpartition(".")[0] + "."
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
    """The weights of a model in the precision that a search computes in; `refresh` reads the model's anew, in place.

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
            for layer in cast("list[Any]", model.decoder)
        ]
        self.reading = [
            (
                self._product(layer.own.project),
                self._product(layer.own.merge),
                self._product(layer.feed_forward.widen),
                self._product(layer.feed_forward.narrow),
            )
            for layer in cast("list[Any]", model.encoder)
        ]
        self.remembering = [self._product(layer.cross.remember) for layer in cast("list[Any]", model.decoder)]
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
    """Whether the kernels compute what this model computes.

    Not in double precision, nor with very wide rows; nor if anybody has put layers of another kind into it, or hooks,
    since kernels read weights and ask no layer.
    """
    if torch.float64 in (dtype, model.head.weight.dtype) or model.head.weight.shape[1] > _WIDEST:
        return False
    return all(map(_is_as_made, _modules(model)))


def addresses(model: nn.Module) -> tuple[int, ...]:
    """Where all weights are."""
    return tuple(
        each.data_ptr()
        for module in _modules(model)
        for each in module._parameters.values()
        if each is not None
    )


def _modules(model: nn.Module) -> list[nn.Module]:
    """All of them, quicker than torch, which also makes names: every search looks before a GPU has anything to do."""
    found = [model]
    for module in found:
        found += [each for each in module._modules.values() if each is not None]
    return found


def _is_as_made(module: nn.Module) -> bool:
    kind = type(module)
    return (kind in _TORCHS or kind.__module__.startswith(_OURS)) and not (
        module._forward_hooks or module._forward_pre_hooks
    )


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
        self._pre = not isinstance(model.last.norm, nn.Identity)
        self._norms = norms_of(model.decoder, model.last.norm if self._pre else None)
        low = weights.dtype in (torch.bfloat16, torch.float16)
        self._merges = (
            _MERGES and low and self._width <= _WIDEST_MERGED and has_room(table.device, _MERGED_SHARED)
        )
        self._heads = cache.keys[0].shape[1]
        self._size = self._width // self._heads
        self._heads_and_beams = {"BEAMS": beams.beam, "HEADS": self._heads, "SIZE": self._size}
        origin = torch.uint8 if beams.beam <= 256 else torch.int32
        self._origins = torch.zeros(beams.batch, beams.beam, capacity, dtype=origin, device=table.device)

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
                self._attend_to_source(number, self._merge(merge, next(norms), ask))
                self._merge(merge_source, next(norms))
                self._add(narrow(widen.relu(self._low)), next(norms))
            go_on(self._beams, self._origins, *self._likeliest())
            torch._foreach_add_([self._beams.place, self._cache.place], 1)

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
            BLOCK=power_of_2(self._width),
            num_warps=warps_for(self._width),
        )

    def _add(self, added: Tensor | None, norm: nn.LayerNorm) -> None:
        add(self._states, added, norm, self._low, not self._pre)

    def _merge(self, merge: _Product, norm: nn.LayerNorm, ask: _Product | None = None) -> Tensor:
        """The states with what attention has found, normed, or the product behind that; in one launch where it fits."""
        if not self._merges:
            self._add(merge(self._found), norm)
            return self._low if ask is None else ask(self._low)
        from softtargets.translation.kernels.step import merge_kernel

        rows, width = self._states.shape
        block, behind = power_of_2(width), merge if ask is None else ask
        asked = self._low if ask is None else torch.empty_like(self._low)
        merge_kernel[(-(-rows // _MERGED_ROWS),)](
            self._found,
            merge.weight,
            merge.bias,
            self._states,
            norm.weight.detach(),
            norm.bias.detach(),
            self._low,
            behind.weight,
            behind.bias,
            asked,
            rows,
            norm.eps,
            WIDTH=width,
            BLOCK=max(16, block),
            ROWS=_MERGED_ROWS,
            DEPTH=min(64, max(16, block)),
            POST=not self._pre,
            ASKS=ask is not None,
            num_warps=8,
            num_stages=3,
        )
        return asked

    def _attend_to_own(self, number: int, projected: Tensor) -> None:
        from softtargets.translation.kernels.step import own_attention_kernel

        cache = self._cache
        own_attention_kernel[(self._beams.batch * self._beams.beam, self._heads)](
            projected,
            cache.keys[number],
            cache.values[number],
            self._origins,
            cache.place,
            self._found,
            self._size**-0.5,
            CAPACITY=cache.line.shape[2],
            COLUMNS=power_of_2(self._size),
            BLOCK=_POSITIONS,
            num_warps=max(1, power_of_2(self._size) // 64),
            **self._heads_and_beams,
        )

    def _attend_to_source(self, number: int, queries: Tensor) -> None:
        from softtargets.translation.kernels.step import cross_attention_kernel

        cache, single = self._cache, self._weights.dtype == torch.float32
        length = cache.seen.shape[-1]
        cross_attention_kernel[(self._beams.batch, self._heads)](
            queries,
            cache.source_keys[number],
            cache.source_values[number],
            cache.seen.view(torch.uint8),
            self._found,
            length,
            self._size**-0.5,
            ROWS=max(16, power_of_2(self._beams.beam)),
            COLUMNS=max(16, power_of_2(self._size)),
            BLOCK=min(_SOURCE_KEYS, max(16, power_of_2(length))),
            WHOLE=power_of_2(length),
            PRECISION="ieee",
            num_warps=(4 if single else 1) * max(1, power_of_2(self._size) // 64),
            num_stages=1,  # few need a second turn, and what is read ahead takes room from others
            **self._heads_and_beams,
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
            BLOCK=power_of_2(chunks),
            COUNT=count,
            SEARCHED=power_of_2(min(count, chunks)),
            num_warps=1 if count <= 8 else 4,
        )
        return log_probs, tokens


def go_on(beams: Beams, origins: Tensor, added: Tensor, tokens: Tensor) -> None:
    """`Beams.go_on` in one launch.

    `origins` (batch, beam, capacity) say beside which hypothesis what each one looks back at was written, and are moved
    as `Cache.reorder` moves lines. The place is left for the caller to move on, together with the cache's.
    """
    from softtargets.translation.kernels.beam import go_on_kernel

    beams.steps += 1
    each, picks = added.shape[1], power_of_2(2 * beams.beam)
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
        origins,
        EOS=beams.eos,
        BEAM=beams.beam,
        EACH=each,
        NBEST=beams.nbest,
        MOST=beams.most,
        CAPACITY=origins.shape[2],
        FALLS=beams.falls,
        CANDIDATES=power_of_2(beams.beam * each),
        PICKS=picks,
        ENTRIES=power_of_2(beams.nbest + 2 * beams.beam),
        COLUMNS=_MOVED,
        num_warps=min(8, max(1, picks // 8)),
    )


def add(states: Tensor, added: Tensor | None, norm: nn.LayerNorm, low: Tensor, post: bool) -> None:
    """states += added, and `low` the same normed; if `post`, the states are normed too."""
    from softtargets.translation.kernels.step import sum_norm_kernel

    rows, width = states.shape
    sum_norm_kernel[(-(-rows // _NORM_ROWS),)](
        states,
        states if added is None else added,
        norm.weight.detach(),
        norm.bias.detach(),
        low,
        rows,
        norm.eps,
        WIDTH=width,
        BLOCK=power_of_2(width),
        ROWS=_NORM_ROWS,
        ADDS=added is not None,
        POST=post,
        num_warps=warps_for(width),
    )


def norms_of(layers: nn.ModuleList, last: nn.Module | None) -> list[nn.LayerNorm]:
    """In the order in which states come to them: behind each sum, or in front of each layer and once at the end."""
    found = [around.norm for layer in cast("list[Any]", layers) for around in layer.around]
    return found if last is None else [*found, cast("nn.LayerNorm", last)]


def power_of_2(number: int) -> int:
    """The next one."""
    return 1 << max(0, number - 1).bit_length()


def warps_for(width: int) -> int:
    """Of a program that has whole rows."""
    return min(8, max(1, power_of_2(width) // 256))
