from __future__ import annotations

import json

import pytest
import torch
from softtargets.bench.calibration import running
from softtargets.bench.calibration.grid import plan
from softtargets.bench.calibration.results import Results
from softtargets.bench.calibration.running import default_directory, run, threads
from softtargets.bench.calibration.writing import write_files

from bench.watching import Seen
from softtargets.exceptions import SofttargetsError

CPU = torch.device("cpu")


def small(**options):
    words = {"examples": 100, "classes": 4, "batch": 32, "repeats": 1, "rivals": "none", "memory": False}
    return plan("cpu", **words | options)


def test_results_are_on_disk_and_measured_once(tmp_path):
    seen = Seen()
    results = run(small(), tmp_path, CPU, "first", watcher=seen)
    assert (seen.total, seen.done, seen.cases) == (1, 0, ["cpu, 100 x 4"])
    assert Results.load(tmp_path / "results.json") == results
    with pytest.raises(SofttargetsError, match="add --resume"):
        run(small(), tmp_path, CPU, "again")
    seen = Seen()
    assert run(small(), tmp_path, CPU, "again", resume=True, watcher=seen) == results
    assert (seen.total, seen.done, seen.cases) == (1, 1, [])
    more = run(small(rivals="netcal"), tmp_path, CPU, "more", resume=True)
    assert [item.session for item in more.cases] == [1]
    assert len(run(small(), tmp_path, CPU, "all", overwrite=True).sessions) == 1


def test_both_cases_of_a_gpu_are_measured_in_one_session(tmp_path, monkeypatch):
    measured = []
    real = running.measure

    def measure(case, bench):
        measured.append(case.device)
        return real(case, bench)

    monkeypatch.setattr(running, "measure", measure)
    # Two cases that a CPU can measure stand for a CPU and a GPU.
    one, two = small(), small(examples=200)
    both = type(one)((*one.cases, *two.cases), (), 32, 1, None, False)
    run(one, tmp_path, CPU, "")
    results = run(both, tmp_path, CPU, "", resume=True)
    assert len(measured) == 3
    assert [item.session for item in results.cases] == [1, 1]


def test_the_session_says_with_how_many_threads_and_which_rivals(tmp_path):
    before = torch.get_num_threads()
    results = run(small(threads=1), tmp_path, CPU, "softtargets bench calibration")
    session = results.sessions[0]
    assert session["threads"] == results.cases[0].threads == 1
    assert {"torchmetrics", "netcal", "torch", "date", "command"} <= set(session)
    assert torch.get_num_threads() == before
    json.dumps(session)


def test_threads_are_given_back_after_an_error():
    before = torch.get_num_threads()

    def interrupted() -> None:
        with threads(before + 1):
            assert torch.get_num_threads() == before + 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert torch.get_num_threads() == before


def test_the_default_directory_says_which_device():
    assert default_directory(CPU).as_posix() == "benchmarks/calibration/cpu"


def test_everything_made_from_results_lies_beside_them(tmp_path):
    results = run(small(), tmp_path, CPU, "")
    files = write_files(results, tmp_path)
    assert [file.name for file in files] == [
        "results.csv",
        "results.md",
        "calibration.png",
        "calibration.svg",
    ]
    before = {file.name: file.read_bytes() for file in files}
    assert {file.name: file.read_bytes() for file in write_files(results, tmp_path)} == before
    assert write_files(Results(), tmp_path / "empty")
