"""How fast translation models train and translate, against ``nn.Transformer`` and Hugging Face's `generate`."""

from benchmarks.bench import Bench, Section
from benchmarks.translation.drawing import drawings
from benchmarks.translation.grid import grid
from benchmarks.translation.results import DecodingResult, StepResult, TrainingResult
from benchmarks.translation.tables import (
    decoding_overview,
    overview,
    remarks,
    step_overview,
    summary,
    texts,
)

BENCH = Bench(
    "translation",
    "Target tokens per second of training, and sentences per second of beam search, against nn.Transformer and Hugging "
    "Face.",
    grid,
    (
        Section(
            TrainingResult, "target tokens per second without padding, all runs of a pack together", overview
        ),
        Section(StepResult, "a training step with label smoothing and with LABO", step_overview),
        Section(
            DecodingResult, "sentences per second of beam search, all to the same length", decoding_overview
        ),
    ),
    summary,
    texts,
    drawings,
    remarks,
    packages=("transformers",),
    prelude="reading sentences",
)
