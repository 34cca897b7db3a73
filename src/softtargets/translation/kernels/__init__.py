"""Triton kernels of beam search; only to be imported where Triton is."""
