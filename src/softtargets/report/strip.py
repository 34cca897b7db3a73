"""Claims as a strip chart: one row for each, with the printed value, ours with its interval, and what counts.

Rows are written into the page as they are, without a script: places are shares of a row's width, so that text keeps
its size on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from softtargets.claims import VERDICTS, Claim, Judgement, Region, Verdict

# A verdict has a word, a colour (page.css) and a sign, so that none of them carries the meaning alone.
SIGNS: dict[Verdict, str] = dict(zip(VERDICTS, ("✓", "✕", "=", "?", "…"), strict=True))

# How much of a row is left free beside all that is marked in it.
_ROOM = 0.12
# Labels nearer to each other than this, in percent of the width, would meet.
_LABEL = 16.0


@dataclass(frozen=True)
class Span:
    """From here to there, in percent of the row's width; open ends run on beyond it."""

    start: float
    end: float
    open_start: bool = False
    open_end: bool = False

    @property
    def width(self) -> float:
        """Of what is drawn."""
        return round(self.end - self.start, 3)


@dataclass(frozen=True)
class Row:
    """Where the marks of a claim stand, in percent of the row's width; None where there is nothing to mark."""

    region: Span
    zone: Span | None
    interval: Span | None
    mean: float | None
    printed: float | None
    margin: Span | None
    cells: tuple[float, ...]
    ends: tuple[tuple[float, float], ...]

    @property
    def anchors(self) -> list[str]:
        """Which end of its label stands at each end of the region: labels neither leave the row nor meet."""
        places = [place for place, _ in self.ends]
        if len(places) == 2 and places[1] - places[0] < _LABEL:
            return ["end", "start"]
        return ["start" if place < 8 else "end" if place > 92 else "middle" for place in places]


def strip_row(judged: Judgement) -> Row:
    """The row of a claim, scaled so that all its marks are seen; what is not run yet has none of ours.

    >>> from softtargets.claims import Sample, above, judge
    >>> claim = Claim("", (), "", *above(0, Sample.of([0.9, 1.0, 1.1])), printed=1.5, margin=0.2)
    >>> row = strip_row(judge([claim])[0])
    >>> row.region.open_end, row.region.start < row.mean < row.printed
    (True, True)
    """
    claim, there = judged.claim, judged.verdict != "not run yet"
    low, high = _range(_marks(claim, there))
    place = _Scale(low, high)
    ends = [end for end in (claim.region.low, claim.region.high) if math.isfinite(end)]
    mean = _shown(claim)
    there = there and not math.isnan(mean)
    ours = _span_of(place, Region(*claim.interval)) if there and _finite(claim.interval) else None
    return Row(
        region=place.span(claim.region.low, claim.region.high),
        zone=_span_of(place, claim.zone),
        interval=ours,
        mean=place(mean) if there else None,
        printed=None if claim.printed is None else place(claim.printed),
        margin=_span_of(place, claim.near),
        cells=tuple(place(cell) for cell in _cells(claim)) if there else (),
        ends=tuple((place(end), end) for end in ends),
    )


def headline(judged: Iterable[Judgement]) -> str:
    """How many claims came out how, in a sentence; what is not run yet comes first.

    >>> from softtargets.claims import Sample, above, judge
    >>> claims = [Claim("", (), "", *above(0, Sample.of(values))) for values in ([0.9, 1.0, 1.1], [], [])]
    >>> headline(judge(claims))
    'Unfinished: 2 of 3 claims are not run yet. 1 is reproduced.'
    """
    verdicts = [one.verdict for one in judged]
    total, waiting = len(verdicts), verdicts.count("not run yet")
    if total == 1:
        return _ALONE.get(verdicts[0], f"The claim is {verdicts[0]}.")
    if total > 1 and len(set(verdicts)) == 1 and verdicts[0] in _PLAIN:
        return f"{'Both' if total == 2 else f'All {total}'} claims are {verdicts[0]}."
    said = [f"{count} {_ARE[verdict][count != 1]}" for verdict in _ARE if (count := verdicts.count(verdict))]
    listed = " and ".join(filter(None, (", ".join(said[:-1]), *said[-1:])))
    if not waiting:
        return f"Of {total} claims {listed}."
    open_ones = f"Unfinished: {waiting} of {total} claims {'is' if waiting == 1 else 'are'} not run yet."
    return f"{open_ones} {listed}." if listed else open_ones


_ALONE = {"no effect": "There is no effect."}
_PLAIN = ("reproduced", "contradicted", "inconclusive")
_ARE: dict[Verdict, tuple[str, str]] = {
    "reproduced": ("is reproduced", "are reproduced"),
    "contradicted": ("is contradicted", "are contradicted"),
    "no effect": ("shows no effect", "show no effect"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
}


class _Scale:
    def __init__(self, low: float, high: float) -> None:
        self._low, self._width = low, high - low

    def __call__(self, value: float) -> float:
        return round(100 * min(max((value - self._low) / self._width, 0.0), 1.0), 3)

    def span(self, low: float, high: float) -> Span:
        beyond = self._low + self._width
        return Span(self(low), self(high), low < self._low, high > beyond)


def _span_of(place: _Scale, region: Region | None) -> Span | None:
    return None if region is None else place.span(region.low, region.high)


def _shown(claim: Claim) -> float:
    """The mean over seeds; of computed numbers the one that decides."""
    if not claim.computed:
        return claim.deciding.mean
    return min(claim.sample.values, key=claim.region.room, default=math.nan)


def _finite(ends: tuple[float, float]) -> bool:
    return all(map(math.isfinite, ends))


def _cells(claim: Claim) -> list[float]:
    return [sample.first(claim.seeds).mean for _, sample in claim.cells if math.isfinite(sample.mean)]


def _marks(claim: Claim, ours: bool) -> list[float]:
    """All that a row shows. A far cell may stretch it, an endless interval may not."""
    # Of computed numbers the distance from an end is seen beside the distance from nothing.
    marks = [0.0] if claim.computed else []
    marks += [claim.region.low, claim.region.high, *([_shown(claim), *_cells(claim)] if ours else [])]
    marks += [end for region in (claim.zone, claim.near) if region for end in (region.low, region.high)]
    if ours and _finite(claim.interval):
        marks += claim.interval
    return [mark for mark in marks if math.isfinite(mark)]


def _range(marks: list[float]) -> tuple[float, float]:
    low, high = min(marks, default=0.0), max(marks, default=1.0)
    room = _ROOM * (high - low) or abs(low) * _ROOM or 1.0
    return low - room, high + room
