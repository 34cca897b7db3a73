"""How the processes that train a run together speak with each other, and notice that one of them is gone.

Every follower has a connection to the leader. Words go over it, never tensors. The system closes the connections of a
process that dies, however it dies, so that the others hear of it at once and need not wait for the timeout of an
exchange that it takes no part in.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, Queue
from typing import Any

from softtargets.exceptions import SofttargetsError

Message = dict[str, Any]
# Seconds that a process has to come out of an exchange by itself when another one is gone.
GRACE = 5.0
CODE = 2  # with which it ends if it does not
# What is true whoever is gone: the leader writes between two steps, and replaces files in one.
SAVED = "the saved part of the run is intact, and the same command resumes it"
_LOOK = 0.5  # seconds between two looks at whether somebody has asked to stop
# A machine that has lost its power says nothing: it is asked after so many seconds of silence, and so often.
_SILENCE, _ASKING, _TIMES = 10, 5, 3
_LENGTH = struct.Struct("!I")


class RankLost(SofttargetsError):
    """One of several processes is gone, or has failed: the others cannot go on without it."""


class Wires:
    """The connections of one process, by the rank at their other end: all others for the leader, else the leader.

    asked:  is set when somebody has asked another process to stop.
    """

    def __init__(self, sockets: Mapping[int, socket.socket], speaks: bool = True) -> None:
        self.asked = threading.Event()
        self.parting: int | None = None  # the exit code that the leader has left with
        self.orphaned = False  # whether the leader is gone without a word
        self._sockets = dict(sockets)
        self._leads = 0 not in self._sockets
        self._speaks = speaks
        self._inbox: Queue[tuple[int, Message] | None] = Queue()
        self._sending = threading.Lock()
        self._trouble: str | None = None
        self._leaving = self._busy = False
        self._done = False  # whether nothing is left that needs the others
        self._departed: str | None = None  # who has left since then
        self._departing = threading.Lock()
        for peer, wire in self._sockets.items():
            _keep_alive(wire)
            threading.Thread(target=self._read, args=(peer, wire), name=f"rank {peer}", daemon=True).start()

    @property
    def trouble(self) -> str | None:
        """Why this cannot go on, if it cannot."""
        return self._trouble

    def tell(self, **message: Any) -> None:
        """Say something to all at the other ends."""
        self.check()
        for peer in list(self._sockets):
            self._send(peer, message)

    def hear(self, looking: Callable[[], None] = lambda: None) -> tuple[int, Message]:
        """The next message and who it is from; `looking` is called again and again until it is here."""
        while True:
            self.check()
            looking()
            with suppress(Empty):
                if (heard := self._inbox.get(timeout=_LOOK)) is not None:
                    return heard

    def check(self) -> None:
        """Raise if one of the others is gone."""
        if self._trouble is not None:
            raise RankLost(self._trouble)

    def explain(self, error: BaseException) -> SofttargetsError:
        """Why an exchange has failed; who is gone is known an instant later than that it has failed."""
        end = time.monotonic() + GRACE
        while self._trouble is None and self.parting is None and time.monotonic() < end:
            time.sleep(0.01)
        return RankLost(self._trouble or f"the exchange with the other ranks failed: {_first_line(error)}")

    def work(self, busy: bool) -> None:
        """Say whether this process is in the middle of something that it may not come out of by itself."""
        self._busy = busy

    def done(self, done: bool) -> None:
        """Say whether all is done that needs the others: then they may part in good order, unless more is to be done.

        A fast one may have parted before a slow one has heard that all is done.
        """
        with self._departing:
            self._done = done
            departed = None if done else self._departed
        if departed is not None:
            self._note(departed)

    def leave(self, code: int) -> None:
        """Part in good order; the leader says with which exit code."""
        self._leaving = True
        for peer in list(self._sockets):
            self._send(peer, {"kind": "bye", "code": code})
            with suppress(OSError):
                self._sockets[peer].shutdown(socket.SHUT_WR)

    def _send(self, peer: int, message: Message) -> None:
        content = json.dumps(message).encode()
        with suppress(OSError), self._sending:  # that it is gone is told by whoever reads
            self._sockets[peer].sendall(_LENGTH.pack(len(content)) + content)

    def _read(self, peer: int, wire: socket.socket) -> None:
        """What a thread does: take messages, until there is nobody to send any."""
        with suppress(OSError, ValueError):
            while (message := receive(wire)) is not None:
                if self._take(peer, message):
                    return
        if not self._leaving:
            self.orphaned = not self._leads
            self._note(f"rank {peer} is gone; {SAVED}")

    def _take(self, peer: int, message: Message) -> bool:
        """Whether this was the last message of somebody."""
        kind = message.get("kind")
        if kind == "bye":
            self._parted(peer, int(message.get("code", 0)))
            return True
        if kind == "asked":
            self.asked.set()
        elif kind == "trouble":
            self._note(str(message.get("text")))
        else:
            self._inbox.put((peer, message))
        return False

    def _parted(self, peer: int, code: int) -> None:
        if self._leads:
            with self._departing:
                text = f"rank {peer} has ended, with the exit code {code}, before the training was over"
                done = self._done
                self._departed = self._departed or text
            if not (self._leaving or done):
                self._note(text)
            return
        self.parting = code
        self._inbox.put((peer, {"kind": "bye", "code": code}))
        self._part_by_force("", code)

    def _note(self, text: str) -> None:
        if self._trouble is None:
            self._trouble = text
            self._inbox.put(None)
            if self._leads:
                for peer in list(self._sockets):
                    self._send(peer, {"kind": "trouble", "text": text})
            self._part_by_force(text, CODE)

    def _part_by_force(self, text: str, code: int) -> None:
        """End this process if it is still stuck a while later; what it holds, locks too, is then given back."""

        def end() -> None:
            time.sleep(GRACE)
            if self._busy:
                if text and self._speaks:
                    sys.stderr.write(f"error: {text}\n")
                    sys.stderr.flush()
                os._exit(code)

        threading.Thread(target=end, name="parting", daemon=True).start()


def receive(wire: socket.socket) -> Message | None:
    """The next message; None at the end of a connection."""
    if (head := _exactly(wire, _LENGTH.size)) is None:
        return None
    content = _exactly(wire, _LENGTH.unpack(head)[0])
    if content is None:
        return None
    found: Message = json.loads(content)
    return found


def _exactly(wire: socket.socket, size: int) -> bytes | None:
    parts = b""
    while len(parts) < size:
        part = wire.recv(size - len(parts))
        if not part:
            return None
        parts += part
    return parts


def _keep_alive(wire: socket.socket) -> None:
    wire.settimeout(None)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Not every system has all of these.
    for name, value in (("TCP_KEEPIDLE", _SILENCE), ("TCP_KEEPINTVL", _ASKING), ("TCP_KEEPCNT", _TIMES)):
        if hasattr(socket, name):
            wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
