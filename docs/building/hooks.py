"""Hooks of MkDocs: what is put into the site besides the files of this directory, and what pages are made of."""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

from docs.building import cards, instruments, targets  # noqa: E402
from docs.building.formulas import with_formulas  # noqa: E402
from docs.building.links import broken  # noqa: E402
from docs.building.notebooks import executed  # noqa: E402

# Pages of the repository that are pages of the site too, by where they stand in it.
_FROM_ROOT = {
    "ARCHITECTURE.md": "project/architecture.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "ERRATA.md": "project/errata.md",
    "results/README.md": "project/results.md",
    "benchmarks/README.md": "project/benchmarks.md",
}
# What of the results is looked at in a browser; logs and predictions stay in the repository.
_LOOKED_AT = {".html", ".svg", ".png"}
# What pages of results offer to take away: the numbers of tables and figures.
_TAKEN_AWAY = {".csv", ".json"}
_LINK = re.compile(
    r"(?P<text>!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\((?P<to>[^)\s#]+)(?P<after>(?:#[^)\s]*)?(?: \"[^\"]*\")?)\)"
)
_BRAND = re.compile(r'<p class="brand">softtargets <span>(?P<kind>\w+)</span>')
_ROW = re.compile(r"<tr>\s*(?:<td[^>]*>(?:(?!</td>).)*</td>\s*){4,}</tr>", re.DOTALL)
_CODE = re.compile(r"(<code[^>]*>)(.*?)(</code>)", re.DOTALL)
_CELL = re.compile(r"<td(?P<how>[^>]*)>(?P<inner>.*?)</td>", re.DOTALL)
_ANY_CELL = re.compile(r"<t(?P<kind>[dh])(?P<how>[^>e]*)>(?P<inner>.*?)</t(?P=kind)>", re.DOTALL)
# Letters from which on a cell is prose, which takes many lines where its column is narrow.
_PROSE = 60
_PART = re.compile(r"^\{\{ (?P<part>picture|code|cost|findings) \}\}$", re.MULTILINE)


