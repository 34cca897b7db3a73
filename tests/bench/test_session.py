from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from bench.seen import Seen
from benchmarks import session
from benchmarks.bench import Contestant
from benchmarks.calibration import BENCH as CALIBRATION
from benchmarks.calibration.results import CalibrationCase
from benchmarks.losses import BENCH as LOSSES
from benchmarks.losses.results import LossCase
from benchmarks.machine import describe, differences
from benchmarks.session import directory_for, run
from benchmarks.training import BENCH as TRAINING
from benchmarks.training import measure
from softtargets.exceptions import SofttargetsError

CPU = torch.device("cpu")
RIVALS = ("liger", "cut-cross-entropy")


def small(**options):
    words = {"losses": "label_smoothing,labo", "sizes": "4x5", "rivals": "eager", "seconds": 0.0}
    return LOSSES.grid("cpu", **words | options)


def training(**options):
    words = {
        "nets": "fcn",
        "packs": "1,2",
        "arrangements": "stacked",
        "batch": 2,
        "batches": 1,
        "seconds": 0.0,
    }
    return TRAINING.grid("cpu", **words | options)


def calibration(**options):
    words = {"examples": 100, "classes": 4, "batch": 32, "repeats": 1, "rivals": "none", "memory": False}
    return CALIBRATION.grid("cpu", **words | options)


