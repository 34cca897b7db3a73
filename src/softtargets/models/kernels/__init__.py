"""Fused layers in Triton for nets trained on a GPU; imported only where one is going to run."""
