"""Several processes for one run: each computes its rows of every batch, and the first of them leads."""

from softtargets.training.distributed.crew import Crew, crew, join, leave
from softtargets.training.distributed.seat import Seat, seat
from softtargets.training.distributed.wires import RankLost

__all__ = ["Crew", "RankLost", "Seat", "crew", "join", "leave", "seat"]
