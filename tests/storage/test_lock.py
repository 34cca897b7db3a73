from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from softtargets.exceptions import StorageError
from softtargets.storage import acquire, exclusive, is_held


def test_only_one_at_a_time(tmp_path):
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(10):
            with exclusive(tmp_path / "lock"):
                inside += 1
                most = max(most, inside)
                time.sleep(0.001)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_killed_holder_leaves_no_lock(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from softtargets.storage import exclusive\n"
        "with exclusive(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "lock")], stdout=subprocess.PIPE, env=dict(os.environ)
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.wait()
    start = time.monotonic()
    with exclusive(tmp_path / "lock"):
        assert time.monotonic() - start < 5


def test_a_directory_that_is_not_there_is_a_storage_error(tmp_path):
    with pytest.raises(StorageError, match="cannot lock"), exclusive(tmp_path / "none" / "lock"):
        pass


def test_a_lock_that_was_moved_away_leaves_the_one_in_its_place_alone(tmp_path):
    directory = tmp_path / "run"
    directory.mkdir()
    old = acquire(directory / "lock")
    directory.rename(tmp_path / "moved")
    directory.mkdir()
    new = acquire(directory / "lock")
    assert new is not None
    old.release()
    assert is_held(directory / "lock")
    assert acquire(directory / "lock") is None
    new.release()
    assert not (directory / "lock").exists()
