"""How the cost of stores, claims, planning, campaigns and pages grows from 10 runs to 100,000."""

from benchmarks.bench import Bench, Section
from benchmarks.scale.drawing import drawings
from benchmarks.scale.grid import grid
from benchmarks.scale.results import ClaimResult, StoreResult
from benchmarks.scale.tables import claims, remarks, stores, summary, texts

BENCH = Bench(
    "scale",
    "Cost of storing, listing, packing and merging 10 to 100,000 runs: seconds, memory, disk, competing processes.",
    grid,
    (
        Section(StoreResult, "what is done with a store of so many runs", stores),
        Section(ClaimResult, "processes that compete for the same runs", claims),
    ),
    summary,
    texts,
    drawings,
    remarks,
    prelude="making runs",
)
