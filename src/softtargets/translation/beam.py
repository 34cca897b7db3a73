"""Beam search: the likeliest sequences under a model, on the device, with a stop that is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.translation.ranking import best

NextLogProbs = Callable[[Tensor], Tensor]
Penalty = Literal["length", "google"]
# Asking a GPU whether all is done makes the host wait for it.
_STEPS_BETWEEN_QUESTIONS = 8
_NEVER = -torch.inf
COLDEST = 1e-30  # temperature: in single precision logits divided by less are infinite
# A log-probability may be so much above 0: log_softmax in bfloat16 rounds.
ROUNDING = 1e-3
NO_LOG_PROBS = (
    "next_log_probs returned NaN or numbers above 0, not log-probabilities; return log_softmax of logits"
)


@dataclass(frozen=True, init=False)
class Hypothesis:
    """A sequence that a model may give.

    tokens:    without the symbol at the beginning, with the one at the end if it is finished.
    score:     what hypotheses are ranked by: the log-probability over the length penalty.
    log_prob:  the sum of the model's log-probabilities of the tokens.
    finished:  False where `max_length` tokens were there before the end.

    Unpacks as the tokens and their score: ``for tokens, score in beam_search(...)[0]``.
    """

    tokens: list[int]
    score: float
    log_prob: float
    finished: bool = True

    def __init__(self, tokens: list[int], score: float, log_prob: float, finished: bool = True) -> None:
        # A frozen dataclass sets its attributes in twice the time, and a search ends with thousands of these.
        own = self.__dict__
        own["tokens"], own["score"], own["log_prob"], own["finished"] = tokens, score, log_prob, finished

    def __iter__(self) -> Iterator[Any]:
        return iter((self.tokens, self.score))


@torch.no_grad()
def beam_search(
    next_log_probs: NextLogProbs,
    batch: int,
    beam: int,
    bos: int,
    eos: int,
    max_length: int | Sequence[int],
    length_penalty: float = 0.0,
    *,
    penalty: Penalty = "length",
    nbest: int | None = None,
    device: torch.device | str = "cpu",
) -> list[list[Hypothesis]]:
    """The best hypotheses for each of `batch` inputs, best first: `nbest` (`beam` unless told), or all there are.

    ``next_log_probs(prefixes)`` takes tokens (batch * beam, t), beginning with `bos`, and gives log-probabilities
    (batch * beam, V) of the next token; row i * beam + b belongs to input i, also when that is done. Where an input has
    fewer hypotheses, its other rows have probability zero, and what is given for them does not matter. The search goes
    on where the log-probabilities are; the first prefixes are on `device`. A hypothesis of l tokens, the end included,
    is scored by

        log_prob / l ** a                 penalty="length", as in fairseq and Hugging Face
        log_prob / ((5 + l) / 6) ** a     penalty="google", as in tensor2tensor (Wu et al. 2016, eq. 14)

    with a the `length_penalty`; 0 ranks by probability alone, and larger values favour longer hypotheses. In every step
    each input has up to `beam` unfinished hypotheses. Of their continuations, a finished one among the best `beam` is
    set aside, and the best `beam` others go on. At `max_length` tokens (one number, or one for each input) those are
    taken as they are, marked as unfinished and ranked by the same score: so the probabilities of all hypotheses that
    there are add up to one. The search for an input ends when no unfinished hypothesis can come to rank among the
    `nbest` any more, whatever follows; so the result is that of a search up to `max_length`. Log-probabilities are
    added in double precision. Of equal ones the better prefix comes first, then the lower token; what has probability
    zero is no hypothesis.

    >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4]]).log()  # after token 0, after token 1; token 2 ends
    >>> found = beam_search(lambda prefixes: table[prefixes[:, -1].clamp(max=1)], 1, 2, bos=0, eos=2, max_length=3)
    >>> [(each.tokens, round(each.log_prob, 3)) for each in found[0]]
    [([2], -0.916), ([1, 2], -1.427)]
    """
    limits = limits_of(max_length, batch)
    beam, bos, eos = whole(beam, "beam"), whole(bos, "bos"), whole(eos, "eos")
    nbest = beam if nbest is None else whole(nbest, "nbest")
    if not limits:
        check_search(beam, 1, nbest)
        _penalties(1, length_penalty, penalty)
        return []
    batch = len(limits)
    beams = Beams(limits, beam, bos, eos, length_penalty, penalty, nbest, device)
    while beams.steps < beams.most:
        log_probs = checked(next_log_probs(beams.prefixes()), batch * beam)
        beams = beams.on(log_probs.device)
        beams.step(log_probs)
        if beams.asks() and beams.all_done():
            break
    return beams.hypotheses()


class Beams:
    """The hypotheses of a search, all on the device; `step` asks the host for nothing and can be recorded.

    tokens:   of the unfinished hypotheses (batch, beam, longest); `last` are those of the newest step, (batch * beam,).
    parents:  from which row each of them goes on, (batch * beam,).
    place:    how many tokens there are, (1,); `steps` is the host's count, which replays of a recording do not move.
    """

    def __init__(
        self,
        limits: Sequence[int],
        beam: int,
        bos: int,
        eos: int,
        length_penalty: float = 0.0,
        penalty: Penalty = "length",
        nbest: int | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        nbest = beam if nbest is None else nbest
        check_search(beam, min(limits), nbest)
        self.batch, self.beam, self.bos, self.eos, self.nbest = len(limits), beam, bos, eos, nbest
        self.most, self.steps = max(limits), 0
        # Divided by more and more, what is negative can come closer to zero.
        self.falls = length_penalty >= 0
        self.penalties = _penalties(self.most, length_penalty, penalty).to(device)
        shape = self.batch, beam

        def whole(*sizes: int) -> Tensor:
            return torch.zeros(sizes, dtype=torch.int64, device=device)

        self.limits = whole(self.batch, 1)
        self.tokens = whole(*shape, self.most)
        self.last = whole(self.batch * beam)
        self.parents = torch.arange(self.batch * beam, device=device)
        self.place = whole(1)
        self.log_probs = torch.zeros(shape, dtype=torch.float64, device=device)
        # What is asked for at the end is in one piece, since every question to a GPU takes as long as a long answer.
        count = self.batch * nbest
        self._kept = whole(count * (self.most + 3) + count // 8 + 1)
        self._host: Tensor | None = None  # the same, in memory that a GPU writes to by itself
        self._name_kept()
        self.done = torch.zeros(self.batch, dtype=torch.bool, device=device)
        self._answer: Tensor | None = None  # in memory that a GPU writes to by itself
        self._answered: Any = None
        self.begin(limits)

    def begin(self, limits: Sequence[int]) -> None:
        """Begin anew, in place."""
        self.limits.copy_(torch.from_numpy(np.fromiter(limits, np.int64)).view(-1, 1))
        self.clear()

    def clear(self) -> None:
        """Begin anew with the limits that there are; asks the host for nothing."""
        self.steps = 0
        for each in (self.tokens, self.place, self.done, self.wrong, self.kept_ends):
            each.zero_()
        for each in (self.log_probs, self.kept_log_probs, self.kept_scores):
            each.fill_(_NEVER)
        self.log_probs[:, 0].zero_()  # one hypothesis, and room for others
        self.last.fill_(self.bos)

    def on(self, device: torch.device) -> Beams:
        """The same, there."""
        if self.place.device != device:
            for name, value in vars(self).items():
                if isinstance(value, Tensor):
                    setattr(self, name, value.to(device))
            self._name_kept()
        return self

    def _name_kept(self) -> None:
        """The parts of what is kept."""
        kept, count = (self.batch, self.nbest), self.batch * self.nbest
        parts = self._kept[: 3 * count].view(3, *kept)
        self.kept_scores, self.kept_log_probs = parts[:2].view(torch.float64).unbind()
        self.kept_lengths = parts[2]
        self.kept_tokens = self._kept[3 * count : (3 + self.most) * count].view(*kept, self.most)
        flags = self._kept[(3 + self.most) * count :].view(torch.bool)
        self.kept_ends, self.wrong = flags[:count].view(kept), flags[count]

    def prefixes(self) -> Tensor:
        """Of all hypotheses (batch * beam, t), with the symbol at the beginning."""
        tokens = self.tokens[:, :, : self.steps].flatten(0, 1)
        return torch.cat((tokens.new_full((len(tokens), 1), self.bos), tokens), 1)

    @torch.no_grad()
    def step(self, log_probs: Tensor) -> None:
        """Every hypothesis one token further, by log-probabilities (batch * beam, V)."""
        self.go_on(*best(log_probs, self.wanted(log_probs.shape[-1])))

    def wanted(self, vocabulary: int) -> int:
        """How many of so many tokens `go_on` wants to know of each hypothesis, the likeliest."""
        check_end(self.eos, vocabulary)
        # As many as may go on, and the end.
        return min(self.beam + 1, vocabulary)

    @torch.no_grad()
    def go_on(self, added: Tensor, tokens: Tensor) -> None:
        """A step by the likeliest tokens (batch * beam, wanted) and their log-probabilities, likeliest first."""
        self.steps += 1
        beam, each = self.beam, added.shape[-1]
        # What is asked of prefixes that have probability zero, for want of others, may be anything.
        added = added.masked_fill((self.log_probs == _NEVER).view(-1, 1), 0)
        self.wrong |= (added.isnan() | (added > ROUNDING)).any()
        sums = self.log_probs[..., None] + added.double().clamp(max=0).reshape(-1, beam, each)
        sums, chosen = sums.flatten(1).sort(dim=1, descending=True, stable=True)
        sums, chosen = sums[:, : 2 * beam], chosen[:, : 2 * beam]
        tokens, parents = tokens.reshape(self.batch, -1).gather(1, chosen), chosen // each

        ends = tokens == self.eos
        # Of twice as many, enough are left: each prefix has one end at most.
        others = ends.to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam]
        alive = sums.masked_fill(ends, _NEVER).gather(1, others)
        new, from_here = tokens.gather(1, others), parents.gather(1, others)
        written = self._continued(from_here, new)
        ended = sums.masked_fill(~ends, _NEVER)[:, :beam]
        length = self.place + 1
        cut = self.limits == length
        self._keep(
            torch.cat((self._continued(parents[:, :beam], tokens[:, :beam]), written), 1),
            torch.cat((ended, alive.masked_fill(~cut, _NEVER)), 1),
            length,
        )
        self.tokens.copy_(written)
        self.log_probs.copy_(alive.masked_fill(cut, _NEVER))
        self.last.copy_(new.flatten())
        first = torch.arange(0, self.batch * beam, beam, device=new.device)[:, None]
        self.parents.copy_((from_here + first).flatten())
        self.place.copy_(length)
        shortest = self.penalties.index_select(0, length + 1)
        bound = self.penalties[self.limits] if self.falls else shortest
        self.done.copy_(self.kept_scores[:, -1] >= (self.log_probs / bound).amax(1))

    def asks(self) -> bool:
        """Whether it is time to ask if all is done: on a GPU only now and then."""
        return not self.place.is_cuda or self.steps % _STEPS_BETWEEN_QUESTIONS == 0

    def all_done(self) -> bool:
        """Whether no hypothesis can come to be among the best any more."""
        return self.ask()()

    def ask(self) -> Callable[[], bool]:
        """The same as of now, for later: what is returned waits for the answer, and for nothing that is asked of a
        device in the meantime.
        """
        if not self.done.is_cuda:
            done = self.done.all()
            return lambda: bool(done)
        if self._answer is None:
            self._answer = torch.zeros((), dtype=torch.bool, pin_memory=True)
            self._answered = torch.cuda.Event()
        answer, answered = self._answer, self._answered
        answer.copy_(self.done.all(), non_blocking=True)
        answered.record()

        def wait() -> bool:
            answered.synchronize()
            return bool(answer)

        return wait

    def hypotheses(self, inputs: int | None = None) -> list[list[Hypothesis]]:
        """The best finished hypotheses of each input, or of the first so many; to be asked at the end."""
        numbers, count = self._fetched(), self.batch * self.nbest
        if numbers[(3 + self.most) * count :].view(np.bool_)[count]:
            raise SofttargetsError(NO_LOG_PROBS)
        wanted = (self.batch if inputs is None else inputs) * self.nbest
        scores, log_probs = numbers[: 2 * count].view(np.float64).reshape(2, count)[:, :wanted]
        lengths = numbers[2 * count : 2 * count + wanted]
        tokens = numbers[3 * count :][: wanted * self.most].reshape(wanted, self.most)
        ends = numbers[(3 + self.most) * count :].view(np.bool_)[:wanted]
        there = scores > _NEVER
        longest = int(lengths[there].max(initial=0))
        rows = tokens[:, :longest].tolist()
        if (lengths[there] < longest).any():
            rows = [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]
        flat = list(map(Hypothesis, rows, scores.tolist(), log_probs.tolist(), ends.tolist()))
        found = [flat[begin : begin + self.nbest] for begin in range(0, wanted, self.nbest)]
        return found if there.all() else [[one for one in row if one.score > _NEVER] for row in found]

    def _fetched(self) -> Any:
        """What is kept, where the host can look at it, until it is asked for again."""
        if not self._kept.is_cuda:
            return self._kept.numpy()
        if self._host is None:
            self._host = torch.empty_like(self._kept, device="cpu", pin_memory=True)
        self._host.copy_(self._kept, non_blocking=True)
        torch.cuda.current_stream(self._kept.device).synchronize()
        return self._host.numpy()

    def _continued(self, parents: Tensor, tokens: Tensor) -> Tensor:
        past: Tensor = self.tokens.gather(1, parents[..., None].expand(-1, -1, self.most))
        past.index_copy_(2, self.place, tokens[..., None])
        return past

    def _keep(self, tokens: Tensor, log_probs: Tensor, length: Tensor) -> None:
        """What is finished (batch, 2 * beam), first ended ones and then cut ones, unless others are better."""
        scores = torch.cat((self.kept_scores, log_probs / self.penalties.index_select(0, length)), 1)
        scores, order = scores.sort(dim=1, descending=True, stable=True)
        order = order[:, : self.nbest]
        self.kept_scores.copy_(scores[:, : self.nbest])
        ends = torch.arange(2 * self.beam, device=order.device) < self.beam
        for kept, new in (
            (self.kept_log_probs, log_probs),
            (self.kept_lengths, length.expand_as(log_probs)),
            (self.kept_ends, ends.expand_as(log_probs)),
        ):
            kept.copy_(torch.cat((kept, new), 1).gather(1, order))
        everything = torch.cat((self.kept_tokens, tokens), 1)
        self.kept_tokens.copy_(everything.gather(1, order[..., None].expand(-1, -1, self.most)))


def check_search(beam: int, shortest: int, nbest: int) -> None:
    """Refuse numbers that no search can have."""
    if beam < 1:
        raise SofttargetsError(f"must be at least 1, not {beam}", argument="beam")
    if shortest < 1:
        raise SofttargetsError(f"must be at least 1, not {shortest}", argument="max_length")
    if not 1 <= nbest <= beam:
        raise SofttargetsError(f"must be from 1 to the beam, {beam}, not {nbest}", argument="nbest")


def check_end(eos: int, vocabulary: int) -> None:
    """Refuse an end that is no token."""
    if not 0 <= eos < vocabulary:
        raise SofttargetsError(f"must be one of {vocabulary} tokens, not {eos}", argument="eos")


def checked(log_probs: Any, rows: int) -> Tensor:
    """What `next_log_probs` gave, if it can be log-probabilities of so many rows."""
    if not isinstance(log_probs, Tensor):
        raise SofttargetsError(
            f"next_log_probs must return a tensor ({rows}, V) of log-probabilities, not {type(log_probs).__name__}"
        )
    if log_probs.shape[:-1] != (rows,) or not log_probs.is_floating_point():
        raise SofttargetsError(
            f"next_log_probs must return log-probabilities ({rows}, V), not {tuple(log_probs.shape)} of "
            f"{log_probs.dtype}"
        )
    return log_probs


def check_temperature(temperature: float) -> None:
    """Refuse what logits cannot be divided by: 0, infinity, and what makes infinities of them.

    >>> check_temperature(1e-40)
    Traceback (most recent call last):
    softtargets.exceptions.SofttargetsError: temperature must be at least 1e-30 and finite, not 1e-40
    """
    if not temperature > 0:
        raise SofttargetsError(f"must be above 0, not {temperature}", argument="temperature")
    if not COLDEST <= temperature < torch.inf:
        raise SofttargetsError(
            f"must be at least {COLDEST:g} and finite, not {temperature}", argument="temperature"
        )


def limits_of(max_length: int | Sequence[int], batch: int) -> list[int]:
    """The most tokens of each input, from one number or one for each."""
    batch = whole(batch, "batch")
    if batch < 0:
        raise SofttargetsError(f"must be at least 0, not {batch}", argument="batch")
    several = isinstance(max_length, Iterable) and getattr(max_length, "ndim", 1) > 0
    given: Iterable[int] = max_length if several else [max_length] * batch  # type: ignore[list-item, assignment]
    limits = [whole(each, "max_length") for each in given]
    if len(limits) != batch:
        raise SofttargetsError(
            f"must be one number or one for each of {batch} inputs, not {len(limits)}", argument="max_length"
        )
    return limits


def whole(value: Any, argument: str) -> int:
    """A whole number of whatever kind, or a refusal."""
    try:
        return index(value)
    except TypeError:
        raise SofttargetsError(f"must be a whole number, not {value!r}", argument=argument) from None


def _penalties(most: int, length_penalty: float, penalty: Penalty) -> Tensor:
    """What log-probabilities of hypotheses of each length are divided by, 0 to one more than the most."""
    lengths = torch.arange(most + 2, dtype=torch.float64).clamp(min=1)
    if penalty not in ("length", "google"):
        raise SofttargetsError(f"must be length or google, not {penalty!r}", argument="penalty")
    table = torch.pow(lengths if penalty == "length" else (5 + lengths) / 6, length_penalty)
    if not (table.isfinite() & (table > 0)).all():
        raise SofttargetsError(
            f"of {length_penalty} is too large for {most} tokens; 0 to 2 is usual", argument="length_penalty"
        )
    return table
