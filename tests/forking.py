"""Run a function in a child process that can be killed, or lose its privileges, without harm.

The children are forked from a server that has torch loaded but has never used it: forking a process in which
torch already runs threads may deadlock, and starting a fresh Python for each child would take seconds.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

_CONTEXT = multiprocessing.get_context("forkserver")
# torch.optim imports torch._dynamo at its first step, which takes seconds.
_CONTEXT.set_forkserver_preload(["softtargets.training", "torch._dynamo", "sklearn.datasets", "pytest"])


def start(work: Callable[..., Any], *arguments: Any, daemon: bool = True) -> BaseProcess:
    """Start `work` (a function of a module) in a child; one that is no daemon may have children of its own."""
    child = _CONTEXT.Process(target=_alone, args=(work, arguments), daemon=daemon)
    child.start()
    return child


def finish(child: BaseProcess) -> int:
    """Wait for a child; its exit code, or minus the signal that killed it."""
    child.join(timeout=300)
    assert child.exitcode is not None, "the child hangs"
    return child.exitcode


def _alone(work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    import torch

    torch.set_num_threads(1)
    work(*arguments)
