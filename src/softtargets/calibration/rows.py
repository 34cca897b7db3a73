"""One pass over the scores: what each row says of its label."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from softtargets.calibration.scores import Piece, Scores
from softtargets.calibration.workspace import Workspace


@dataclass(frozen=True)
class RowStatistics:
    """Numbers of some rows, (n,) each, in the precision of the pass; what follows from them is float64.

    `top` is the highest probability, `highest` the highest score; `at_label` and `score` are those of the label; `norm`
    is the length of the vector of probabilities. `rank` is how many classes are ranked above the label: those with a
    higher score, and of those with the same score the ones before it, so that rank 0 is what argmax says.
    """

    from_logits: bool
    labels: Tensor
    score: Tensor
    highest: Tensor
    at_label: Tensor
    top: Tensor
    norm: Tensor
    rank: Tensor

    @classmethod
    def joined(cls, parts: Sequence[RowStatistics]) -> RowStatistics:
        """Several, one after the other."""
        names = [field.name for field in fields(cls) if field.name != "from_logits"]
        joined = {name: torch.cat([getattr(part, name) for part in parts]) for name in names}
        return cls(from_logits=parts[0].from_logits, **joined)

    @property
    def confidence(self) -> Tensor:
        """The probability of the top label."""
        return self.top.double()

    @property
    def nll(self) -> Tensor:
        """The negative log-likelihood of the label."""
        if not self.from_logits:
            return (-self.at_label.double().log()).clamp_(min=0)
        # Log-sum-exp is the highest logit less the log of the highest probability: no overflow, no underflow.
        # The difference of logits first: beside a huge logit, the log would be lost.
        return (self.highest.double() - self.score.double() - self.top.double().log()).clamp_(min=0)

    @property
    def brier(self) -> Tensor:
        """The squared distance between the probabilities and the label."""
        return (self.norm.double().square() - 2 * self.at_label.double() + 1).clamp_(min=0)


def look_at(piece: Piece, of: Scores, room: Tensor, scratch: Tensor) -> tuple[RowStatistics, Tensor, Tensor]:
    """Look at a piece: its rows, their probabilities (n, K), and a doubt whether to believe them.

    The doubt is at most 0 where the scores are good, and above 0 or no number where they must be looked at again. It
    stays on the device: to ask for each piece would wait for it. `room`, which may become the probabilities, and
    `scratch` have the shape of the scores.
    """
    scores, labels = piece
    doubt = _doubt(scores, of)
    if of.from_logits:
        p, top, highest = softmax(scores, room)
    else:
        p, top = scores, scores.amax(1)
        highest = top
    label = labels.unsqueeze(1)
    score = scores.gather(1, label)
    at_label = (p.gather(1, label) if of.from_logits else score).squeeze(1)
    rows = RowStatistics(
        from_logits=of.from_logits,
        labels=labels,
        score=score.squeeze(1),
        highest=highest,
        at_label=at_label,
        top=top,
        norm=torch.linalg.vector_norm(p, dim=1),
        rank=rank_of(scores, label, score, at_label, of.tolerance, scratch),
    )
    return rows, p, doubt


def softmax(logits: Tensor, out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The probabilities of logits (n, K), written to `out`, the highest of each row, and its logit."""
    highest = logits.amax(1)
    if logits.device.type != "cpu":
        p = torch.softmax(logits, 1, out=out)
        return p, p.amax(1), highest
    # On a CPU powers of 2 take half the time of powers of e. That of the highest logit is 1.
    powers = torch.sub(logits, highest.unsqueeze(1), out=out).mul_(1 / math.log(2)).exp2_()
    top = powers.sum(1).reciprocal_()
    return powers.mul_(top.unsqueeze(1)), top, highest


def rows_of(scores: Scores) -> Iterator[RowStatistics]:
    """All rows, piece after piece. Whoever consumes them all knows that they were numbers, or gets a ValueError."""
    workspace, doubts = Workspace(), []
    for start in scores.starts:
        piece = scores.piece(start)
        with workspace.lend(piece[0]) as (room, scratch):
            rows, _, doubt = look_at(piece, scores, room, scratch)
        doubts.append(doubt)
        yield rows
    settle(doubts, scores)


def settle(doubts: Sequence[Tensor], scores: Scores) -> None:
    """Raise what is wrong with the scores, if anything is."""
    if doubts and not float(torch.stack(list(doubts)).amax()) <= 0:  # amax keeps what is not a number
        scores.refuse()


def _doubt(scores: Tensor, of: Scores) -> Tensor:
    if of.checked:
        return scores.new_zeros(())
    if of.from_logits:
        return scores.sum() * 0  # infinities and what is not a number come out as nan
    apart = (scores.sum(1) - 1).abs().amax() - of.tolerance
    # None is above 1 if they add up to 1 and none is negative.
    return torch.maximum(apart, -scores.amin())


def rank_of(
    scores: Tensor, label: Tensor, score: Tensor, at_label: Tensor, tolerance: float, scratch: Tensor
) -> Tensor:
    """The rank (n,) of each label among scores (n, K): 0 for the highest, and for the first of equals.

    `label` and its `score` are (n, 1), `at_label` (n,) its probability, which is known but for a `tolerance`; `scratch`
    has the shape of the scores.
    """
    # Comparisons written as numbers are counted several times faster than truth values.
    if scores.device.type != "cpu":
        above = torch.gt(scores, score, out=scratch).sum(1)
        return (above + _equal_before(scores, label, score)).long()
    rank = torch.zeros(len(scores), dtype=torch.int64, device="cpu")
    # More than all others together is more than each: there is nothing to count, as in most rows of a good model.
    unclear = torch.from_numpy(np.flatnonzero(at_label.numpy() <= 0.5 + tolerance))
    if len(unclear) == 0:
        return rank
    some, of = scores.index_select(0, unclear), score.index_select(0, unclear)
    scratch = scratch[: len(some)]
    above = torch.gt(some, of, out=scratch).sum(1)
    as_high = torch.ge(some, of, out=scratch).sum(1)
    tied = (as_high > above + 1).nonzero().squeeze(1)  # than the label itself
    if len(tied):
        above[tied] += _equal_before(some[tied], label[unclear[tied]], of[tied])
    return rank.index_copy_(0, unclear, above.long())


def _equal_before(scores: Tensor, label: Tensor, score: Tensor) -> Tensor:
    places = torch.arange(scores.shape[1], device=scores.device)
    return ((scores == score) & (places < label)).sum(1)
