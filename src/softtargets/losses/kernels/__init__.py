"""Fused kernels in Triton; imported only where one is going to run."""
