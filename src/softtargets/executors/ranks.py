"""Several processes of this machine for every run, started by torchrun's own launcher."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from typing import Any

import softtargets
from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.executors.executor import Executor
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training import SAVED, RankLost, Watcher, choose_device, watching

# Seconds between two looks at whether the processes still live while nothing is heard of them.
_LOOK = 0.5
_PROCESS = "softtargets.executors.ranks_process"


@dataclass
class RanksExecutor(Executor):
    """Trains every run by `ranks` processes of this machine together, one run after another; one GPU for each.

    Without a number: as many as there are GPUs. The processes are those of ``torchrun --standalone``; what the first of
    them is told, this one's watcher is told.
    """

    ranks: int | None = None

    def __call__(self, recipes: Iterable[Recipe], store: RunStore, **how: Any) -> list[Run]:
        """As `softtargets.training.train`, whose `workers`, `sharing` and `resources` are of no effect here."""
        wanted = list(recipes)
        ranks = self._number(how.get("device", "auto"))
        watcher = watching(how.get("watcher"), how.get("progress"))
        with tempfile.TemporaryDirectory(prefix="softtargets-ranks-") as folder, _signals_as_ctrl_c():
            place = Path(folder)
            outcome, told = _Group(place, ranks, _order(wanted, store, how)).train(watcher, how.get("stop"))
        if outcome == "interrupted":
            raise KeyboardInterrupt
        if outcome == "unfinished":
            left = set(told)
            raise Unfinished(
                [run for recipe in wanted if (run := store.find(recipe))],
                [recipe for recipe in _with_teachers(wanted) if recipe.id in left],
            )
        if outcome == "lost":
            raise RankLost(told)
        if outcome != "done":
            raise SofttargetsError(told)
        return [Run(store.root / recipe.id) for recipe in wanted]

    def _number(self, device: str) -> int:
        if self.ranks is not None:
            if self.ranks < 1:
                raise SofttargetsError(f"must be at least 1, not {self.ranks}", argument="ranks")
            return self.ranks
        import torch

        if choose_device(device).type == "cuda":
            return torch.cuda.device_count()
        raise SofttargetsError(
            "without a GPU, say how many processes train each run: --ranks N, or RanksExecutor(ranks=N)"
        )


def _order(recipes: list[Recipe], store: RunStore, how: dict[str, Any]) -> dict[str, Any]:
    """What the processes are to do, as JSON."""
    until = how.get("until")
    keep = how.get("keep")
    data_dir = how.get("data_dir")
    return {
        "recipes": [recipe.to_dict() for recipe in recipes],
        "root": str(store.root.absolute()),
        # The clock of another process may have begun to count at another moment.
        "until": None if until is None else time.time() + until - time.monotonic(),
        "how": {
            "device": how.get("device", "auto"),
            "data_dir": None if data_dir is None else str(Path(data_dir).absolute()),
            "wait": how.get("wait", True),
            "afresh": list(how.get("afresh", ())),
            **({} if keep is None else {"keep": dict(keep) if hasattr(keep, "keys") else list(keep)}),
            **{name: how[name] for name in ("checkpoint_seconds",) if name in how},
        },
    }


class _Group:
    """The processes of one call, and the connection to the first of them."""

    def __init__(self, folder: Path, ranks: int, order: dict[str, Any]) -> None:
        self._folder, self._ranks = folder, ranks
        self._secret = secrets.token_bytes(32)
        self._listener = Listener(
            str(folder / "events") if os.name == "posix" else None, authkey=self._secret
        )
        order |= {"address": self._listener.address, "secret": self._secret.hex()}
        self._order = folder / "order.json"
        self._order.touch(mode=0o600)
        self._order.write_text(json.dumps(order), encoding="utf-8")

    def train(self, watcher: Watcher, stop: threading.Event | None) -> tuple[str, Any]:
        """How it has ended, and what there is to say of that; `stop` asks for the end as Ctrl-C does."""
        process = self._start()
        interrupted = False
        events = _Events(self._listener)
        try:
            while True:
                try:
                    if stop is not None and stop.is_set() and not interrupted:
                        raise KeyboardInterrupt
                    name, told = events.next(process)
                    if name == "gone":
                        return self._vanished(process, interrupted, events.came)
                    if name == "ended":
                        return self._ended(process, *told)
                    if name != "nothing":
                        getattr(watcher, name)(*told)
                except KeyboardInterrupt:
                    if interrupted:
                        raise
                    interrupted = True
                    process.send_signal(signal.SIGTERM)
        finally:
            self._stop(process)
            self._listener.close()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += [f"--nproc-per-node={self._ranks}", "-m", _PROCESS, str(self._order)]
        package = str(Path(softtargets.__file__).parents[1])
        known = os.environ.get("PYTHONPATH")
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([package, known] if known else [package])}
        with open(self._folder / "log.txt", "wb") as log:
            # A terminal sends Ctrl-C to all processes of a session; these hear of it from us, once.
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def _ended(self, process: subprocess.Popen[bytes], outcome: str, told: Any) -> tuple[str, Any]:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        return outcome, told

    def _vanished(self, process: subprocess.Popen[bytes], interrupted: bool, came: bool) -> tuple[str, Any]:
        """The first process is gone without a word, or never came."""
        if interrupted:
            return "interrupted", None
        if came:
            return "lost", f"rank 0 is gone; {SAVED}"
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)
        log = (self._folder / "log.txt").read_text(encoding="utf-8", errors="replace")
        return "failed", f"the processes that torchrun should have started are gone: {_last_words(log)}"

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """Whatever happens, nothing that was started here stays behind."""
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=40)
            except (subprocess.TimeoutExpired, KeyboardInterrupt):
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class _Events:
    """What the first process tells, in the order in which it happens."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._connection: Connection | None = None
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    @property
    def came(self) -> bool:
        """Whether the first process has been heard of."""
        return self._connection is not None

    def _accept(self) -> None:
        with suppress(Exception):  # closed, because the processes were gone before they came
            self._connection = self._listener.accept()

    def next(self, process: subprocess.Popen[bytes]) -> tuple[str, tuple[Any, ...]]:
        """The next event; that there is nothing yet, or that everybody is gone, are events too."""
        gone = process.poll() is not None
        if self._connection is None:
            if not gone:
                self._accepting.join(_LOOK)
        else:
            try:
                if self._connection.poll(0 if gone else _LOOK):
                    found: tuple[str, tuple[Any, ...]] = self._connection.recv()
                    return found
            except (EOFError, OSError):
                gone = True
        return ("gone" if gone else "nothing"), ()


@contextmanager
def _signals_as_ctrl_c() -> Iterator[None]:
    """SIGTERM and SIGHUP interrupt as Ctrl-C does: else they would end this process and leave the others at work."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _with_teachers(recipes: Iterable[Recipe]) -> list[Recipe]:
    found: dict[str, Recipe] = {}
    for recipe in recipes:
        chain = [recipe]
        while (teacher := chain[-1].teacher) is not None:
            chain.append(teacher)
        for one in reversed(chain):
            found.setdefault(one.id, one)
    return list(found.values())


def _last_words(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    told = [line for line in lines if not set(line) <= set("=-")]
    return told[-1] if told else "they said nothing"
