from __future__ import annotations

import csv
import io

from bench.scale.making import made_up, store
from benchmarks.results import BenchResults
from benchmarks.scale import BENCH
from benchmarks.scale.results import OPERATIONS, StoreEntry, StoreResult
from benchmarks.scale.tables import claims, disk, growth, heads, remarks, stores, summary, texts


def rows(table):
    headings, lines = table
    return {line[0]: dict(zip(headings, line, strict=True)) for line in lines}


def test_stores_have_a_line_for_each_operation_with_its_growth():
    found = rows(stores(made_up()))
    assert len(found) == len(OPERATIONS)
    write, plan = found["write a finished run, each"], found["`train`, all finished"]
    assert (write["10 runs"], write["10,000 runs"], write["grows as"]) == ("4.00 ms", "4.00 ms", "n^0.00")
    assert (plan["100 runs"], plan["10,000 runs"], plan["grows as"]) == ("1.00 ms", "10.0 s", "n^2.00")
    assert (write["peak memory"], write["processors"], plan["processors"]) == ("1.00 MB", "2.00 ms", "5.00 s")


def test_growth_is_told_from_stores_that_are_large_enough():
    few = [store(10, [("find", 1.0)]), store(100, [("find", 9.0)])]
    assert growth(few, "find") is None
    assert growth([*few, store(1000, [("find", 90.0)])], "find") == 1.0


def test_what_grows_more_than_it_should_is_named():
    assert remarks(made_up()) == [
        "find a run grows as n^1.00, more than its share",
        "`train`, all finished grows as n^2.00, more than its share",
    ]


def test_what_failed_is_there_with_its_reason():
    entry = StoreEntry("find", "failed", "the disk is full")
    case = store(10, []).case
    broken = StoreResult(case=case, session=0, entries=(entry,), bytes=1, inodes=1, index_bytes=1)
    results = BENCH.results().keeping(broken)
    assert rows(stores(results))["find a run, each"]["10 runs"] == "failed"
    assert remarks(results) == ["find a run failed: the disk is full (10 runs)"]
    assert summary(broken) == "10 runs: find failed"


def test_disk_claims_and_heads():
    found = rows(disk(made_up()))
    assert found["10,000"] == {
        "runs": "10,000",
        "on disk": "300 MB",
        "files and directories": "80,000",
        "bytes of a run": "30,000",
        "index": "9.00 MB",
    }
    competing = rows(claims(made_up()))
    assert competing["8"]["claims, all together"] == "8.00 k/s"
    assert competing["8"]["held by another"] == "20.0 %"
    assert competing["1"]["runs finished, all together"] == "400 /s"
    busy = rows(heads(made_up()))["through the head, one run in a file"]
    assert (busy["cost of a run"], busy["at most"], busy["512 workers"]) == ("2.00 ms", "500 /s", "10.2 s")


def test_files_of_text():
    written = texts(made_up())
    lines = list(csv.DictReader(io.StringIO(written["results.csv"])))
    assert len(lines) == 3 * len(OPERATIONS) + 4
    assert {line["operation"] for line in lines} == {*OPERATIONS, "claims", "finishes"}
    for part in (
        "## What is done with a store",
        "## On disk",
        "## When a head is busy",
        "n^2.00",
        "## Notes",
    ):
        assert part in written["results.md"]
    empty = texts(BenchResults("scale", made_up().kinds))
    assert empty["results.csv"] == "runs\n"
