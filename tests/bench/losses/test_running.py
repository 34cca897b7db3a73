from __future__ import annotations

import json

import pytest
import torch
from softtargets.bench import sessions
from softtargets.bench.losses.grid import plan
from softtargets.bench.losses.results import Results
from softtargets.bench.losses.running import default_directory, run
from softtargets.bench.losses.writing import write_files
from softtargets.bench.machine import describe, differences

from bench.watching import Seen
from softtargets.exceptions import SofttargetsError

CPU = torch.device("cpu")


def small(**options):
    words = {"losses": "label_smoothing,labo", "sizes": "4x5", "rivals": "eager", "seconds": 0.0}
    return plan("cpu", **words | options)


def test_results_are_on_disk_after_every_case_and_resume_measures_the_rest(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(small(), tmp_path, CPU, "first", watcher=Seen(stop_after=1))
    kept = Results.load(tmp_path / "results.json")
    assert [str(item.case) for item in kept.cases] == ["label_smoothing 4 x 5 fp32"]
    seen = Seen()
    results = run(small(), tmp_path, CPU, "second", resume=True, watcher=seen)
    assert (seen.total, seen.done, seen.cases) == (2, 1, ["labo 4 x 5 fp32"])
    assert results.cases[0] == kept.cases[0]
    assert [item.session for item in results.cases] == [0, 1]
    assert [session["command"] for session in results.sessions] == ["first", "second"]
    assert Results.load(tmp_path / "results.json") == results


def test_a_case_that_lacks_a_contestant_is_measured_again_as_a_whole(tmp_path):
    run(small(), tmp_path, CPU, "")
    seen = Seen()
    results = run(small(rivals="eager,liger"), tmp_path, CPU, "", resume=True, watcher=seen)
    assert seen.done == 0
    assert len(results.cases) == 2
    assert results.names() == ["ours", "eager", "liger"]
    assert run(small(), tmp_path, CPU, "", resume=True) == results  # fewer are there already


def test_results_are_not_lost_by_measuring_again(tmp_path):
    first = run(small(), tmp_path, CPU, "")
    with pytest.raises(SofttargetsError, match=r"add --resume .* --overwrite .* --out"):
        run(small(), tmp_path, CPU, "")
    again = run(small(), tmp_path, CPU, "", overwrite=True)
    assert again.cases[0].entries[0].time != first.cases[0].entries[0].time


def test_two_machines_do_not_share_a_file(tmp_path):
    run(small(losses="labo"), tmp_path, CPU, "")
    path = tmp_path / "results.json"
    content = json.loads(path.read_text())
    content["sessions"][0]["torch"] = "1.0"
    path.write_text(json.dumps(content))
    with pytest.raises(SofttargetsError, match=r"torch was 1\.0, is"):
        run(small(), tmp_path, CPU, "", resume=True)


def test_a_device_that_dies_ends_the_command_after_saving(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "device_error", lambda device: "illegal memory access")
    with pytest.raises(SofttargetsError, match=r"no longer answers \(illegal memory access\)"):
        run(small(), tmp_path, CPU, "")
    assert len(Results.load(tmp_path / "results.json").cases) == 1


def test_provenance_names_versions_and_hardware():
    session = describe(CPU, "softtargets bench losses --device cpu")
    assert session["command"] == "softtargets bench losses --device cpu"
    assert session["torch"] == torch.__version__
    assert {"date", "python", "triton", "liger", "cuda", "driver", "device_name", "commit"} <= set(session)
    json.dumps(session)
    assert differences(session, session | {"date": "later", "command": "other"}) == []
    assert differences(session, session | {"driver": "580"}) == ["driver was None, is 580"]


def test_the_default_directory_says_which_device(monkeypatch):
    assert default_directory(CPU).as_posix() == "benchmarks/losses/cpu"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert default_directory(torch.device("cuda")).as_posix() == "benchmarks/losses/nvidia-h200"


def test_everything_made_from_results_lies_beside_them(tmp_path):
    results = run(small(linear=True), tmp_path, CPU, "")
    files = write_files(results, tmp_path)
    names = ["results.csv", "results.md", "losses.png", "losses.svg", "linear.png", "linear.svg"]
    assert [file.name for file in files] == names
    assert all(file.stat().st_size > 100 for file in files)
    before = {file.name: file.read_bytes() for file in files}
    assert {file.name: file.read_bytes() for file in write_files(results, tmp_path)} == before
