"""Run a function in a forked child, so that it can be killed, or lose its privileges, without harm."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable


def start(work: Callable[[], None]) -> int:
    """Start `work` in a child; the child exits 0 when it returns and 1 when it raises."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def finish(child: int) -> int:
    """Wait for a child; the exit code, or minus the signal that killed it."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)
