"""How much memory a process takes while it does something, as the kernel counts it (Linux)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

CLEAR = Path("/proc/self/clear_refs")


def resident_peak(run: Callable[[], object]) -> int:
    """How many bytes this process grew at most while it ran something (Linux)."""
    CLEAR.write_text("5", encoding="ascii")  # forgets the highest mark so far
    before = _status("VmRSS")
    run()
    return max(0, _status("VmHWM") - before)


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))
