from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

import bench.calibration.making as calibration
import bench.losses.making as losses
import bench.training.making as training
import benchmarks
from benchmarks.command import BENCHES
from benchmarks.files import write_files
from benchmarks.losses import BENCH
from benchmarks.losses.results import LossEntry, LossResult
from softtargets.exceptions import SofttargetsError

NAMES = {bench.name for bench in BENCHES}
COMMITTED = [
    path
    for path in sorted(Path(benchmarks.__file__).parent.glob("*/*/results.json"))
    if path.parts[-3] in NAMES
]


@pytest.mark.parametrize("made_up", [losses.made_up, training.made_up, calibration.made_up])
def test_results_come_back_from_their_file_as_they_were(made_up, tmp_path):
    results = made_up()
    results.save(tmp_path / "results.json")
    nothing = next(bench for bench in BENCHES if bench.name == results.bench).results()
    assert nothing.load(tmp_path / "results.json") == results


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_what_is_committed_is_read_and_written_as_it_is(path, tmp_path):
    bench = next(bench for bench in BENCHES if bench.name == path.parts[-3])
    results = bench.results().load(path)
    results.save(tmp_path / "results.json")
    assert (tmp_path / "results.json").read_text().strip() == path.read_text().strip()
    for file, text in bench.texts(results).items():
        assert text == path.with_name(file).read_text(encoding="utf-8"), file
    assert set(bench.drawings(results)) == {file.stem for file in path.parent.glob("*.png")}


def test_the_committed_results_are_found():
    assert len(COMMITTED) >= 4


def test_a_case_measured_again_takes_the_place_of_the_earlier():
    results = losses.made_up()
    first = results.of(LossResult)[0]
    again = losses.result(first.case, LossEntry("ours"))
    assert results.keeping(again).of(LossResult)[-1] == again
    assert len(results.keeping(again).measured) == len(results.measured)


def test_a_number_that_is_none_becomes_null(tmp_path):
    item = losses.made_up().of(LossResult)[0]
    broken = LossEntry(
        "eager", "disagrees", "its loss is not finite", loss_error=math.nan, gradient_error=math.inf
    )
    losses.results(losses.result(item.case, broken)).save(tmp_path / "results.json")
    (entry,) = BENCH.results().load(tmp_path / "results.json").measured[0].entries
    assert entry.loss_error is None
    assert entry.gradient_error is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "does not hold results of 'softtargets bench losses'"),
        ('{"kind": "softtargets bench training", "format": 1}', "does not hold results of"),
        ('{"kind": "softtargets bench losses", "format": 99}', "has format 99"),
        ('{"kind": "softtargets bench losses", "format": 1}', "is damaged or was edited by hand"),
        (
            '{"kind": "softtargets bench losses", "format": 1, "sessions": [], "linear": [], "cases": [{}]}',
            "is damaged",
        ),
    ],
)
def test_a_file_that_is_something_else_is_refused(tmp_path, content, message):
    path = tmp_path / "results.json"
    path.write_text(content)
    with pytest.raises(SofttargetsError, match=message):
        BENCH.results().load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SofttargetsError, match=r"cannot read .*nothing\.json"):
        BENCH.results().load(tmp_path / "nothing.json")


def test_the_json_is_plain(tmp_path):
    losses.made_up().save(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["cases"][0]["case"] == {
        "loss": "label_smoothing",
        "rows": 8192,
        "classes": 32768,
        "dtype": "bf16",
    }
    assert content["sessions"][0]["device_name"] == "NVIDIA H200"
    training.made_up().save(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["cases"][0]["entries"][0]["speeds"] == [{"images": 3840000, "seconds": 2.0}]


@pytest.mark.parametrize("made_up", [losses.made_up, training.made_up, calibration.made_up])
def test_the_same_results_give_the_same_files(made_up, tmp_path):
    results = made_up()
    bench = next(bench for bench in BENCHES if bench.name == results.bench)
    files = write_files(bench, results, tmp_path)
    assert {"results.csv", "results.md", f"{bench.name}.png", f"{bench.name}.svg"} <= {
        file.name for file in files
    }
    before = {file.name: file.read_bytes() for file in files}
    assert {file.name: file.read_bytes() for file in write_files(bench, results, tmp_path)} == before
    assert write_files(bench, bench.results(), tmp_path / "empty")  # nothing measured is no error
