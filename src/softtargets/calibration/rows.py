"""One pass over the scores: what each row says of its label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.calibration.given import Given, refuse


@dataclass(frozen=True)
class Rows:
    """A piece of the rows. All but `probabilities` (n, K), `labels` and `rank` is float64, (n,).

    `scratch` has the shape of the probabilities, for whoever needs room.
    `rank` is how many classes are ranked above the label: those with a higher score, and of those with the same
    score the ones before it, so that rank 0 is what argmax says.
    """

    probabilities: Tensor
    scratch: Tensor
    labels: Tensor
    confidence: Tensor
    at_label: Tensor
    rank: Tensor
    nll: Tensor
    brier: Tensor


def rows_of(given: Given, part: range | None = None) -> Iterator[Rows]:
    """All rows, or a part of them, piece after piece.

    Whoever consumes them all knows that they were numbers, or gets a ValueError: whether everything is finite, and
    probabilities add up to 1, is seen from sums on the device and asked once, at the end. The probabilities of a piece
    are overwritten by the next one.
    """
    buffers: list[Tensor] = []
    witness: Tensor | None = None
    for _, scores, labels in given.pieces(part):
        if not buffers:
            buffers = [torch.empty_like(scores, memory_format=torch.contiguous_format) for _ in range(2)]
        first, second = (buffer[: len(scores)] for buffer in buffers)
        seen = _doubt(scores, given)
        witness = seen if witness is None else torch.maximum(witness, seen)  # keeps what is not a number
        label = labels.unsqueeze(1)
        score = scores.gather(1, label)
        rank = _rank(scores, label, score, second)
        if given.from_logits:
            p = torch.softmax(scores, 1, out=first)
            top = p.amax(1).double()
            at_label = p.gather(1, label).squeeze(1).double()
            # log-sum-exp is the highest logit less the log of the highest probability: no overflow, no underflow.
            nll = scores.amax(1).double() - top.log() - score.squeeze(1).double()
        else:
            p = scores
            top = p.amax(1).double()
            at_label = score.squeeze(1).double()
            nll = -at_label.log()
        squares = torch.linalg.vector_norm(p, dim=1).double().square()
        yield Rows(
            probabilities=p,
            scratch=second,
            labels=labels,
            confidence=top,
            at_label=at_label,
            rank=rank,
            nll=nll.clamp_(min=0),
            brier=(squares - 2 * at_label + 1).clamp_(min=0),
        )
    if witness is not None and not float(witness) <= 0:
        refuse(given)


def _doubt(scores: Tensor, given: Given) -> Tensor:
    """At most 0 for good scores; above, or no number, for those that must be looked at."""
    if given.from_logits:
        return scores.sum() * 0  # infinities and what is not a number come out as nan
    apart = (scores.sum(1) - 1).abs().amax() - given.tolerance
    # None is above 1 if they add up to 1 and none is negative.
    return torch.maximum(apart, -scores.amin())


def _rank(scores: Tensor, label: Tensor, score: Tensor, buffer: Tensor) -> Tensor:
    # Comparisons written as numbers are counted several times faster than truth values.
    if scores.device.type != "cpu":
        above = torch.gt(scores, score, out=buffer).sum(1)
        return (above + _equal_before(scores, label, score)).long()
    # Where nothing else is as high as the label, as in most rows of a good model, there is nothing to count.
    others = (torch.ge(scores, score, out=buffer).sum(1) - 1).clamp_(
        min=0
    )  # what is no number is refused later
    below = (others > 0).nonzero().squeeze(1)
    some, of = scores[below], score[below]
    above = torch.gt(some, of, out=buffer[: len(some)]).sum(1)
    tied = (above < others[below]).nonzero().squeeze(1)
    if len(tied):
        above[tied] += _equal_before(some[tied], label[below[tied]], of[tied])
    return others.index_copy_(0, below, above).long()


def _equal_before(scores: Tensor, label: Tensor, score: Tensor) -> Tensor:
    places = torch.arange(scores.shape[1], device=scores.device)
    return ((scores == score) & (places < label)).sum(1)
