"""Instruments for the penultimate layer: how a model arranges its examples."""

from softtargets.geometry.activations import evenly
from softtargets.geometry.class_sums import ClassSums
from softtargets.geometry.collapse import (
    NeuralCollapse,
    collapse_from_sums,
    nearest_mean_disagreement,
    neural_collapse,
)
from softtargets.geometry.drawing import COLOURS, draw_panel, draw_panels, draw_plane
from softtargets.geometry.panels import UNITS, FairPanel, common_limits, fair_panels
from softtargets.geometry.picking import Triple, Triples, pick_triples, pick_triples_by_confusion
from softtargets.geometry.plane import cluster_spread, equilateral, project, sides, template_plane
from softtargets.geometry.simplex import Simplex, simplex
from softtargets.geometry.views import PlaneMeasures, PlaneView, plane_view

__all__ = [
    "COLOURS",
    "UNITS",
    "ClassSums",
    "FairPanel",
    "NeuralCollapse",
    "PlaneMeasures",
    "PlaneView",
    "Simplex",
    "Triple",
    "Triples",
    "cluster_spread",
    "collapse_from_sums",
    "common_limits",
    "draw_panel",
    "draw_panels",
    "draw_plane",
    "equilateral",
    "evenly",
    "fair_panels",
    "nearest_mean_disagreement",
    "neural_collapse",
    "pick_triples",
    "pick_triples_by_confusion",
    "plane_view",
    "project",
    "sides",
    "simplex",
    "template_plane",
]
