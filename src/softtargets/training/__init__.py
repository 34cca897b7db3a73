"""Training: recipes in, runs out."""

from softtargets.training.devices import choose_device
from softtargets.training.distributed import SAVED, RankLost, leave
from softtargets.training.distributed.attending import Parted, attend
from softtargets.training.engine import CHECKPOINT_SECONDS, KEEP, train, watching
from softtargets.training.events import Plan, Watcher, Watchers
from softtargets.training.interruption import graceful_interruption
from softtargets.training.packing import kind_of_run, most_together
from softtargets.training.precision import autocast, float32_products
from softtargets.training.progress import ProgressLine
from softtargets.training.scheduling import (
    Keep,
    Resources,
    Standing,
    checked_units,
    lacking_predictions,
    standing,
)
from softtargets.training.teaching import LESSONS, asks_for_lessons, asks_in_every_step, has_lessons
from softtargets.training.tensorboard import TensorBoard
from softtargets.training.timing import TimedTraining, seconds_in_turns
from softtargets.training.translation_recipes import TRANSLATION_SIZES, translation_recipe, vocabulary_for
from softtargets.training.translators import load_translator
from softtargets.training.workers import cores, deaf_to_ctrl_c

__all__ = [
    "CHECKPOINT_SECONDS",
    "KEEP",
    "LESSONS",
    "SAVED",
    "TRANSLATION_SIZES",
    "Keep",
    "Parted",
    "Plan",
    "ProgressLine",
    "RankLost",
    "Resources",
    "Standing",
    "TensorBoard",
    "TimedTraining",
    "Watcher",
    "Watchers",
    "asks_for_lessons",
    "asks_in_every_step",
    "attend",
    "autocast",
    "checked_units",
    "choose_device",
    "cores",
    "deaf_to_ctrl_c",
    "float32_products",
    "graceful_interruption",
    "has_lessons",
    "kind_of_run",
    "lacking_predictions",
    "leave",
    "load_translator",
    "most_together",
    "seconds_in_turns",
    "standing",
    "train",
    "translation_recipe",
    "vocabulary_for",
    "watching",
]
