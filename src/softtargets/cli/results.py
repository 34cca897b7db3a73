"""``softtargets results``: every claim with its verdict, on the terminal or as a page."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from softtargets.cli import options, printable
from softtargets.cli.output import print_json
from softtargets.exceptions import SofttargetsError, nearest

if TYPE_CHECKING:
    from softtargets.atlas import Atlas, Entry

_LABEL = 18  # the longest verdict, its sign and the spaces around them


def results(
    source: Annotated[
        Path, typer.Option("--from", help="The directory with one directory of results for each study.")
    ] = Path("results"),
    paper: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only the claims of this paper, e.g. muller-2019; or ours (our own questions), or small (tested at "
            "a small size only).",
            show_default="all papers",
        ),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            help="Only claims with this verdict: reproduced, contradicted, no effect, inconclusive or not run yet.",
            show_default="all verdicts",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write a page of all claims (index.html, a picture and atlas.json) into this directory, beside the "
            "pages of the studies.",
            show_default="nothing is written",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; fail if the files in --out do not match the results."),
    ] = False,
    as_json: options.Json = False,
) -> None:
    """List every claim of the papers, with its verdict.

    Each claim is shown with what the paper printed and what our runs gave. A claim without runs is "not run yet".
    """
    from softtargets.atlas import atlas_data, gather

    if check or out:
        if paper or verdict:
            raise SofttargetsError(
                "--out writes all claims: leave out --paper and --verdict; the page has filters for both"
            )
        return _write(source, out, check, as_json)
    atlas = gather(source)
    entries = _chosen(atlas, paper, verdict)
    if as_json:
        return print_json(atlas_data(atlas, entries))
    width = max(60, min(100, shutil.get_terminal_size((80, 24)).columns))
    for text in _texts(atlas, entries):
        _say(*text, width)


def _write(source: Path, out: Path | None, check: bool, as_json: bool) -> None:
    from softtargets.atlas import stale, write_atlas

    if out is None:
        raise SofttargetsError("--check needs --out: the directory whose files are compared with the results")
    if not check:
        page = write_atlas(source, out)
        return print_json({"atlas": str(page)}) if as_json else typer.echo(f"atlas: {page.resolve()}")
    if found := stale(source, out):
        raise SofttargetsError(
            f"{'; '.join(found)}; write the atlas again with softtargets results --from {source} --out {out}"
        )


def _chosen(atlas: Atlas, paper: str | None, verdict: str | None) -> list[Entry]:
    entries = list(atlas.entries) if paper is None else _of_paper(atlas, paper)
    return entries if verdict is None else _with_verdict(entries, verdict)


def _of_paper(atlas: Atlas, paper: str) -> list[Entry]:
    if entries := [entry for entry in atlas.entries if paper in (entry.paper, entry.section)]:
        return entries
    there = list(dict.fromkeys(name for one in atlas.entries for name in (one.paper, one.section)))
    raise SofttargetsError(
        f"--paper {paper}: no paper or section has this name{nearest(paper, there)}; there are: {', '.join(there)}"
    )


def _with_verdict(entries: list[Entry], verdict: str) -> list[Entry]:
    from softtargets.claims import VERDICTS

    wanted = verdict.replace("-", " ").lower()
    if wanted not in VERDICTS:
        raise SofttargetsError(
            f"--verdict {verdict}: there is no such verdict{nearest(wanted, VERDICTS)}; there are: "
            f"{', '.join(VERDICTS)}"
        )
    return [entry for entry in entries if entry.verdict == wanted]


def _say(text: str, first: str, then: str, width: int) -> None:
    """A paragraph with its indentations; a number and its per cent sign stay together."""
    from softtargets.report import unbroken

    lines = fill(unbroken(text), width, initial_indent=first, subsequent_indent=then).splitlines()
    for line in lines or [""]:
        typer.echo(printable(line.replace("\u00a0", " ")))


def _texts(atlas: Atlas, entries: Sequence[Entry]) -> Iterator[tuple[str, str, str]]:
    """Paragraphs, each with the indentation of its first line and of the others."""
    from softtargets.atlas import SMALL, counted, headline, short_name, tally
    from softtargets.report import plural

    yield headline(atlas), "", ""
    if (count := len(entries)) < len(atlas.entries):
        verb = "is" if count == 1 else "are"
        yield f"{plural(count, 'claim')} of {len(atlas.entries)} {verb} listed.", "", ""
    for section in dict.fromkeys(sorted((one.section for one in entries), key=lambda name: name == SMALL)):
        own = [entry for entry in entries if entry.section == section]
        yield "", "", ""
        yield f"{short_name(section)}: {counted(tally(own))}", "", ""
        for name, group in groupby(own, key=lambda entry: entry.origin.name):
            first, *others = group
            told = ", ".join(filter(None, (first.origin.size, first.origin.made_of, first.origin.device)))
            yield "", "", ""
            yield f"{name} ({told})", "  ", "    "
            for entry in (first, *others):
                yield from _claim(entry)


def _claim(entry: Entry) -> Iterator[tuple[str, str, str]]:
    from softtargets.atlas import told
    from softtargets.report import SIGNS

    label = f"  {SIGNS[entry.verdict]} {entry.verdict}".ljust(_LABEL)
    indent = " " * _LABEL
    yield entry.judged.claim.statement, label, indent
    yield f"{'' if entry.verdict == 'not run yet' else 'ours: '}{told(entry)}", indent, indent + "  "
    for name, items in (("printed", entry.printed), ("replication", entry.replication)):
        if items:
            yield f"{name}: {', '.join(item.printed for item in items)}", indent, indent + "  "
    if entry.number and entry.verdict != "not run yet":
        yield f"the printed number: {entry.number}", indent, indent + "  "
