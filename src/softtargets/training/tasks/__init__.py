"""Tasks: what the engine trains on. A recipe's data say by name which one they are for."""

from pathlib import Path

import torch

from softtargets.recipes import Dataset
from softtargets.training.tasks.images import ImageTask
from softtargets.training.tasks.task import LEARNT, Adviser, Epoch, Feed, Moment, Shown, Task, Teacher
from softtargets.training.tasks.translation import TranslationTask

# By the names that datasets of recipes call them (`Dataset.task`).
TASKS: dict[str, type[Task]] = {"images": ImageTask, "translation": TranslationTask}


def prepare(data: Dataset, device: torch.device, data_dir: Path | None = None) -> Task:
    """A dataset on a device, as the task it is for."""
    return TASKS[data.task].prepare(data, device, data_dir)


__all__ = [
    "LEARNT",
    "TASKS",
    "Adviser",
    "Epoch",
    "Feed",
    "ImageTask",
    "Moment",
    "Shown",
    "Task",
    "Teacher",
    "TranslationTask",
    "prepare",
]
