"""Studies: one table or figure of a paper, one module. They are found by name."""

from __future__ import annotations

from importlib import import_module

from softtargets.studies.measuring import Measurements, measure_runs, measure_study
from softtargets.studies.results import Results
from softtargets.studies.runner import redraw_study, run_study
from softtargets.studies.study import Findings, Outcome, Place, Settings, Study, Trial, find_study

# In the order they are listed; each is a module of this room that ends in ``study = Study(...)``.
_MODULES = (
    "quickstart",
    "mnist_distillation",
    "muller_figure_5",
    "muller_figure_6",
    "muller_logit_matching",
    "cifar10_resnet56",
    "muller_table_2",
    "muller_figure_1",
    "muller_figure_2",
    "muller_text",
    "muller_figure_3",
    "muller_figure_4",
    "muller_figure_7",
    "response_errors",
    "wagner_table_2",
    "wagner_table_3",
    "wagner_table_5",
    "wagner_figure_2",
    "wagner_figure_3",
    "wagner_figure_4",
    "wagner_figure_5",
    "wagner_figure_9",
    "wagner_deviations",
    "chen_theory",
    "chen_mnist",
    "chen_cifar10",
    "chen_section_4",
    "chen_section_4_cifar10",
    "chen_logit_smoothing",
    "chen_forward_correction",
    "chen_human_noise",
    "labo_table_3",
    "labo_readings",
    "labo_sweeps",
    "labo_table_5",
    "labo_table_1",
    "labo_table_2",
    "labo_table_4",
    "labo_figure_2",
    "beyond_labo",
    "beyond_labo_teacher",
    "beyond_temperature",
    "beyond_selection",
    "beyond_unigram",
    "beyond_token_distillation",
    "beyond_token_labo",
)
STUDIES: tuple[Study, ...] = tuple(import_module(f"{__name__}.{module}").study for module in _MODULES)

__all__ = [
    "STUDIES",
    "Findings",
    "Measurements",
    "Outcome",
    "Place",
    "Results",
    "Settings",
    "Study",
    "Trial",
    "find_study",
    "measure_runs",
    "measure_study",
    "redraw_study",
    "run_study",
]
