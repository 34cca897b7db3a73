"""Files that are made from results, beside them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from softtargets.report.drawing import KINDS, rendered
from softtargets.storage import make_directory, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_beside(directory: Path, texts: Mapping[str, str], drawings: Mapping[str, Figure]) -> list[Path]:
    """Texts by the name of their file, and every drawing as PNG and SVG; return what was written."""
    import matplotlib

    make_directory(directory)
    contents = {file: text.encode() for file, text in texts.items()}
    for name, drawing in drawings.items():
        for kind in KINDS:
            # Letters as text: as outlines they would be most of a large picture, which is kept in the repository.
            with matplotlib.rc_context({"svg.fonttype": "none"}):
                contents[f"{name}.{kind}"] = rendered(drawing, kind)
    for file, content in contents.items():
        write_atomically(directory / file, content)
    return [directory / file for file in contents]
