"""Without a search: the likeliest token at every step, or one drawn at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.randomness import key_words, words
from softtargets.translation.beam import (
    NO_LOG_PROBS,
    ROUNDING,
    Hypothesis,
    NextLogProbs,
    check_end,
    check_temperature,
    checked,
    limits_of,
    whole,
)
from softtargets.translation.ranking import best


def greedy(
    next_log_probs: NextLogProbs,
    batch: int,
    bos: int,
    eos: int,
    max_length: int,
    device: torch.device | str = "cpu",
) -> list[Hypothesis]:
    """For each input, the sequence of the most probable token at every step; ties go to the lowest token.

    ``next_log_probs`` is as in `beam_search`, with one row for each input; a score is the log-probability.

    >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4]]).log()
    >>> greedy(lambda prefixes: table[prefixes[:, -1].clamp(max=1)], 1, bos=0, eos=2, max_length=3)[0].tokens
    [1, 0, 1]
    """

    def likeliest(log_probs: Tensor, step: int) -> Tensor:
        return best(log_probs, 1)[1]

    return _roll(next_log_probs, likeliest, limits_of(max_length, batch), bos, eos, device)


def sample(
    next_log_probs: NextLogProbs,
    batch: int,
    bos: int,
    eos: int,
    max_length: int | Sequence[int],
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    *,
    numbers: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """For each input one sequence, drawn token by token with probabilities ~ exp(log_prob / temperature).

    With `top_k` only so many of the likeliest tokens are drawn from. `max_length` is one number or one for each input.

    The draws depend only on the seed, the number of the input and of the step, and the probabilities. Inputs are
    numbered from 0, or by `numbers`, so that parts of a whole are drawn as the whole is. Scores are the model's own
    log-probabilities, at temperature 1.

    >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4]]).log()
    >>> drawn = sample(lambda prefixes: table[prefixes[:, -1].clamp(max=1)], 500, bos=0, eos=2, max_length=3)
    >>> sum(each.tokens == [2] for each in drawn) / 500  # 0.4 but for chance
    0.408
    """
    check_temperature(temperature)
    limits = limits_of(max_length, batch)
    if top_k is not None and whole(top_k, "top_k") < 1:
        raise SofttargetsError(f"must be at least 1, not {top_k}", argument="top_k")
    if numbers is not None and len(numbers) != batch:
        raise SofttargetsError(
            f"must be one for each of {batch} inputs, not {len(numbers)}", argument="numbers"
        )
    key = key_words(seed, "sampling")
    inputs = torch.arange(len(limits)) if numbers is None else torch.tensor(numbers)

    def drawn(log_probs: Tensor, step: int) -> Tensor:
        rows, vocabulary = log_probs.shape
        places = torch.arange(vocabulary, device=log_probs.device).expand(rows, -1)
        weights = log_probs
        if top_k is not None and top_k < vocabulary:
            weights, places = best(log_probs, top_k)
        weights = weights.double()
        # Less the largest first, so that those of a temperature near 0 are not all of them minus infinity.
        up_to = ((weights - weights.amax(-1, keepdim=True)) / temperature).softmax(-1).cumsum(-1)
        bits = words(key.to(log_probs.device), inputs.to(log_probs.device), step)
        uniform = ((bits[:, 0] << 21) + (bits[:, 1] >> 11)).double() * 2.0**-53
        chosen = (
            (up_to <= uniform[:, None] * up_to[:, -1:]).sum(1, keepdim=True).clamp(max=up_to.shape[1] - 1)
        )
        # Where nothing can be drawn, what is wrong with the row is taken, and refused if it is asked for.
        chosen = torch.where(up_to[:, -1:].isnan(), weights.argmax(1, keepdim=True), chosen)
        return places.gather(1, chosen)

    return _roll(next_log_probs, drawn, limits, bos, eos, device)


@torch.no_grad()
def _roll(
    next_log_probs: NextLogProbs,
    choose: Callable[[Tensor, int], Tensor],
    limits: Sequence[int],
    bos: int,
    eos: int,
    device: torch.device | str,
) -> list[Hypothesis]:
    """Step by step until all have ended; what comes after an end is thrown away."""
    bos, eos = whole(bos, "bos"), whole(eos, "eos")
    if not limits:
        return []
    if min(limits) < 1:
        raise SofttargetsError(f"must be at least 1, not {min(limits)}", argument="max_length")
    prefixes = torch.full((len(limits), 1), bos, device=device)
    steps: list[Tensor] = []
    for step in range(max(limits)):
        log_probs = checked(next_log_probs(prefixes), len(limits))
        check_end(eos, log_probs.shape[-1])
        tokens = choose(log_probs, step)
        steps.append(log_probs.gather(1, tokens))
        prefixes = torch.cat((prefixes.to(tokens.device), tokens), 1)
        if (prefixes[:, 1:] == eos).any(1).all():
            break
    found = []
    rows = zip(prefixes[:, 1:].tolist(), torch.cat(steps, 1).double().tolist(), limits, strict=True)
    for row, numbers, most in rows:
        row = row[:most]
        length = row.index(eos) + 1 if eos in row else len(row)
        _refuse_others(row, numbers[:length])
        log_prob = sum(numbers[:length])
        found.append(Hypothesis(row[:length], log_prob, log_prob, eos in row))
    return found


def _refuse_others(tokens: Sequence[int], log_probs: Sequence[float]) -> None:
    """Refuse tokens that were taken although they have no probability."""
    if not all(each <= ROUNDING for each in log_probs):
        raise SofttargetsError(NO_LOG_PROBS)
    if -math.inf in log_probs:
        before = list(tokens[: log_probs.index(-math.inf)])
        raise SofttargetsError(
            f"next_log_probs gives every token probability 0 after {before}, so nothing can follow; give the end a "
            "probability there"
        )
