"""Translating with a Transformer: beam search with what was computed before kept, many sentences at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.models import Cache, Transformer, evaluating, known_attention
from softtargets.translation.batching import longest_first, padded, prefixes, room_for, turns
from softtargets.translation.beam import Beams, Hypothesis, Penalty, check_search, check_temperature
from softtargets.translation.kernel_reading import KernelReading, room
from softtargets.translation.kernel_step import KernelStep, Weights, addresses, compute_dtype, fits
from softtargets.translation.ranking import HAS_KERNELS, likeliest
from softtargets.translation.sources import Numbers, Packed, check_tokens, checked_sources, packed_sources
from softtargets.translation.symbols import BOS, EOS

Progress = Callable[[int, int], None]
# Positions of hypotheses that are kept at a time. A CPU has the smaller number in its cache; a GPU is busy with more.
_AT_A_TIME = {"cpu": 8192, "cuda": 2**18}
# On a GPU lengths of sources and of translations are rounded up to multiples of these, so that few kinds of batches are
# recorded.
_SOURCE_ROUNDED, _ROUNDED = 8, 16
# Shapes of batches that are remembered: each has its keys and values, some gigabytes for a large model.
_KINDS = 4
# Steps between two questions to a GPU whether all is done.
_STEPS_BETWEEN_QUESTIONS = 4


class Codec(Protocol):
    """What a `Translator` asks of a tokeniser."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of texts."""

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """The texts of tokens."""


def decode(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    beam: int = 5,
    length_penalty: float = 1.0,
    temperature: float = 1.0,
    max_length: int | None = None,
    nbest: int = 1,
    *,
    penalty: Penalty = "length",
    tokens_at_a_time: int | None = None,
    progress: Progress | None = None,
) -> list[list[Hypothesis]]:
    """The best translations of each source, best first, in the order of the sources.

    What `beam_search` finds for log_softmax(logits / temperature): the same tokens, log-probabilities up to rounding. A
    source is a list of tokens; the symbol at its end is added where it is missing. Without `max_length` a translation
    has at most 1.2 times as many tokens as its source and 10 more (fairseq's recipe for IWSLT). An empty source has the
    empty translation, with probability one, without asking the model. Of one that is longer than the model can take,
    the end is cut off, with one warning that counts them. Unknown words are tokens like others.

    Sources of similar length are translated together, as many as have `tokens_at_a_time` positions of hypotheses; on a
    GPU a step is recorded as a CUDA graph for each kind of batch. ``progress(done, all)`` is called after each batch.

    >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
    <...>
    >>> net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    >>> (best,), (nothing,) = decode(net, [[5, 6], []], beam=3, max_length=4)
    >>> len(best.tokens), nothing
    (4, Hypothesis(tokens=[2], score=0.0, log_prob=0.0, finished=True))
    """
    searcher = Searcher(model, beam, length_penalty, temperature, nbest, penalty=penalty)
    return searcher(sources, max_length, tokens_at_a_time=tokens_at_a_time, progress=progress)


