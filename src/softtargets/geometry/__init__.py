"""Instruments for the penultimate layer: where a net puts its examples."""

from softtargets.geometry.plane import cluster_spread, project, template_plane

__all__ = ["cluster_spread", "project", "template_plane"]
