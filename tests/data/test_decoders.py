"""Threads and processes that decode: the same pixels, wherever and by whomever."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from PIL import Image

from softtargets.data import Decoders, Decoding, Memory, Tries, decode_file, decoders
from softtargets.exceptions import DataError

HOW = Decoding(12, keep="picture")


@pytest.fixture
def files(tmp_path):
    draw = np.random.default_rng(3)
    paths = []
    for place in range(21):
        height, width = draw.integers(10, 40, 2)
        path = tmp_path / f"{place}.{'jpg' if place % 2 else 'png'}"
        Image.fromarray(draw.integers(0, 255, (height, width, 3), np.uint8)).save(path)
        paths.append(str(path))
    return paths


def decoded(team, paths, offset=0):
    memory = Memory(offset + len(paths) * HOW.bytes)
    coming = team.decode(paths, HOW, memory, offset)
    sizes = [size for part in coming for size in part.result(timeout=60)]
    found = np.frombuffer(memory.bytes, np.uint8, len(paths) * HOW.bytes, offset)
    return found.reshape(-1, 12, 12, 3), sizes


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_all_files_are_decoded_in_their_order_where_they_belong(files, kind):
    pixels, sizes = decoded(Decoders(2, kind), files, offset=100)
    for place, path in enumerate(files):
        height, width, _ = decode_file(path, HOW).shape
        assert np.array_equal(pixels[place, :height, :width], decode_file(path, HOW))
        assert sizes[place] == (height, width)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_parts_are_cut_where_files_are_decoded(files, kind):
    """Each file gets the tries that came with it, in blocks too."""
    how, memory = Decoding(32, keep="picture", cut=7), Memory(len(files) * 3 * 7 * 7)
    drawn = np.random.default_rng(0)
    tries = [
        Tries([(float(share), 1.1, 1 << 31, 1 << 30)], (0.75, 4 / 3)) for share in drawn.random(len(files))
    ]
    coming = Decoders(2, kind).decode(files, how, memory, 0, tries)
    assert {size for part in coming for size in part.result(timeout=60)} == {(7, 7)}
    found = np.frombuffer(memory.bytes, np.uint8).reshape(-1, 7, 7, 3)
    for place, path in enumerate(files):
        assert np.array_equal(found[place], decode_file(path, how, tries[place]))


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_damaged_file_is_named_and_the_others_go_on(files, kind):
    with open(files[10], "wb") as file:
        file.write(b"damaged")
    team = Decoders(2, kind)
    with pytest.raises(DataError, match=r"10\.png could not be decoded"):
        decoded(team, files)
    assert len(decoded(team, files[:5])[1]) == 5


def children(parent=None):
    """The processes that decode for this one, or for another."""
    found = subprocess.run(
        ["ps", "--ppid", str(parent or os.getpid()), "-o", "pid=,args="],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "softtargets.data.decoder" in line]


def test_a_process_that_is_killed_is_replaced(files):
    team = Decoders(1, "processes")
    before = set(children())
    expected, _ = decoded(team, files)
    (own,) = set(children()) - before
    os.kill(own, signal.SIGKILL)
    pixels, _ = decoded(team, files)
    assert np.array_equal(pixels, expected)
    assert set(children()) - before != {own}


def test_one_that_dies_again_is_told_with_its_files(files, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(
        DataError, match=r"died twice \(exit status 1\).*0\.png.*SOFTTARGETS_DECODE_IN=threads"
    ):
        decoded(Decoders(1, "processes"), files[:3])


def test_processes_end_when_whoever_asks_is_killed(files):
    asked = f"[part.result() for part in team.decode([{files[0]!r}], Decoding(12), memory, 0)]"
    code = f"""
import time
from softtargets.data import Decoders, Decoding, Memory
team, memory = Decoders(1, "processes"), Memory(9999)
{asked}
print("asked", flush=True)
time.sleep(60)
"""
    asking = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert asking.stdout.readline() == "asked\n"
    (decoder,) = children(asking.pid)
    asking.kill()
    asking.wait()
    for _ in range(100):
        if not os.path.exists(f"/proc/{decoder}"):
            return
        time.sleep(0.1)
    pytest.fail("the process that decodes is still there")


def test_the_environment_says_how_many_and_of_which_kind(monkeypatch):
    monkeypatch.setenv("SOFTTARGETS_DECODERS", "3")
    monkeypatch.setenv("SOFTTARGETS_DECODE_IN", "processes")
    assert str(decoders()) == "3 processes"
    assert decoders() is decoders()
    monkeypatch.delenv("SOFTTARGETS_DECODERS")
    monkeypatch.setenv("SOFTTARGETS_DECODE_IN", "")
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(12))
    assert str(decoders()) == "12 processes"  # so many threads wait for each other
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert str(decoders()) == "3 threads"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SOFTTARGETS_DECODERS", "many", "SOFTTARGETS_DECODERS is 'many'; it must be the number of"),
        ("SOFTTARGETS_DECODERS", "0", "from 1 to 1024"),
        (
            "SOFTTARGETS_DECODE_IN",
            "fibres",
            "SOFTTARGETS_DECODE_IN is 'fibres'; it must be one of threads, processes",
        ),
    ],
)
def test_nonsense_in_the_environment_is_refused(monkeypatch, name, value, message):
    monkeypatch.setenv(name, value)
    with pytest.raises(DataError, match=message):
        decoders()
