"""What is made from results, beside them. No torch here: drawing again comes at once."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.results import BenchResults
from softtargets.report.drawing import KINDS, house_style, rendered
from softtargets.storage import make_directory, write_atomically


def write_files(bench: Bench, results: BenchResults, directory: Path) -> list[Path]:
    """Tables as text and every picture as PNG and SVG, beside the results; return what was written."""
    import matplotlib

    make_directory(directory)
    contents = {file: text.encode() for file, text in bench.texts(results).items()}
    with house_style():
        for name, drawing in bench.drawings(results).items():
            for kind in KINDS:
                # Letters as text: as outlines they would be most of a large picture, which is kept in the repository.
                with matplotlib.rc_context({"svg.fonttype": "none"}):
                    contents[f"{name}.{kind}"] = rendered(drawing, kind)
    for file, content in contents.items():
        write_atomically(directory / file, content)
    return [directory / file for file in contents]
