"""How fast whole trainings are: our engine, one run or many at a time, against a plain eager PyTorch loop."""

from benchmarks.bench import Bench, Section
from benchmarks.training.drawing import drawings
from benchmarks.training.grid import grid
from benchmarks.training.results import AccuracyResult, TrainingResult
from benchmarks.training.tables import accuracy_overview, overview, remarks, summary, texts

BENCH = Bench(
    "training",
    "Images per second of whole trainings, one run and many at a time, against a plain eager PyTorch loop.",
    grid,
    (
        Section(
            TrainingResult,
            "images per second of all runs together, augmentation and evaluation included",
            overview,
        ),
        Section(
            AccuracyResult,
            "test accuracy of the same training, mean and standard deviation over seeds",
            accuracy_overview,
        ),
    ),
    summary,
    texts,
    drawings,
    remarks,
)
