"""Training on the workers of a Ray cluster."""

from softtargets.executors.ray.executor import RayExecutor

__all__ = ["RayExecutor"]
