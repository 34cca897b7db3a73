"""What is measured while a net trains, besides losses and accuracies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from softtargets.recipes.schema import Count, Part


@dataclass(frozen=True, kw_only=True)
class Probe(Part):
    """The slot for an instrument that looks at a net every so many steps, and at the end.

    What it finds joins the row of metrics of that step, under its own name: ``calibration.test_ece``.
    """

    every: Count = 1000


@dataclass(frozen=True, kw_only=True)
class Calibration(Probe):
    """Expected calibration error and mean confidence on a split."""

    name: ClassVar[str] = "calibration"
    split: Literal["train", "validation", "test"] = "test"
    bins: Count = 15
