"""How fast calibration is measured: all metrics at once by us, against packages that compute the ECE alone."""

from benchmarks.bench import Bench, Section
from benchmarks.calibration.drawing import drawings
from benchmarks.calibration.grid import grid
from benchmarks.calibration.results import CalibrationResult
from benchmarks.calibration.tables import overview, remarks, summary, texts, wrong

BENCH = Bench(
    "calibration",
    "Time and memory of all calibration metrics in one pass, against torchmetrics and netcal with the ECE alone.",
    grid,
    (
        Section(
            CalibrationResult,
            "from logits to metrics: all of ours in one pass, the ECE alone of the others",
            overview,
        ),
    ),
    summary,
    texts,
    drawings,
    remarks,
    wrong,
    packages=("torchmetrics", "netcal"),
)
