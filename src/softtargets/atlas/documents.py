"""Documents that say what the atlas says: between two marks, written by the command."""

from __future__ import annotations

from html import escape

from softtargets.atlas.entries import Atlas
from softtargets.atlas.origins import Origin
from softtargets.atlas.picture import description
from softtargets.atlas.words import counted, headline, tally, uncovered
from softtargets.exceptions import StudyError

_BEGIN = "<!-- atlas {name}: written by make atlas -->"
_END = "<!-- end of atlas {name} -->"


def filled(text: str, blocks: dict[str, str], where: str) -> str:
    """A document with what stands between each pair of marks replaced; without marks it stays as it is."""
    for name, block in blocks.items():
        begin, end = _BEGIN.format(name=name), _END.format(name=name)
        if (begin in text) != (end in text):
            raise StudyError(
                f"{where} has only one of the two marks '{begin}' and '{end}'; put the other one back"
            )
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n\n{block}\n\n{end}{rest.partition(end)[2]}"
    return text


def blocks(atlas: Atlas, folder: str) -> dict[str, str]:
    """What may stand in documents: the summary, with addresses that begin with a folder, and the table of studies."""
    return {"summary": _summary(atlas, folder), "studies": _studies(atlas)}


def _summary(atlas: Atlas, folder: str) -> str:
    place = f"{folder}/" if folder else ""
    missing = len(uncovered(atlas))
    rest = (
        f" {missing} of the papers' tables and figures {'has' if missing == 1 else 'have'} no study yet."
        if missing
        else ""
    )
    return "\n".join(
        [
            f'<a href="{place}index.html"><picture>',
            f'<source media="(prefers-color-scheme: dark)" srcset="{place}atlas-dark.svg">',
            f'<img alt="{escape(description(atlas))}" src="{place}atlas.svg" width="840">',
            "</picture></a>",
            "",
            f"**{headline(atlas)}**{rest}",
            f"[The atlas]({place}index.html) shows each claim with what was printed, what came out, and its verdict;",
            "`softtargets results` lists them.",
        ]
    )


def _studies(atlas: Atlas) -> str:
    rows = ["| study | size | runs | device | claims | answer |", "|---|---|---|---|---|---|"]
    rows += [_study(one, atlas) for one in atlas.origins if one.directory]
    waiting = [one.study for one in atlas.origins if not one.directory]
    return "\n".join([*rows, "", f"Not run yet: {', '.join(waiting)}."] if waiting else rows)


def _study(one: Origin, atlas: Atlas) -> str:
    claims = [entry for entry in atlas.entries if entry.origin == one]
    tested = f"of {len(claims)}: {counted(tally(claims))}" if claims else "none"
    answer = one.answer.replace("|", "\\|")
    cells = (f"[{one.directory}]({one.page})", one.size, one.made_of, one.device, tested, answer)
    return "| " + " | ".join(cell or "–" for cell in cells) + " |"
