"""Files that are made from results, beside them."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from softtargets.storage import make_directory, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_beside(directory: Path, texts: Mapping[str, str], drawings: Mapping[str, Figure]) -> list[Path]:
    """Texts by the name of their file, and every drawing as PNG and SVG; return what was written."""
    make_directory(directory)
    contents = {file: text.encode() for file, text in texts.items()}
    for name, drawing in drawings.items():
        for kind in ("png", "svg"):
            buffer = io.BytesIO()
            # Without a date the same numbers give the same bytes.
            metadata = {"Date": None} if kind == "svg" else {"Software": None}
            drawing.savefig(buffer, format=kind, metadata=metadata)
            contents[f"{name}.{kind}"] = buffer.getvalue()
    for file, content in contents.items():
        write_atomically(directory / file, content)
    return [directory / file for file in contents]
