"""The connection to a Ray cluster, one that is there or a small one of our own; and what can go wrong, in sentences."""

from __future__ import annotations

import logging
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError
from softtargets.executors.ray import undertaker

_HOST_AND_PORT = re.compile(r"(?P<host>[^:/\s]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})")
_REACH_SECONDS = 5.0
# Runs lie in files: what travels through Ray here are recipes and lines of progress.
_OBJECT_BYTES = 100 << 20
_LONGEST_TEMPORARY = 40  # characters: Ray puts sockets below, whose paths may have 107


def import_ray() -> Any:
    """The package, or one line that says what to install."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    # What matters is told by us; Ray would put it on standard output, among what scripts read there.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    try:
        return import_module("ray")
    except ImportError as error:
        raise SofttargetsError(
            f"--executor ray needs Ray, which cannot be imported ({error}); pip install 'softtargets[ray]'"
        ) from None


@dataclass
class Cluster:
    """A cluster that we are connected to. `undertaker` sees to the end of one that we have started."""

    ray: Any
    ours: bool
    undertaker: subprocess.Popen[bytes] | None = None

    @classmethod
    def connect(cls, address: str | None, cpus: float) -> Cluster:
        """Connect to a cluster; without an address start one with so many logical CPUs on this machine."""
        address = address or os.environ.get("RAY_ADDRESS") or None
        if address in (None, "local"):
            _make_token()
        ray = import_ray()
        _check(address)
        if ray.is_initialized():  # by the program that calls us, whose connection it stays
            return cls(ray, ours=False)
        how: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        if address not in (None, "local"):
            with _own_signals():
                _join(ray, str(address), how)
            return cls(ray, ours=True)
        temporary = _temporary()
        watching = _watch(temporary)
        how |= {"num_cpus": cpus, "include_dashboard": False, "object_store_memory": _OBJECT_BYTES}
        try:
            with _own_signals():
                ray.init(address="local", _temp_dir=str(temporary), **how)
        except BaseException as error:
            with suppress(Exception):
                ray.shutdown()
            _dismiss(watching)
            if not isinstance(error, Exception):
                raise
            raise SofttargetsError(
                f"Ray could not be started on this machine: {_first_line(error)}"
            ) from error
        return cls(ray, ours=True, undertaker=watching)

    def close(self) -> None:
        """Disconnect from a cluster that was there, end one that we have started."""
        if self.ours:
            self.ray.shutdown()
        if self.undertaker is not None:
            _dismiss(self.undertaker)

    def has(self, resource: str) -> float:
        """How much of a resource the cluster has in all: CPU, GPU, memory."""
        return float(self.ray.cluster_resources().get(resource, 0.0))

    def free(self, resource: str) -> float:
        """How much of it nobody uses."""
        return float(self.ray.available_resources().get(resource, 0.0))

    def room_for(self, sized: dict[str, float]) -> int:
        """How many workers of these sizes all nodes together have room for, when nobody else uses them."""
        found = 0
        for node in self.ray.nodes():
            if node["Alive"]:
                there = node["Resources"]
                found += int(min(there.get(name, 0.0) / size for name, size in sized.items() if size))
        return found


def _make_token() -> None:
    """A Ray of our own takes only us; Ray would otherwise leave a token in the user's home for that."""
    told = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys()
    if not told and "ray" not in sys.modules:  # which has read these variables when it was imported
        os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN"] = "token", secrets.token_hex(32)


def _check(address: str | None) -> None:
    """Refuse an address that is none, and one that nobody answers at."""
    if address in (None, "auto", "local"):
        return
    if str(address).startswith("ray://"):
        raise SofttargetsError(
            f"{address} is an address of Ray Client, which cannot transfer runs; give the command on a node of the "
            "cluster with --address auto, or submit it: ray job submit -- softtargets ... --executor ray"
        )
    match = _HOST_AND_PORT.fullmatch(str(address))
    if match is None or int(match["port"]) > 65535:
        raise SofttargetsError(
            f"--address {address}: write HOST:PORT as `ray start --head` prints it, or auto for the cluster of this "
            "machine"
        )
    try:
        socket.create_connection((match["host"].strip("[]"), int(match["port"])), _REACH_SECONDS).close()
    except OSError as error:
        raise SofttargetsError(
            f"no Ray cluster answers at {address} ({error.strerror or error}); `ray start --head` prints the "
            "address, and `ray status --address HOST:PORT` checks it"
        ) from None


def _join(ray: Any, address: str, how: dict[str, Any]) -> None:
    try:
        ray.init(address=address, **how)
    except ConnectionError as error:
        if address == "auto":
            raise SofttargetsError(
                "--address auto: no Ray cluster runs on this machine; start one with `ray start --head`, join one with "
                "`ray start --address HOST:PORT`, or leave --address out"
            ) from None
        token = "" if "RAY_AUTH_MODE" in os.environ else "; if it asks for a token, set RAY_AUTH_MODE=token"
        raise SofttargetsError(
            f"the Ray cluster at {address} does not answer: {_first_line(error)}{token}"
        ) from None
    except ray.exceptions.AuthenticationError:
        raise SofttargetsError(
            f"the Ray cluster at {address} does not accept our token; put the cluster's token into "
            "RAY_AUTH_TOKEN_PATH or RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token"
        ) from None
    except RuntimeError as error:
        if "ersion mismatch" in str(error):
            raise SofttargetsError(
                f"the Ray cluster at {address} has different versions from this program: {_versions(str(error))}; "
                "install the same Ray and Python on both"
            ) from None
        raise SofttargetsError(
            f"the Ray cluster at {address} cannot be used: {_first_line(error)}"
        ) from error


def _versions(text: str) -> str:
    """The versions in Ray's own message, on one line."""
    return " ".join(text.partition(":")[2].split()).rstrip(".") or "versions differ"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


def _temporary() -> Path:
    base = tempfile.gettempdir()
    return Path(tempfile.mkdtemp(prefix="st-ray-", dir=base if len(base) <= _LONGEST_TEMPORARY else "/tmp"))


def _watch(directory: Path) -> subprocess.Popen[bytes]:
    """A process that ends the Ray of a directory when we are gone, or close its pipe."""
    program = [sys.executable, "-S", undertaker.__file__, str(directory), str(os.getpid())]
    return subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)


def _dismiss(watching: subprocess.Popen[bytes]) -> None:
    assert watching.stdin is not None
    watching.stdin.close()
    watching.wait()


@contextmanager
def _own_signals() -> Iterator[None]:
    """Signals mean what they meant before: Ray takes SIGTERM for itself when it connects."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
