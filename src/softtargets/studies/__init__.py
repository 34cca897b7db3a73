"""Studies: one table or figure of a paper, one module. They are found by name."""

from __future__ import annotations

from softtargets.studies import quickstart
from softtargets.studies.running import run_study
from softtargets.studies.study import Findings, Outcome, Results, Settings, Study, Trial, find_study

STUDIES: tuple[Study, ...] = (quickstart.study,)

__all__ = [
    "STUDIES",
    "Findings",
    "Outcome",
    "Results",
    "Settings",
    "Study",
    "Trial",
    "find_study",
    "run_study",
]
