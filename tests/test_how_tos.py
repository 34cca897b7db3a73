"""The code of the how-tos runs as it stands, block after block."""

import re
from pathlib import Path

import matplotlib
import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["sklearn.md", "plotting.md"])
def test_code_runs(page, tmp_path, monkeypatch):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, page, "exec"), {})
