"""How fast the losses are, forward + backward, against torch eager, torch.compile, Liger and others."""

from benchmarks.bench import Bench, Section
from benchmarks.losses.drawing import drawings
from benchmarks.losses.grid import grid
from benchmarks.losses.results import LinearResult, LossResult
from benchmarks.losses.tables import linear_overview, overview, remarks, summary, texts

BENCH = Bench(
    "losses",
    "Time, memory and error of each loss, forward + backward, against torch eager, torch.compile and Liger.",
    grid,
    (
        Section(
            LossResult,
            "multiples of the floor, or time per call where launches dominate; memory in units of the logits",
            overview,
        ),
        Section(
            LinearResult, "projection and loss, as multiples of the three matrix products", linear_overview
        ),
    ),
    summary,
    texts,
    drawings,
    remarks,
    packages=("cut-cross-entropy",),
    prelude="measuring how fast memory is",
)
