"""Without a search: the likeliest token at every step, or one drawn at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.randomness import key_words, words
from softtargets.translation.beam import Hypothesis, NextLogProbs
from softtargets.translation.ranking import best


def greedy(
    next_log_probs: NextLogProbs,
    batch: int,
    bos: int,
    eos: int,
    max_length: int,
    device: torch.device | str = "cpu",
) -> list[Hypothesis]:
    """For each input the sequence that takes the likeliest token at every step, of equals the lowest.

    ``next_log_probs`` is as in `beam_search`, with one row for each input; a score is the log-probability.

    >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4]]).log()
    >>> greedy(lambda prefixes: table[prefixes[:, -1].clamp(max=1)], 1, bos=0, eos=2, max_length=3)[0].tokens
    [1, 0, 1]
    """

    def likeliest(log_probs: Tensor, step: int) -> Tensor:
        return best(log_probs, 1)[1]

    return _roll(next_log_probs, likeliest, batch, bos, eos, max_length, device)


def sample(
    next_log_probs: NextLogProbs,
    batch: int,
    bos: int,
    eos: int,
    max_length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    device: torch.device | str = "cpu",
    *,
    numbers: Sequence[int] | None = None,
) -> list[Hypothesis]:
    """For each input one sequence, drawn token by token with probabilities ~ exp(log_prob / temperature).

    With `top_k` only so many of the likeliest tokens are drawn from.

    What is drawn depends on the seed, the number of the input and of the step, and the probabilities, and on nothing
    else. Inputs are numbered from 0, or by `numbers`, so that parts of a whole are drawn as the whole is. Scores are
    the model's own log-probabilities, at temperature 1.

    >>> table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4]]).log()
    >>> drawn = sample(lambda prefixes: table[prefixes[:, -1].clamp(max=1)], 500, bos=0, eos=2, max_length=3)
    >>> sum(each.tokens == [2] for each in drawn) / 500  # 0.4 but for chance
    0.408
    """
    if not temperature > 0:
        raise SofttargetsError(f"must be above 0, not {temperature}", argument="temperature")
    if top_k is not None and top_k < 1:
        raise SofttargetsError(f"must be at least 1, not {top_k}", argument="top_k")
    if numbers is not None and len(numbers) != batch:
        raise SofttargetsError(
            f"must be one for each of {batch} inputs, not {len(numbers)}", argument="numbers"
        )
    key = key_words(seed, "sampling")
    inputs = torch.arange(batch) if numbers is None else torch.tensor(numbers)

    def drawn(log_probs: Tensor, step: int) -> Tensor:
        rows, vocabulary = log_probs.shape
        places = torch.arange(vocabulary, device=log_probs.device).expand(rows, -1)
        weights = log_probs
        if top_k is not None and top_k < vocabulary:
            weights, places = best(log_probs, top_k)
        up_to = (weights.double() / temperature).softmax(-1).cumsum(-1)
        bits = words(key.to(log_probs.device), inputs.to(log_probs.device), step)
        uniform = ((bits[:, 0] << 21) + (bits[:, 1] >> 11)).double() * 2.0**-53
        chosen = (
            (up_to <= uniform[:, None] * up_to[:, -1:]).sum(1, keepdim=True).clamp(max=up_to.shape[1] - 1)
        )
        return places.gather(1, chosen)

    return _roll(next_log_probs, drawn, batch, bos, eos, max_length, device)


@torch.no_grad()
def _roll(
    next_log_probs: NextLogProbs,
    choose: Callable[[Tensor, int], Tensor],
    batch: int,
    bos: int,
    eos: int,
    max_length: int,
    device: torch.device | str,
) -> list[Hypothesis]:
    """Step by step until all have ended; what comes after an end is thrown away."""
    if max_length < 1:
        raise SofttargetsError(f"must be at least 1, not {max_length}", argument="max_length")
    if batch == 0:
        return []
    prefixes = torch.full((batch, 1), bos, device=device)
    steps: list[Tensor] = []
    for step in range(max_length):
        log_probs = next_log_probs(prefixes)
        if log_probs.shape[:-1] != (batch,):
            raise SofttargetsError(f"next_log_probs must give ({batch}, V), not {tuple(log_probs.shape)}")
        tokens = choose(log_probs, step)
        steps.append(log_probs.gather(1, tokens))
        prefixes = torch.cat((prefixes.to(tokens.device), tokens), 1)
        if (prefixes[:, 1:] == eos).any(1).all():
            break
    found = []
    for row, numbers in zip(prefixes[:, 1:].tolist(), torch.cat(steps, 1).double().tolist(), strict=True):
        length = row.index(eos) + 1 if eos in row else len(row)
        log_prob = sum(numbers[:length])
        found.append(Hypothesis(row[:length], log_prob, log_prob, eos in row))
    return found
