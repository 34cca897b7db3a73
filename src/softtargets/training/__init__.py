"""Training: recipes in, runs out."""

from softtargets.training.engine import CHECKPOINT_SECONDS, choose_device, train
from softtargets.training.watching import Plan, Watcher
from softtargets.training.workers import cores

__all__ = ["CHECKPOINT_SECONDS", "Plan", "Watcher", "choose_device", "cores", "train"]
