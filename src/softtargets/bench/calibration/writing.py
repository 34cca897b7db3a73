"""Everything that is made from results, beside them."""

from __future__ import annotations

from pathlib import Path

from softtargets.bench.calibration.drawing import draw_calibration
from softtargets.bench.calibration.results import Results
from softtargets.bench.calibration.tables import csv_text, markdown
from softtargets.bench.writing import write_beside
from softtargets.report.drawing import house_style


def write_files(results: Results, directory: Path) -> list[Path]:
    """``results.csv``, ``results.md`` and ``calibration`` as PNG and SVG; return what was written."""
    texts = {"results.csv": csv_text(results), "results.md": markdown(results)}
    with house_style():
        drawings = {"calibration": draw_calibration(results)} if results.cases else {}
        return write_beside(directory, texts, drawings)
