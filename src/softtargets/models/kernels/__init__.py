"""Fused layers in Triton for nets trained on a GPU; imported only where one is going to run."""

from softtargets.models.kernels.layers import use_kernels

__all__ = ["use_kernels"]
