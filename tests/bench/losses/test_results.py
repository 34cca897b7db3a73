from __future__ import annotations

import json
import math

import pytest
from softtargets.bench.losses.results import Entry, Results

from bench.losses.making import made_up, timing
from softtargets.exceptions import SofttargetsError


def test_results_come_back_from_json_as_they_were(tmp_path):
    results = made_up()
    results.save(tmp_path / "results.json")
    assert Results.load(tmp_path / "results.json") == results


def test_a_number_that_is_none_becomes_null(tmp_path):
    results = made_up()
    item = results.cases[0]
    broken = Entry(
        "eager", "disagrees", "its loss is not finite", loss_error=math.nan, gradient_error=math.inf
    )
    cases = (type(item)(item.case, 0, 1.0, 1.0, 1, (broken,)),)
    Results((), cases).save(tmp_path / "results.json")
    (entry,) = Results.load(tmp_path / "results.json").cases[0].entries
    assert entry.loss_error is None
    assert entry.gradient_error is None


def test_spread_is_relative_to_the_faster_series():
    assert Entry("ours", time=timing(2.0), again=timing(1.6)).spread == pytest.approx(0.25)
    assert Entry("ours", time=timing(2.0)).spread is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "does not hold results of 'softtargets bench losses'"),
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
        Results.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SofttargetsError, match=r"cannot read .*nothing\.json"):
        Results.load(tmp_path / "nothing.json")


def test_the_json_is_plain(tmp_path):
    made_up().save(tmp_path / "results.json")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["cases"][0]["case"] == {
        "loss": "label_smoothing",
        "rows": 8192,
        "classes": 32768,
        "dtype": "bf16",
    }
    assert content["sessions"][0]["device_name"] == "NVIDIA H200"
