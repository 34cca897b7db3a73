"""The atlas on disk, and whether what lies there is what the results give."""

from __future__ import annotations

import json
from pathlib import Path

from softtargets.atlas.documents import blocks, filled
from softtargets.atlas.entries import Atlas, gather
from softtargets.atlas.page import page
from softtargets.atlas.picture import picture
from softtargets.atlas.words import atlas_data
from softtargets.storage import make_directory, write_atomically

PAGE, DATA = "index.html", "atlas.json"


def write_atlas(results: Path, out: Path | None = None) -> Path:
    """Write the atlas of a directory of results, into it unless told otherwise; return its page.

    Beside the page there are its picture, for light and dark ground, and all of it as ``atlas.json``. Documents in the
    directory and above it, ``README.md``, get what they say of the atlas between two marks, where they have them.
    """
    out = results if out is None else out
    made = _files(gather(results, out=out), out)
    make_directory(out)
    for path, content in made.items():
        write_atomically(path, content)
    return out / PAGE


def stale(results: Path, out: Path | None = None) -> list[str]:
    """The files of an atlas that are not what the results give, each with what is the matter."""
    out = results if out is None else out
    found = []
    for path, content in _files(gather(results, out=out), out).items():
        if not path.is_file():
            found.append(f"{path} is not there")
        elif path.read_bytes() != content:
            found.append(f"{path} is not what the results give")
    return found


def _files(atlas: Atlas, out: Path) -> dict[Path, bytes]:
    """All files of an atlas. The same results give the same bytes: no date is in them, and no path."""
    data = json.dumps(atlas_data(atlas), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    made = {
        out / PAGE: page(atlas),
        out / "atlas.svg": picture(atlas),
        out / "atlas-dark.svg": picture(atlas, dark=True),
        out / DATA: data,
    }
    for document, folder in (
        (out / "README.md", ""),
        (out.resolve().parent / "README.md", out.resolve().name),
    ):
        if document.is_file():
            before = document.read_text(encoding="utf-8")
            after = filled(before, blocks(atlas, folder), str(document))
            if after != before or "<!-- atlas " in before:
                made[document] = after
    return {path: text.encode() for path, text in made.items()}
