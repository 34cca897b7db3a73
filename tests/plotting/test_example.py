"""examples/plots.py runs as it stands, on a few epochs."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "plots.py"


def test_the_example_draws_five_figures(tmp_path):
    picture = tmp_path / "figures.png"
    words = [sys.executable, EXAMPLE, "--out", picture, "--epochs", "3", "--seeds", "1"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "Expected calibration error: " in ran.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 50_000
