"""Links of the finished site, those of pages included that MkDocs takes as they are: it looks at its own alone."""

from __future__ import annotations

import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class _Page(HTMLParser):
    """Where a page leads, and what in it can be led to."""

    def __init__(self) -> None:
        super().__init__()
        self.leads: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src", "srcset"):
                self.leads.append(value)
            elif value and (name == "id" or (name == "name" and tag == "a")):
                self.names.add(value)


def broken(site: Path) -> list[str]:
    """Links inside a site that lead nowhere, or to a directory, which a browser lists when there is no server.

    A fragment with ``=`` is the state of a page and no place on it. Addresses elsewhere are not looked at.
    """
    pages = {path.relative_to(site).as_posix(): _page(path) for path in sorted(site.rglob("*.html"))}
    found = []
    for place, page in pages.items():
        if place == "404.html":  # shown for any address, so that its links are absolute
            continue
        for lead in dict.fromkeys(page.leads):
            if re.match(r"[a-z]+:", lead):
                continue
            path, _, fragment = lead.partition("#")
            path = unquote(path.partition("?")[0])
            there = posixpath.normpath(posixpath.join(posixpath.dirname(place), path)) if path else place
            if not (site / there).is_file():
                found.append(f"{place}: {lead} is not there")
                continue
            wanted = fragment and "=" not in fragment and there in pages
            if wanted and unquote(fragment) not in pages[there].names:
                found.append(f"{place}: {lead} has no such place")
    return found


def _page(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page