class Searcher:
    """`decode` for repeated use of one model: a GPU reuses the graphs recorded for earlier batches of the same shape.

    Weights may be trained on between two calls. On a CPU nothing is kept, and it is no faster than `decode`.

    >>> net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    >>> search = Searcher(net, beam=3)
    >>> search([[5, 6]]) == decode(net, [[5, 6]], beam=3)
    True
    """

    def __init__(
        self,
        model: Transformer,
        beam: int = 5,
        length_penalty: float = 1.0,
        temperature: float = 1.0,
        nbest: int = 1,
        *,
        penalty: Penalty = "length",
    ) -> None:
        check_temperature(temperature)
        check_search(beam, 1, nbest)
        self.model, self.beam = model, beam
        self._search = _Search(model, beam, length_penalty, penalty, nbest, temperature)

    def __call__(
        self,
        sources: Sequence[Sequence[int]],
        max_length: int | None = None,
        *,
        tokens_at_a_time: int | None = None,
        progress: Progress | None = None,
    ) -> list[list[Hypothesis]]:
        """The best translations of each source, as `decode` gives them."""
        if max_length is not None:
            check_search(self.beam, max_length, 1)
        model, search = self.model, self._search
        by_kernels = search.begin()
        checked = packed_sources(model, sources)
        most = room_for(model, _AT_A_TIME) if tokens_at_a_time is None else tokens_at_a_time
        (asked,) = np.nonzero(checked.lengths > 1)
        limits = _limits(model, checked.lengths[asked] - 1, max_length)
        found: list[list[Hypothesis]] = [[] for _ in range(len(checked))]
        for place in np.nonzero(checked.lengths == 1)[0].tolist():
            found[place] = [Hypothesis([EOS], 0.0, 0.0)]
        done = len(checked) - len(asked)
        with looking(model, evaluates=not by_kernels):
            for chosen in turns(limits, most // self.beam):
                places = asked[chosen]
                rows = search.run(checked.take(places), limits[chosen])
                for place, hypotheses in zip(places.tolist(), rows, strict=True):
                    found[place] = hypotheses
                done += len(places)
                if progress is not None:
                    progress(done, len(checked))
        return found


def score(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    temperature: float = 1.0,
    *,
    end: bool = True,
    tokens_at_a_time: int | None = None,
) -> list[list[float]]:
    """The log-probability of every token of each target, given its source and the tokens before it.

    They add up to the `log_prob` that `decode` gives for the same tokens; of an empty source, for which `decode` does
    not ask the model, they are the model's. The symbol at the end is added to targets where it is missing, unless `end`
    is False. Sources that are too long are cut as in `decode`; such targets are refused.

    >>> net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    >>> [len(each) for each in score(net, [[5, 6], [7]], [[5, 5, 4], []])]
    [4, 1]
    """
    if len(sources) != len(targets):
        raise SofttargetsError(f"there are {len(sources)} sources and {len(targets)} targets")
    check_temperature(temperature)
    checked = checked_sources(model, sources)
    wanted = [[*each] + ([EOS] if end and list(each[-1:]) != [EOS] else []) for each in targets]
    check_tokens(model, Packed.of(wanted), "targets")
    longest = max(map(len, wanted), default=0)
    if longest > model.longest:
        raise SofttargetsError(
            f"a target of {longest} tokens is longer than the {model.longest} of the model"
        )
    device = model.head.weight.device
    room = room_for(model, _AT_A_TIME) if tokens_at_a_time is None else tokens_at_a_time
    found: list[list[float]] = [[] for _ in wanted]
    lengths = {place: max(len(checked[place]), len(each)) for place, each in enumerate(wanted) if each}
    with looking(model):
        for places in longest_first(lengths, room):
            source = padded([checked[place] for place in places]).to(device)
            labels = padded([wanted[place] for place in places]).to(device)
            said = _log_probs(model.head(model.features(source, prefixes(labels))), temperature)
            numbers = said.gather(-1, labels[..., None])[..., 0].double().tolist()
            for place, row in zip(places, numbers, strict=True):
                found[place] = row[: len(wanted[place])]
    return found


class Translator:
    """Text in, text out: a model together with its tokeniser."""

    def __init__(self, model: Transformer, tokeniser: Codec) -> None:
        self.model, self.tokeniser = model, tokeniser
        self._last: tuple[dict[str, Any], Searcher] | None = None

    def translate(
        self,
        texts: Sequence[str],
        *,
        max_length: int | None = None,
        tokens_at_a_time: int | None = None,
        progress: Progress | None = None,
        **options: Any,
    ) -> list[str]:
        """The best translation of each text; options are those of `decode`. The same as last time are quicker."""
        if self._last is None or self._last[0] != options or self._last[1].model is not self.model:
            self._last = options, Searcher(self.model, **options)
        found = self._last[1](
            self.tokeniser.encode(texts), max_length, tokens_at_a_time=tokens_at_a_time, progress=progress
        )
        return self.tokeniser.decode([best[0].tokens if best else [] for best in found])


@dataclass
class _Kind:
    """What batches of one shape share: where they are computed, and on a GPU what is recorded."""

    beams: Beams
    begin: Callable[[Packed, Numbers], None]  # with sources and limits, ready for the first step
    replay: Callable[[], None]  # a step


class _Search:
    """Beam search over one model; what is recorded for one batch serves others of its shape."""

    def __init__(
        self,
        model: Transformer,
        beam: int,
        length_penalty: float,
        penalty: Penalty,
        nbest: int,
        temperature: float,
    ) -> None:
        self._model, self._beam, self._temperature = model, beam, temperature
        self._options = beam, BOS, EOS, length_penalty, penalty, nbest
        self._kinds: dict[tuple[int, int, int], _Kind] = {}
        self._pool: Any = None
        self._weights: Weights | None = None
        self._where: tuple[Any, ...] = ()

    def begin(self) -> bool:
        """Look at the model's weights anew; what was recorded with them elsewhere is of no use.

        Says whether kernels read them, which ask no layer, so that it does not matter whether the model is in training.
        """
        dtype = compute_dtype(self._model)
        has_kernels = _has_kernels(self._model, dtype)
        where = dtype, has_kernels, addresses(self._model)
        if where != self._where:
            self._kinds.clear()
            self._pool, self._where = None, where
            self._weights = Weights(self._model, dtype) if has_kernels else None
        elif self._weights is not None:
            self._weights.refresh()
        return has_kernels

    def run(self, sources: Packed, limits: Numbers) -> list[list[Hypothesis]]:
        """Of sources that are not empty, each with the most tokens that a translation may have."""
        kind = self.ready(sources, limits)
        records, most = _records(self._model.head.weight.device), int(limits.max())
        answer: Callable[[], bool] | None = None
        for step in range(1, most + 1):
            kind.replay()
            # The device has another step to take while it is waited for.
            if answer is not None and answer():
                break
            asks = step < most and (not records or step % _STEPS_BETWEEN_QUESTIONS == 0)
            answer = kind.beams.ask() if asks else None
            if answer is not None and not records and answer():
                break
        return kind.beams.hypotheses(len(sources))

    def ready(self, sources: Packed, limits: Numbers) -> _Kind:
        """What computes such a batch, before the first step."""
        records = _records(self._model.head.weight.device)
        longest, capacity = int(sources.lengths.max()), int(limits.max())
        if records:
            # Up to the next shape, with sources that are done after one step.
            capacity = min(_up(capacity, _ROUNDED), self._model.longest)
            longest = min(_up(longest, _SOURCE_ROUNDED), self._model.longest)
            blank = _blanks(len(sources))
            sources = sources.and_blanks(blank)
            limits = np.concatenate((limits, np.ones(blank, np.int64)))
        shape = len(sources), longest, capacity
        kind = self._kinds.pop(shape, None)
        if kind is None:
            # Of those that are kept one stays at least: graphs share memory that goes with the last of them.
            while len(self._kinds) >= (_KINDS if records else 1):
                del self._kinds[next(iter(self._kinds))]
            kind = self._by_layers(sources, *shape) if self._weights is None else self._by_kernels(*shape)
        self._kinds[shape] = kind  # now the newest
        kind.begin(sources, limits)
        return kind

    def _by_kernels(self, inputs: int, longest: int, capacity: int) -> _Kind:
        weights = self._weights
        assert weights is not None
        cache = room(self._model, weights.dtype, inputs, longest, self._beam, capacity)
        beams = self._beams(inputs, capacity)
        reading = KernelReading(self._model, weights, cache, beams)
        step = KernelStep(self._model, weights, cache, beams, self._temperature)
        readings: dict[int, Callable[[], None] | None] = {}

        def begin(sources: Packed, limits: Numbers) -> None:
            positions = reading.put(sources, limits)
            read = partial(reading.read, positions)
            # What comes once is not worth recording.
            comes_again = positions in readings
            recorded = readings.pop(positions, None)
            if recorded is None and comes_again:
                recorded = self._recorded(read)
            if len(readings) >= _KINDS:
                del readings[next(iter(readings))]
            readings[positions] = recorded
            (recorded or read)()

        return _Kind(beams, begin, self._recorded(step))

    def _by_layers(self, sources: Packed, inputs: int, longest: int, capacity: int) -> _Kind:
        source = sources.padded(longest).to(self._model.head.weight.device)
        cache = self._model.start(self._model.encode(source), self._beam, capacity)
        beams = self._beams(inputs, capacity)
        reads: list[Callable[[], None]] = []

        def step() -> None:
            states, _ = self._model.advance(beams.last, cache)
            logits = self._model.head(states)
            beams.go_on(*likeliest(logits, beams.wanted(logits.shape[-1]), self._temperature))
            cache.reorder(beams.parents)

        def begin(sources: Packed, limits: Numbers) -> None:
            if reads:
                source.copy_(sources.padded(longest))
                reads[0]()
            else:  # which was read to make the cache
                reads.append(self._recorded(partial(self._read, source, cache)))
            beams.begin(limits.tolist())

        return _Kind(beams, begin, self._recorded(step))

    def _beams(self, inputs: int, capacity: int) -> Beams:
        """With room for the whole capacity, so that they serve all limits up to it."""
        return Beams([capacity] * inputs, *self._options, self._model.head.weight.device)

    def _read(self, source: Tensor, cache: Cache) -> None:
        kind = source.device.type
        # What torch keeps of converted weights would be gone when a recording is replayed.
        with torch.autocast(
            kind, torch.get_autocast_dtype(kind), torch.is_autocast_enabled(kind), cache_enabled=False
        ):
            self._model.start(self._model.encode(source), cache=cache)

    def _recorded(self, step: Callable[[], None]) -> Callable[[], None]:
        """The same as a recording, on a GPU."""
        if not _records(self._model.head.weight.device):
            return step
        if self._pool is None and torch.cuda.is_available():
            self._pool = torch.cuda.graph_pool_handle()
        return _Recorded(step, self._pool)


def _records(device: torch.device) -> bool:
    return device.type == "cuda"


def _has_kernels(model: Transformer, dtype: torch.dtype) -> bool:
    return model.head.weight.is_cuda and HAS_KERNELS and fits(model, dtype)


class _Recorded:
    """A step that is taken the first time, and recorded; from then on it is the replay of a CUDA graph.

    Graphs of one search have in common where they keep what they need, since one is replayed at a time.
    """

    def __init__(self, step: Callable[[], None], pool: Any) -> None:
        self._step, self._pool = step, pool
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self._graph is not None:
            self._graph.replay()
            return
        here, stream = torch.cuda.current_stream(), torch.cuda.Stream()
        stream.wait_stream(here)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(stream):
            self._step()
            # Not by ``torch.cuda.graph``, which first gives all memory that is free back to the device.
            graph.capture_begin(self._pool, capture_error_mode="thread_local")
            try:
                self._step()
            finally:
                graph.capture_end()
        here.wait_stream(stream)
        self._graph = graph


def _log_probs(logits: Tensor, temperature: float) -> Tensor:
    return (logits / temperature if temperature != 1 else logits).log_softmax(-1)


def most_tokens(model: Transformer, pieces: int, max_length: int | None = None) -> int:
    """How long a translation of so many pieces may be: fairseq's 1.2 n + 10 unless given, if the model takes it."""
    return min(int(1.2 * pieces) + 10 if max_length is None else max_length, model.longest)


def _limits(model: Transformer, pieces: Numbers, max_length: int | None) -> Numbers:
    """`most_tokens` of each."""
    wanted = (1.2 * pieces).astype(np.int64) + 10 if max_length is None else np.full(len(pieces), max_length)
    limits: Numbers = np.minimum(wanted, model.longest)
    return limits


def _up(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple


def _blanks(count: int) -> int:
    """How many are missing to a power of two, or beyond 64 to a multiple of 64."""
    return (1 << (count - 1).bit_length()) - count if count <= 64 else -count % 64


@contextmanager
def looking(model: Transformer, evaluates: bool = True) -> Iterator[None]:
    """In evaluation mode, without gradients, on the model's device: kernels are launched on the current one.

    Not `evaluates`: in whatever mode it is in, where no layer is asked; to change that of all layers takes long.
    """
    device = model.head.weight.device
    there = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    mode = evaluating(model) if evaluates else nullcontext()
    with mode, torch.no_grad(), known_attention(), there:
        yield