@pytest.mark.parametrize(
    ("bench", "grid", "names"),
    [
        (LOSSES, small(), ["label_smoothing 4 x 5 fp32", "labo 4 x 5 fp32"]),
        (TRAINING, training(), ["fcn, 1 run stacked, batch 2 fp32", "fcn, 2 runs stacked, batch 2 fp32"]),
    ],
    ids=["losses", "training"],
)
def test_results_are_on_disk_after_every_case_and_resume_measures_the_rest(bench, grid, names, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(bench, grid, tmp_path, CPU, "first", progress=Seen(stop_after=1))
    kept = bench.results().load(tmp_path / "results.json")
    assert [str(item.case) for item in kept.measured] == names[:1]
    seen = Seen()
    results = run(bench, grid, tmp_path, CPU, "second", resume=True, progress=seen)
    assert (seen.total, seen.done, seen.cases) == (2, 1, names[1:])
    assert results.measured[0] == kept.measured[0]
    assert [item.session for item in results.measured] == [0, 1]
    assert [session["command"] for session in results.sessions] == ["first", "second"]
    assert bench.results().load(tmp_path / "results.json") == results
    assert run(bench, grid, tmp_path, CPU, "third", resume=True) == results  # nothing is missing


def test_a_case_that_lacks_a_contestant_is_measured_again_as_a_whole(tmp_path):
    run(LOSSES, small(), tmp_path, CPU, "")
    seen = Seen()
    more = small(rivals="eager,liger")
    results = run(LOSSES, more, tmp_path, CPU, "", resume=True, progress=seen)
    assert seen.done == 0
    assert len(results.measured) == 2
    assert results.names() == ["ours", "eager", "liger"]
    assert run(LOSSES, small(), tmp_path, CPU, "", resume=True) == results  # fewer are there already


@pytest.fixture
def quick(monkeypatch):
    """Calibration of which nobody waits for the result."""
    from benchmarks.calibration import measure

    monkeypatch.setattr(measure, "contestant", lambda name, *_: Contestant(name, lambda examples: 0.0))
    monkeypatch.setattr(measure.gc, "collect", lambda: 0)


def test_cases_that_are_compared_with_each_other_are_measured_in_one_session(tmp_path, quick):
    # Two cases that a CPU can measure stand for a CPU and a GPU.
    one = calibration()
    both = replace(one, cases=(*one.cases, CalibrationCase("cpu", 200, 4)))
    run(CALIBRATION, one, tmp_path, CPU, "")
    results = run(CALIBRATION, both, tmp_path, CPU, "", resume=True)
    assert [item.session for item in results.measured] == [1, 1]
    assert run(CALIBRATION, both, tmp_path, CPU, "", resume=True) == results


def test_accuracies_are_compared_once(tmp_path):
    grid = training(nets="none", accuracy=True, epochs=1, seeds=2)
    seen = Seen()
    results = run(TRAINING, grid, tmp_path, CPU, "", progress=seen)
    assert seen.cases == ["accuracy on digits, 1 epoch fp32, 2 seeds"]
    seen = Seen()
    assert run(TRAINING, grid, tmp_path, CPU, "", resume=True, progress=seen) == results
    assert seen.done == seen.total == 1


def test_data_that_is_not_there_is_missed_before_anything_is_measured(tmp_path):
    seen = Seen()
    with pytest.raises(SofttargetsError, match="--data mnist is not there"):
        run(TRAINING, training(data="mnist", data_dir=tmp_path), tmp_path / "out", CPU, "", progress=seen)
    assert not (tmp_path / "out").exists()
    assert seen.total == 0


def test_results_are_not_lost_by_measuring_again(tmp_path):
    first = run(LOSSES, small(), tmp_path, CPU, "")
    with pytest.raises(SofttargetsError, match=r"add --resume .* --overwrite .* --out"):
        run(LOSSES, small(), tmp_path, CPU, "")
    again = run(LOSSES, small(), tmp_path, CPU, "", overwrite=True)
    assert again.measured[0].entries[0].time != first.measured[0].entries[0].time
    assert len(again.sessions) == 1


def test_two_machines_do_not_share_a_file(tmp_path):
    run(LOSSES, small(losses="labo"), tmp_path, CPU, "")
    path = tmp_path / "results.json"
    content = json.loads(path.read_text())
    content["sessions"][0]["torch"] = "1.0"
    path.write_text(json.dumps(content))
    with pytest.raises(SofttargetsError, match=r"torch was 1\.0, is"):
        run(LOSSES, small(), tmp_path, CPU, "", resume=True)


def test_a_failing_case_is_recorded_and_the_others_go_on(tmp_path, monkeypatch):
    honest = measure.ours

    def choosy(case, *rest):
        if case.runs == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return honest(case, *rest)

    monkeypatch.setattr(measure, "ours", choosy)
    results = run(TRAINING, training(), tmp_path, CPU, "")
    assert [item.entry("ours").status for item in results.measured] == ["failed", "ok"]


def test_a_device_that_dies_ends_the_command_after_saving(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "device_error", lambda device: "illegal memory access")
    with pytest.raises(SofttargetsError, match=r"no longer answers \(illegal memory access\)"):
        run(LOSSES, small(), tmp_path, CPU, "")
    assert len(LOSSES.results().load(tmp_path / "results.json").measured) == 1


def test_the_session_says_with_how_many_threads_and_which_rivals(tmp_path, quick):
    before = torch.get_num_threads()
    results = run(CALIBRATION, calibration(threads=before + 1), tmp_path, CPU, "a command")
    (found,) = results.sessions
    assert found["threads"] == results.measured[0].threads == before + 1
    assert {"torchmetrics", "netcal", "torch", "date", "command"} <= set(found)
    assert torch.get_num_threads() == before
    json.dumps(found)


def test_threads_are_given_back_after_an_error(tmp_path):
    before = torch.get_num_threads()
    with pytest.raises(KeyboardInterrupt):
        run(LOSSES, small(threads=before + 1), tmp_path, CPU, "", progress=Seen(stop_after=0))
    assert torch.get_num_threads() == before


def test_provenance_names_versions_and_hardware():
    found = describe(CPU, "python -m benchmarks losses --device cpu", LOSSES.packages)
    assert found["command"] == "python -m benchmarks losses --device cpu"
    assert found["torch"] == torch.__version__
    there = {
        "date",
        "python",
        "triton",
        "liger",
        "cut-cross-entropy",
        "cuda",
        "driver",
        "device_name",
        "commit",
    }
    assert there <= set(found)
    json.dumps(found)
    assert differences(found, found | {"date": "later", "command": "other"}) == []
    assert differences(found, found | {"driver": "580"}) == ["driver was None, is 580"]
    for key in (
        "softtargets",
        "commit",
        "uncommitted_changes",
        "torch",
        "cuda",
        "device_name",
        "threads",
        *RIVALS,
    ):
        assert differences(found, found | {key: "another"}) == [f"{key} was {found[key]}, is another"]


def test_the_default_directory_says_which_bench_and_device(monkeypatch):
    assert directory_for(LOSSES, CPU).as_posix() == "benchmarks/losses/cpu"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "NVIDIA H200")
    assert directory_for(TRAINING, torch.device("cuda")).as_posix() == "benchmarks/training/nvidia-h200"


def test_only_cases_of_the_grid_count_as_missing():
    results = LOSSES.results()
    assert session.missing(small(), results) == [
        LossCase(name, 4, 5, "fp32") for name in ("label_smoothing", "labo")
    ]
