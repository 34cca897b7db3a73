"""Everything that is made from results, beside them."""

from __future__ import annotations

import io
from pathlib import Path

from softtargets.bench.losses.drawing import draw_linear, draw_losses
from softtargets.bench.losses.results import Results
from softtargets.bench.losses.tables import csv_text, markdown
from softtargets.report.drawing import house_style
from softtargets.storage import make_directory, write_atomically


def write_files(results: Results, directory: Path) -> list[Path]:
    """``results.csv``, ``results.md`` and the pictures as PNG and SVG; return what was written."""
    make_directory(directory)
    contents = {
        "results.csv": csv_text(results).encode(),
        "results.md": markdown(results).encode(),
    }
    with house_style():
        drawings = {}
        if results.cases:
            drawings["losses"] = draw_losses(results)
        if results.linear:
            drawings["linear"] = draw_linear(results)
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
