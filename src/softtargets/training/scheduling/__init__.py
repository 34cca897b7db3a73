"""Which runs are trained when: what is left to do, who takes it, with what, and what is written at the end."""

from softtargets.training.scheduling.finisher import Finisher, Keep, lacking_predictions
from softtargets.training.scheduling.loop import Loop
from softtargets.training.scheduling.plan import Standing, checked_units, left_to_train, standing
from softtargets.training.scheduling.queue import Queue
from softtargets.training.scheduling.resources import Resources
from softtargets.training.scheduling.todo import Todo

__all__ = [
    "Finisher",
    "Keep",
    "Loop",
    "Queue",
    "Resources",
    "Standing",
    "Todo",
    "checked_units",
    "lacking_predictions",
    "left_to_train",
    "standing",
]
