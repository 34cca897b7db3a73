"""A Ray cluster of 4 logical CPUs on this machine, as `ray start` gives it, for all tests of a process."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from softtargets.executors import RayExecutor

from .processes import of_directory

START_SECONDS = 90


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="session")
def cluster():
    """The address of the cluster; at the end no process of it may be left."""
    if find_spec("ray") is None:
        pytest.skip("needs ray: pip install 'softtargets[ray]'")
    temporary = Path(tempfile.mkdtemp(prefix="str-", dir="/tmp"))  # short: paths of sockets lie below
    (temporary / "token").write_text(secrets.token_hex(32))
    # Before ray is imported: the cluster takes nobody but these tests.
    os.environ["RAY_AUTH_MODE"], os.environ["RAY_AUTH_TOKEN_PATH"] = "token", str(temporary / "token")
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=4"]
    command += ["--num-gpus=0", "--node-ip-address=127.0.0.1", f"--port={address.split(':')[1]}"]
    command += ["--include-dashboard=false", "--disable-usage-stats", "--object-store-memory=100000000"]
    command += [f"--temp-dir={temporary}", f"--dashboard-agent-listen-port={free_port()}"]
    log = temporary / "start.log"
    with open(log, "w") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
    try:
        end = time.monotonic() + START_SECONDS
        while "Ray runtime started" not in log.read_text():
            assert started.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        yield address
    finally:
        started.send_signal(signal.SIGTERM)
        started.wait(60)
        end = time.monotonic() + 20
        while (left := of_directory(f"{temporary}/session")) and time.monotonic() < end:
            time.sleep(0.2)
        for process in left:
            os.kill(process, signal.SIGKILL)
        shutil.rmtree(temporary, ignore_errors=True)
        assert not left


@pytest.fixture(scope="session")
def connected(cluster):
    """Workers that live from one test to the next: starting them takes seconds."""
    with RayExecutor(cluster, workers=4, device="cpu") as executor:
        yield executor


@pytest.fixture
def engine(connected):
    """An executor as it is without options."""
    before = dict(vars(connected))
    connected.__enter__()
    yield connected
    connected.carry, connected.retries, connected.workers = False, before["retries"], 4


@pytest.fixture
def address(cluster, connected):
    """A cluster that nobody uses, for programs that are started."""
    connected.close()
    return cluster
