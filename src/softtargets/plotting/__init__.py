"""Plots on your own matplotlib axes, from numpy or torch arrays or from results that were measured before.

Data come from the rooms that measure (`softtargets.calibration.reliability`, `softtargets.selection.risk_coverage`,
`softtargets.calibration.temperature_sweep`, `softtargets.geometry.plane_view`, `softtargets.distillation.curve`); the
functions here draw them, or call them first if they are given scores and labels. Colours stay apart for colour-blind
readers. Given `ax`, nothing of pyplot is touched; without it, pyplot makes a figure, also where there is no display.
"""

from softtargets.plotting.figures import (
    distillation_curves,
    reliability_diagram,
    risk_coverage,
    temperature_sweep,
    template_plane,
)

__all__ = [
    "distillation_curves",
    "reliability_diagram",
    "risk_coverage",
    "temperature_sweep",
    "template_plane",
]
