"""Several processes for one run: each computes its rows of every batch, and the first of them leads."""

from softtargets.training.distributed.crew import Crew, join, leave
from softtargets.training.distributed.seat import Seat, seat
from softtargets.training.distributed.wires import SAVED, RankLost

__all__ = ["SAVED", "Crew", "RankLost", "Seat", "join", "leave", "seat"]
