"""Notebooks as pages, executed when the site is made: what they show is what the code says today."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

ROOT = Path(__file__).parents[2]
SECONDS = 300


def executed(path: Path) -> tuple[str, dict[str, bytes]]:
    """The Markdown of a notebook with all that its cells print, and its pictures by name; a cell that fails raises."""
    notebook = nbformat.read(path, as_version=4)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT / "src"), before)))
    try:
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", coalesce_streams=True).execute()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
    text, made = MarkdownExporter().from_notebook_node(
        notebook, resources={"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
    )
    note = f"\n*This page is a notebook: [{path.name}]({path.name}).*\n"
    return text + note, dict(made["outputs"])
