"""Everything that is made from results, beside them."""

from __future__ import annotations

from pathlib import Path

from softtargets.bench.training.drawing import draw_training
from softtargets.bench.training.results import Results
from softtargets.bench.training.tables import accuracy_csv, csv_text, markdown
from softtargets.bench.writing import write_beside
from softtargets.report.drawing import house_style


def write_files(results: Results, directory: Path) -> list[Path]:
    """``results.csv``, ``results.md`` and ``training`` as PNG and SVG; return what was written."""
    texts = {"results.csv": csv_text(results), "results.md": markdown(results)}
    if results.accuracy:
        texts["accuracy.csv"] = accuracy_csv(results)
    with house_style():
        drawings = {"training": draw_training(results)} if results.cases or results.accuracy else {}
        return write_beside(directory, texts, drawings)
