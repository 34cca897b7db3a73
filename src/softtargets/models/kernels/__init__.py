"""Fused layers in Triton for nets trained on a GPU; imported only where one is going to run."""

from softtargets.models.kernels.layers import use_kernels
from softtargets.models.kernels.ops import apart, sums

__all__ = ["apart", "sums", "use_kernels"]
