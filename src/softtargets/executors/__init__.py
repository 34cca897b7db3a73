"""Executors: who trains. Each is called as `training.train` is, recipes in and runs out.

>>> sorted(EXECUTORS)
['local', 'ranks', 'ray']
"""

from softtargets.executors.executor import Executor
from softtargets.executors.local import LocalExecutor
from softtargets.executors.naming import EXECUTORS, make_executor
from softtargets.executors.ranks import RanksExecutor
from softtargets.executors.ray import RayExecutor

__all__ = ["EXECUTORS", "Executor", "LocalExecutor", "RanksExecutor", "RayExecutor", "make_executor"]
