"""Addresses that cannot be, and clusters that do not answer, in one line each."""

from __future__ import annotations

import socket
import sys
import types

import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.executors import RayExecutor, make_executor
from softtargets.executors.ray import cluster
from softtargets.executors.ray.cluster import Cluster
from softtargets.executors.ray.staff import why_died


class Fake(types.ModuleType):
    """What a connection asks of Ray, which answers as it is told."""

    class exceptions:
        class AuthenticationError(Exception):
            pass

    def __init__(self, error=None):
        super().__init__("ray")
        self.error, self.asked = error, None

    def is_initialized(self):
        return False

    def init(self, **how):
        self.asked = how
        if self.error:
            raise self.error

    def shutdown(self):
        pass


@pytest.fixture
def ray(monkeypatch):
    fake = Fake()
    monkeypatch.setattr(cluster, "import_ray", lambda: fake)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return fake


@pytest.fixture
def listening():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (
            "ray://head:10001",
            r"^ray://head:10001 is an address of Ray Client.*--address auto.*ray job submit",
        ),
        ("head", r"^--address head: write HOST:PORT as `ray start --head` prints it, or auto"),
        ("head:99999", r"^--address head:99999: write HOST:PORT"),
        ("127.0.0.1:1", r"^no Ray cluster answers at 127.0.0.1:1 \(Connection refused\)"),
    ],
)
def test_addresses_that_are_refused(ray, address, said, monkeypatch):
    with pytest.raises(SofttargetsError, match=said):
        Cluster.connect(address, 1)
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(SofttargetsError, match=said):
        Cluster.connect(None, 1)
    assert ray.asked is None


def test_what_ray_says_when_it_cannot_connect(ray, listening, monkeypatch):
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    ray.error = ConnectionError("Could not find any running Ray instance. Please specify ...\nmore")
    with pytest.raises(
        SofttargetsError, match=r"^--address auto: no Ray cluster runs on this machine; start one"
    ):
        Cluster.connect("auto", 1)
    with pytest.raises(SofttargetsError, match=r"does not answer: Could not find .*set RAY_AUTH_MODE=token$"):
        Cluster.connect(listening, 1)
    ray.error = RuntimeError(
        "Version mismatch: The cluster was started with:\n    Ray: 2.1.0\n    Python: 3.9.1\nThis process was "
        "started with:\n    Ray: 2.60.0\n    Python: 3.11.7\n"
    )
    with pytest.raises(SofttargetsError) as told:
        Cluster.connect(listening, 1)
    assert "has different versions from this program" in str(told.value)
    assert "Ray: 2.1.0 Python: 3.9.1" in str(told.value)
    assert "\n" not in str(told.value)
    ray.error = Fake.exceptions.AuthenticationError("long advice")
    with pytest.raises(SofttargetsError, match="does not accept our token"):
        Cluster.connect(listening, 1)


def test_a_connection_of_the_calling_program_is_used_and_left_alone(ray):
    ray.is_initialized = lambda: True
    ray.shutdown = lambda: pytest.fail("it is not ours")
    Cluster.connect(None, 1).close()
    assert ray.asked is None


def test_why_a_worker_died():
    fake = types.SimpleNamespace(
        exceptions=types.SimpleNamespace(OutOfMemoryError=MemoryError, RuntimeEnvSetupError=KeyError)
    )
    assert why_died(fake, MemoryError("task was killed")) == "its node ran out of memory"
    assert (
        why_died(fake, Exception("The actor died because its node has died. Node Id: 1")) == "its node died"
    )
    assert why_died(fake, Exception("worker process has died")) == "its process was killed or crashed"
    missing = Exception("ModuleNotFoundError: No module named 'softtargets'")
    assert why_died(fake, missing).startswith(
        "softtargets is not installed there: pip install 'softtargets[ray]=="
    )


def test_options_that_cannot_be():
    with pytest.raises(SofttargetsError, match=r"^gpus_per_worker must be above 0 and at most 1, not 2"):
        RayExecutor(gpus_per_worker=2)
    with pytest.raises(SofttargetsError, match=r"^cpus_per_worker must be at least 1, not 0"):
        RayExecutor(cpus_per_worker=0)
    with pytest.raises(SofttargetsError, match=r"there is no executor 'rai' \(did you mean 'ray'\?\)"):
        make_executor("rai")
    assert "ray" not in sys.modules or sys.modules["ray"].__name__ == "ray"
