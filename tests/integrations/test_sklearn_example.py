"""examples/sklearn_calibration.py runs as it stands, with a smaller forest."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "sklearn_calibration.py"


def test_the_example_calibrates_a_forest(tmp_path):
    ran = subprocess.run(
        [sys.executable, EXAMPLE, "--trees", "60"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    before, after = (
        float(re.search(rf"{name} +([\d.]+)%", ran.stdout)[1]) for name in ("as it is", "TemperatureScaler")
    )
    assert after < before / 3
    assert "The forest is underconfident" in ran.stdout
    assert "LogitScaling(temperature=" in ran.stdout
