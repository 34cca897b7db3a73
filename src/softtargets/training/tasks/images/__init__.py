"""Classifying images: splits of one shape, batches of one size, augmentation, label noise, teachers and partners."""

from softtargets.training.tasks.images.split import Split
from softtargets.training.tasks.images.task import ImageTask

__all__ = ["ImageTask", "Split"]
