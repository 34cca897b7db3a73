"""Everything that is made from results, beside them."""

from __future__ import annotations

from pathlib import Path

from softtargets.bench.losses.drawing import draw_linear, draw_losses
from softtargets.bench.losses.results import Results
from softtargets.bench.losses.tables import csv_text, markdown
from softtargets.bench.writing import write_beside
from softtargets.report.drawing import house_style


def write_files(results: Results, directory: Path) -> list[Path]:
    """``results.csv``, ``results.md`` and the pictures as PNG and SVG; return what was written."""
    texts = {"results.csv": csv_text(results), "results.md": markdown(results)}
    with house_style():
        drawings = {}
        if results.cases:
            drawings["losses"] = draw_losses(results)
        if results.linear:
            drawings["linear"] = draw_linear(results)
        return write_beside(directory, texts, drawings)
