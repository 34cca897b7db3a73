"""What studies measured, kept with a run."""

from __future__ import annotations

import math
import os
from threading import Thread

import pytest

from softtargets.runs import Measured, RunStore, keep_measures, measured_by, read_measures

from .made import finished


@pytest.fixture
def run(tmp_path):
    return finished(RunStore(tmp_path), 0)


def test_numbers_come_back_as_they_were_also_those_that_are_none(run):
    found = Measured(
        {"a": 0.1, "b": math.nan, "c": -math.inf, "d": 3, "e": True}, {"points": [[1, 2.5]]}, "c", "t"
    )
    assert keep_measures(run, "a-study", found)
    back = measured_by(run, "a-study")
    assert repr(back) == repr(found)
    assert back.says_the_same_as(found)
    assert run.problems() == [], "they are no part of what is sealed"


def test_the_same_numbers_are_not_written_again(run):
    keep_measures(run, "s", Measured({"a": 1.0}, {}, "first", "t"))
    keep_measures(run, "s", Measured({"a": 1.0}, {}, "second", "u"))
    assert measured_by(run, "s").code == "first"
    keep_measures(run, "s", Measured({"a": 2.0}, {}, "second", "u"))
    assert measured_by(run, "s").code == "second"


def test_studies_do_not_meet(run):
    threads = [Thread(target=keep_measures, args=(run, f"s{n}", Measured({"n": float(n)}))) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {study: found.measures["n"] for study, found in read_measures(run).items()} == {
        f"s{n}": n for n in range(8)
    }


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "UPPER", "x" * 101])
def test_a_name_that_is_no_studys_is_kept_nowhere(run, name):
    assert not keep_measures(run, name, Measured({"a": 1.0}))
    assert measured_by(run, name) is None


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"measures": 3}', '{"measures": {"a": "x"}}', '{"measures": {"a": NaN}}']
)
def test_a_file_that_somebody_edited_counts_as_none(run, content):
    keep_measures(run, "s", Measured({"a": 1.0}))
    (run.directory / "measures" / "s.json").write_text(content)
    assert measured_by(run, "s") is None
    assert read_measures(run) == {}
    assert keep_measures(run, "s", Measured({"a": 1.0}))
    assert measured_by(run, "s").measures == {"a": 1.0}


def test_what_is_no_json_is_not_kept(run):
    assert not keep_measures(run, "s", Measured({"a": 1.0}, {"odd": object()}))
    assert not keep_measures(run, "s", Measured({"a": 1.0}, {"odd": [math.nan]}))
    assert measured_by(run, "s") is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_nothing_is_kept_where_nothing_may_be_written(run):
    run.directory.chmod(0o500)
    try:
        assert not keep_measures(run, "s", Measured({"a": 1.0}))
    finally:
        run.directory.chmod(0o700)


def test_a_file_in_the_way_is_no_error(run):
    (run.directory / "measures").write_text("in the way")
    assert not keep_measures(run, "s", Measured({"a": 1.0}))
    assert read_measures(run) == {}


def test_today_names_the_code_and_the_time():
    found = Measured.today({"a": 1.0}, {})
    assert found.code
    assert found.at.startswith("20")
