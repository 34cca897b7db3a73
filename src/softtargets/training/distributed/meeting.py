"""How the processes that train together find each other: the leader listens, the others call."""

from __future__ import annotations

import hashlib
import secrets
import socket
import struct
import time
from contextlib import suppress
from datetime import timedelta
from typing import Any

from softtargets.exceptions import SofttargetsError
from softtargets.training.distributed.seat import Seat
from softtargets.training.distributed.wires import Wires

_WHERE = "softtargets/where"
_SECRET = 32  # bytes, known to whoever may speak with torchrun's own store of addresses
_RANK = struct.Struct("!I")
_AGAIN = 0.2  # seconds until the leader is called again


def meet(store: Any, own: Seat, seconds: float) -> tuple[Wires, str]:
    """Connect every process with the leader; `store` is torch's, which all of them see.

    Returns the connections, and a name of this meeting that no other one has: torchrun may start all processes again,
    and the store then still has what those before have written.
    """
    store.set_timeout(timedelta(seconds=seconds))
    if own.leads:
        secret = secrets.token_bytes(_SECRET)
        return Wires(_listen(store, own, seconds, secret)), _named(secret)
    wire, secret = _call(store, own, seconds)
    return Wires({0: wire}, speaks=own.speaks), _named(secret)


def _named(secret: bytes) -> str:
    return hashlib.sha256(secret).hexdigest()[:16]


def _listen(store: Any, own: Seat, seconds: float, secret: bytes) -> dict[int, socket.socket]:
    found: dict[int, socket.socket] = {}
    with _server(own) as server:
        server.settimeout(seconds)
        store.set(_WHERE, f"{server.getsockname()[1]}/{secret.hex()}")
        while len(found) < own.ranks - 1:
            try:
                wire, _ = server.accept()
            except TimeoutError:
                missing = [str(rank) for rank in range(1, own.ranks) if rank not in found]
                raise SofttargetsError(
                    f"rank {', '.join(missing)} of {own.ranks} did not connect within {seconds:g} s; look at what it "
                    "printed, and start all ranks again"
                ) from None
            wire.settimeout(seconds)
            said = _read(wire, _SECRET + _RANK.size)
            if secrets.compare_digest(said[:_SECRET], secret):
                found[_RANK.unpack(said[_SECRET:])[0]] = wire
            else:  # somebody else
                wire.close()
    return found


def _server(own: Seat) -> socket.socket:
    """On any free port; reached from other machines unless all processes are on this one."""
    if own.host in ("localhost", "127.0.0.1"):
        return socket.create_server(("127.0.0.1", 0), backlog=own.ranks)
    try:
        return socket.create_server(("", 0), family=socket.AF_INET6, backlog=own.ranks, dualstack_ipv6=True)
    except (OSError, ValueError):  # a machine without
        return socket.create_server(("", 0), backlog=own.ranks)


def _call(store: Any, own: Seat, seconds: float) -> tuple[socket.socket, bytes]:
    end = time.monotonic() + seconds
    while True:
        try:
            port, secret = store.get(_WHERE).decode().split("/")
            wire = socket.create_connection((own.host, int(port)), timeout=seconds)
            wire.sendall(bytes.fromhex(secret) + _RANK.pack(own.rank))
            return wire, bytes.fromhex(secret)
        except (OSError, RuntimeError) as error:
            # The address may be that of a leader before this one, which has yet to say where it is.
            if isinstance(error, ConnectionError) and time.monotonic() < end:
                time.sleep(_AGAIN)
                continue
            raise SofttargetsError(
                f"rank {own.rank} cannot reach rank 0 at {own.host} (MASTER_ADDR): {str(error).splitlines()[0]}; "
                "start all ranks again"
            ) from None


def _read(wire: socket.socket, size: int) -> bytes:
    found = b""
    with suppress(OSError):
        while len(found) < size and (part := wire.recv(size - len(found))):
            found += part
    return found
