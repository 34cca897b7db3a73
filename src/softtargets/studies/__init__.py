"""Studies: one table or figure of a paper, one module. They are found by name."""

from __future__ import annotations

from softtargets.studies import (
    chen_cifar10,
    chen_forward_correction,
    chen_human_noise,
    chen_logit_smoothing,
    chen_mnist,
    chen_theory,
    cifar10_resnet56,
    mnist_distillation,
    quickstart,
)
from softtargets.studies.results import Results
from softtargets.studies.runner import run_study
from softtargets.studies.study import Findings, Outcome, Place, Settings, Study, Trial, find_study

STUDIES: tuple[Study, ...] = (
    quickstart.study,
    mnist_distillation.study,
    cifar10_resnet56.study,
    chen_theory.study,
    chen_mnist.study,
    chen_cifar10.study,
    chen_logit_smoothing.study,
    chen_forward_correction.study,
    chen_human_noise.study,
)

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
    "run_study",
]
