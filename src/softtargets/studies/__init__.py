"""Studies: one table or figure of a paper, one module. They are found by name."""

from __future__ import annotations

from importlib import import_module

from softtargets.studies.results import Results
from softtargets.studies.runner import redraw_study, run_study
from softtargets.studies.study import Findings, Outcome, Place, Settings, Study, Trial, find_study

# In the order they are listed; each is a module of this room that ends in ``study = Study(...)``.
_MODULES = (
    "quickstart",
    "mnist_distillation",
    "cifar10_resnet56",
    "chen_theory",
    "chen_mnist",
    "chen_cifar10",
    "chen_logit_smoothing",
    "chen_forward_correction",
    "chen_human_noise",
)
STUDIES: tuple[Study, ...] = tuple(import_module(f"{__name__}.{module}").study for module in _MODULES)

__all__ = [
    "STUDIES",
    "Findings",
    "Outcome",
    "Place",
    "Results",
    "Settings",
    "Study",
    "Trial",
    "find_study",
    "redraw_study",
    "run_study",
]
