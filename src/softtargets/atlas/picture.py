"""The atlas in one picture: a bar for each paper, a cell for each claim, by verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

from softtargets.atlas.entries import SMALL, Atlas, Entry
from softtargets.atlas.words import at_size, counted, headline, short_name, tally
from softtargets.claims import VERDICTS, Verdict
from softtargets.report import SIGNS, plural

# The colours of pages, by verdict: of the cell, and of the sign in it.
Palette = Mapping[Verdict, tuple[str, str]]
_LIGHT: Palette = {
    "reproduced": ("#00795a", "#ffffff"),
    "contradicted": ("#c2500f", "#ffffff"),
    "no effect": ("#0a5a92", "#ffffff"),
    "inconclusive": ("#cfd5de", "#1f2937"),
    "not run yet": ("none", "#5b6472"),
}
_DARK: Palette = {
    "reproduced": ("#5fd0a4", "#0d141b"),
    "contradicted": ("#f0a070", "#0d141b"),
    "no effect": ("#8cc4f0", "#0d141b"),
    "inconclusive": ("#4b5868", "#e3e8ee"),
    "not run yet": ("none", "#a3aebb"),
}
# Ink, soft ink, ground and the line around what is not run.
_INKS = {
    False: ("#1f2937", "#5b6472", "#ffffff", "#9ca3af"),
    True: ("#e3e8ee", "#a3aebb", "#0d1117", "#66727f"),
}

_WIDTH, _LEFT, _CELL, _TALL, _ROW = 840, 220, 15, 18, 14
_EACH_LINE = (_WIDTH - _LEFT - 24) // _CELL
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', sans-serif"


def picture(atlas: Atlas, dark: bool = False) -> str:
    """An SVG that needs nothing else: the claims tested at the papers' sizes, those of each paper in a row."""
    palette, (ink, soft, ground, line) = (_DARK if dark else _LIGHT), _INKS[dark]
    entries = at_size(atlas)
    rows = {name: of for name, of in atlas.by_section().items() if name != SMALL}
    parts, top = _legend(tally(entries), palette, ink, line), 56
    for name, of in rows.items():
        drawn, height = _row(name, of, top, palette, (ink, soft, line))
        parts += drawn
        top += height
    said = escape(headline(atlas))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{top}" '
            f'viewBox="0 0 {_WIDTH} {top}" role="img" font-family="{_FONT}">',
            f"<title>{said}</title>",
            f"<desc>{escape(description(atlas))}</desc>",
            f'<rect width="{_WIDTH}" height="{top}" rx="8" fill="{ground}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def description(atlas: Atlas) -> str:
    """The picture in words, for whoever does not see it."""
    entries = at_size(atlas)
    papers = dict.fromkeys(one.paper for one in entries)
    said = (f"{short_name(name)}: {counted(tally(e for e in entries if e.paper == name))}" for name in papers)
    return "Claims by paper and verdict. " + "; ".join(said) + "."


def _legend(counts: Mapping[Verdict, int], palette: Palette, ink: str, line: str) -> list[str]:
    parts, left = [], 20.0
    for verdict in VERDICTS:
        words = f"{counts[verdict]} {verdict}"
        parts.append(_cell(left, 18, verdict, palette, line))
        parts.append(f'<text x="{left + 21:g}" y="32" font-size="14" fill="{ink}">{words}</text>')
        left += 21 + 7.6 * len(words) + 20  # as wide as the widest of the fonts
    return parts


def _row(
    name: str, entries: Sequence[Entry], top: int, palette: Palette, inks: tuple[str, str, str]
) -> tuple[list[str], int]:
    """A paper's name, how many claims it has, and a cell for each; how high all that is."""
    ink, soft, line = inks
    ordered = sorted(entries, key=lambda entry: VERDICTS.index(entry.verdict))
    parts = [
        f'<text x="20" y="{top + 14}" font-size="14" font-weight="600" fill="{ink}">{escape(short_name(name))}</text>',
        f'<text x="20" y="{top + 31}" font-size="12" fill="{soft}">{plural(len(entries), "claim")}</text>',
    ]
    for place, entry in enumerate(ordered):
        at, below = place % _EACH_LINE, place // _EACH_LINE
        left, high = _LEFT + at * _CELL, top + below * (_TALL + 2)
        told = f"<title>{escape(entry.verdict)}: {escape(entry.judged.claim.statement)}</title>"
        parts.append(_cell(left, high, entry.verdict, palette, line, told))
    lines = -(-len(ordered) // _EACH_LINE)
    return parts, max(lines * (_TALL + 2), 34) + _ROW


def _cell(left: float, top: float, verdict: Verdict, palette: Palette, line: str, title: str = "") -> str:
    fill, ink = palette[verdict]
    edge = f' stroke="{line}" stroke-dasharray="2 2"' if fill == "none" else ""
    width = _CELL - 2
    return (
        f'<g>{title}<rect x="{left + 0.5:g}" y="{top + 0.5:g}" width="{width}" height="{_TALL - 1}" rx="2.5" '
        f'fill="{fill}"{edge}/><text x="{left + 0.5 + width / 2:g}" y="{top + 13:g}" font-size="10.5" '
        f'font-weight="700" text-anchor="middle" fill="{ink}">{SIGNS[verdict]}</text></g>'
    )
