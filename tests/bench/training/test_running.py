from __future__ import annotations

import json

import pytest
import torch
from softtargets.bench import sessions
from softtargets.bench.training import measuring
from softtargets.bench.training.grid import plan
from softtargets.bench.training.results import Results
from softtargets.bench.training.running import default_directory, run
from softtargets.bench.training.writing import write_files

from bench.watching import Seen
from softtargets.exceptions import SofttargetsError

CPU = torch.device("cpu")


def small(**options):
    words = {
        "nets": "fcn",
        "packs": "1,2",
        "arrangements": "stacked",
        "batch": 2,
        "batches": 1,
        "seconds": 0.0,
    }
    return plan("cpu", **words | options)


def names(results: Results) -> list[str]:
    return [str(item.case) for item in results.cases]


def test_results_are_on_disk_after_every_case_and_resume_measures_the_rest(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(small(), tmp_path, CPU, "first", watcher=Seen(stop_after=1))
    kept = Results.load(tmp_path / "results.json")
    assert names(kept) == ["fcn, 1 run stacked, batch 2 fp32"]
    seen = Seen()
    results = run(small(), tmp_path, CPU, "second", resume=True, watcher=seen)
    assert (seen.total, seen.done, seen.cases) == (2, 1, ["fcn, 2 runs stacked, batch 2 fp32"])
    assert results.cases[0] == kept.cases[0]
    assert [item.session for item in results.cases] == [0, 1]
    assert [session["command"] for session in results.sessions] == ["first", "second"]
    assert Results.load(tmp_path / "results.json") == results
    assert run(small(), tmp_path, CPU, "third", resume=True) == results  # nothing is missing


def test_a_case_that_lacks_a_rival_is_measured_again_as_a_whole(tmp_path):
    run(small(packs="1"), tmp_path, CPU, "")
    results = run(small(packs="1", eager_precision="bf16"), tmp_path, CPU, "", resume=True)
    (item,) = results.cases
    assert [entry.name for entry in item.entries] == ["ours", "eager", "eager bf16"]
    assert item.session == 1


def test_accuracies_are_compared_once(tmp_path):
    options = {"nets": "none", "accuracy": True, "epochs": 1, "seeds": 2}
    seen = Seen()
    results = run(small(**options), tmp_path, CPU, "", watcher=seen)
    assert seen.cases == ["accuracy on digits, 1 epoch fp32, 2 seeds"]
    seen = Seen()
    assert run(small(**options), tmp_path, CPU, "", resume=True, watcher=seen) == results
    assert seen.done == seen.total == 1


def test_data_that_is_not_there_is_missed_before_anything_is_measured(tmp_path):
    with pytest.raises(SofttargetsError, match="--data mnist is not there"):
        run(small(data="mnist"), tmp_path / "out", CPU, "", data_dir=tmp_path)
    assert not (tmp_path / "out").exists()


def test_results_are_not_lost_by_measuring_again(tmp_path):
    first = run(small(), tmp_path, CPU, "")
    with pytest.raises(SofttargetsError, match=r"add --resume .* --overwrite .* --out"):
        run(small(), tmp_path, CPU, "")
    again = run(small(), tmp_path, CPU, "", overwrite=True)
    assert names(again) == names(first)
    assert again.cases[0].entries[0].speeds != first.cases[0].entries[0].speeds


def test_two_machines_do_not_share_a_file(tmp_path):
    run(small(packs="1"), tmp_path, CPU, "")
    path = tmp_path / "results.json"
    content = json.loads(path.read_text())
    content["sessions"][0]["torch"] = "1.0"
    path.write_text(json.dumps(content))
    with pytest.raises(SofttargetsError, match=r"torch was 1\.0, is"):
        run(small(), tmp_path, CPU, "", resume=True)


def test_a_failing_case_is_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    honest = measuring.Ours

    def choosy(case, *rest):
        if case.runs == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return honest(case, *rest)

    monkeypatch.setattr(measuring, "Ours", choosy)
    results = run(small(), tmp_path, CPU, "")
    assert [item.entry("ours").status for item in results.cases] == ["failed", "ok"]
    assert Results.load(tmp_path / "results.json") == results


def test_a_device_that_dies_ends_the_command_after_saving(tmp_path, monkeypatch):
    monkeypatch.setattr(sessions, "device_error", lambda device: "illegal memory access")
    with pytest.raises(SofttargetsError, match=r"no longer answers \(illegal memory access\)"):
        run(small(), tmp_path, CPU, "")
    assert len(Results.load(tmp_path / "results.json").cases) == 1


def test_the_default_directory_says_which_device(monkeypatch):
    assert default_directory(CPU).as_posix() == "benchmarks/training/cpu"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert default_directory(torch.device("cuda")).as_posix() == "benchmarks/training/nvidia-h200"


def test_everything_made_from_results_lies_beside_them(tmp_path):
    results = run(small(accuracy=True, epochs=1, seeds=2), tmp_path, CPU, "")
    files = write_files(results, tmp_path)
    assert [file.name for file in files] == [
        "results.csv",
        "results.md",
        "accuracy.csv",
        "training.png",
        "training.svg",
    ]
    before = {file.name: file.read_bytes() for file in files}
    assert {file.name: file.read_bytes() for file in write_files(results, tmp_path)} == before