def on_files(files: Files, config: Any) -> Files:
    """Add results, pages of the repository, a picture for each method and instrument, and notebooks as they run."""
    for path in sorted((ROOT / "results").rglob("*")):
        place = path.relative_to(ROOT).as_posix()
        if path.suffix == ".html":
            made = with_way_back(path.read_text(encoding="utf-8"), place)
            files.append(File.generated(config, place, content=made))
        elif path.suffix in _LOOKED_AT | _TAKEN_AWAY:
            _add(files, config, place, path)
    for path in sorted((ROOT / "benchmarks").rglob("*.png")):
        _add(files, config, path.relative_to(ROOT).as_posix(), path)
    for source, place in _FROM_ROOT.items():
        files.append(File.generated(config, place, content=_moved(ROOT / source, place)))
    for file in list(files):
        name = Path(file.src_uri).stem
        if file.src_uri.startswith("methods/") and name != "index":
            for size in ("", "-narrow"):
                drawn = targets.picture(name.replace("-", "_"), narrow=bool(size))
                files.append(File.generated(config, f"methods/{name}-target{size}.svg", content=drawn))
    for name in instruments.NAMES:
        drawn = instruments.picture(name)
        files.append(File.generated(config, f"instruments/{name}-picture.svg", content=drawn))
    for path in sorted((ROOT / "docs/notebooks").glob("*.ipynb")):
        text, pictures = executed(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Fill in what cards have by name, point links at where things are in the site, and draw formulas."""
    meta = page.meta

    def part(found: re.Match[str]) -> str:
        if found["part"] == "picture":
            name = Path(page.file.src_uri).stem
            if name in instruments.NAMES:
                return cards.picture(name, meta)
            # On a phone the three panels stand below each other: side by side the last would be out of sight.
            return (
                f'<picture><source media="(max-width: 44.9em)" srcset="{name}-target-narrow.svg">'
                '<img alt="Targets of three examples: one that is learnt, one that is uncertain, one that is wrong" '
                f'class="target" src="{name}-target.svg"></picture>'
            )
        return str(getattr(cards, found["part"])(meta))

    filled = _PART.sub(part, markdown)
    return with_formulas(_relinked(filled, page.file.src_uri))


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Tables for phones (site.css): names in cells may be cut between their parts, prose keeps some width."""

    def parted(found: re.Match[str]) -> str:
        names = _CODE.sub(
            lambda code: code[1] + re.sub(r"([._/])(?=\w)", r"\1<wbr>", code[2]) + code[3], found["inner"]
        )
        return f"<t{found['kind']}{found['how']}>{names}</t{found['kind']}>"

    def row(found: re.Match[str]) -> str:
        return _CELL.sub(cell, found[0])

    def cell(found: re.Match[str]) -> str:
        words = re.sub(r"<[^>]+>", "", found["inner"])
        return f'<td class="prose"{found["how"]}>{found["inner"]}</td>' if len(words) > _PROSE else found[0]

    return _ROW.sub(row, _ANY_CELL.sub(parted, html))


def on_post_build(config: Any) -> None:
    """Every link inside the site leads somewhere, also from a disk; MkDocs looks at pages that it makes alone."""
    if found := broken(Path(config.site_dir)):
        more = f"\n... and {len(found) - 20} more" * (len(found) > 20)
        raise PluginError("links that lead nowhere:\n" + "\n".join(found[:20]) + more)


def with_way_back(html: str, place: str) -> str:
    """A page of results with links to the site and, where it is that of a study, to all claims.

    In the repository such a page stands alone; in the site its readers came from somewhere.

    >>> with_way_back('<p class="brand">softtargets <span>atlas</span></p>', "results/index.html")
    '<p class="brand"><a href="../index.html">softtargets</a> <span>atlas</span></p>'
    """
    start = posixpath.dirname(place)
    home, claims = (posixpath.relpath(to, start) for to in ("index.html", "results/index.html"))

    def brand(found: re.Match[str]) -> str:
        up = f'<a href="{claims}">all claims</a> ' if found["kind"] == "study" else ""
        return f'<p class="brand"><a href="{home}">softtargets</a> {up}<span>{found["kind"]}</span>'

    made, count = _BRAND.subn(brand, html)
    if count != 1:
        raise ValueError(f"{place} has {count} headings of the kind that lead back to the site, instead of 1")
    return made


def _add(files: Files, config: Any, place: str, path: Path) -> None:
    files.append(File.generated(config, place, abs_src_path=str(path)))


def _moved(path: Path, place: str) -> str:
    """A page of the repository with its links as they are from its place in the site."""
    base = path.parent.relative_to(ROOT).as_posix()
    return _relinked(path.read_text(encoding="utf-8"), place, base=posixpath.join("..", base))


def _relinked(markdown: str, place: str, base: str | None = None) -> str:
    """Links between files of the repository as links between pages of the site.

    `base` is the directory that links are relative to, seen from docs/; that of the page itself unless told. What is in
    the repository and not in the site becomes plain text: there is no address for it that works everywhere.
    """
    start = posixpath.dirname(place)
    own = start if base is None else base

    def link(found: re.Match[str]) -> str:
        to = found["to"]
        if re.match(r"[a-z]+:|/|<", to):
            return found[0]
        target = posixpath.normpath(posixpath.join("docs", own, to))
        there = _site_place(target)
        if there is None:
            return found["text"].strip("![]") if (ROOT / target).exists() else found[0]
        # Headings of the README are not those of the site.
        after = "" if there == "index.md" else found["after"]
        return f"{found['text']}({posixpath.relpath(there, start or '.')}{after})"

    return _LINK.sub(link, markdown)


def _site_place(target: str) -> str | None:
    """Where a file of the repository stands in the site, relative to docs/."""
    if target in _FROM_ROOT:
        return _FROM_ROOT[target]
    if target == "README.md":
        return "index.md"
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    for room in ("results", "benchmarks"):
        if target == room:
            return _FROM_ROOT[f"{room}/README.md"]
        if target.startswith(f"{room}/") and Path(target).suffix in _LOOKED_AT:
            return target
    return None
