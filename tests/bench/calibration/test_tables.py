from __future__ import annotations

import csv
import io

from bench.calibration.making import cpu, entry, made_up, results
from benchmarks.calibration import BENCH
from benchmarks.calibration.tables import overview, remarks, summary, texts, verdicts


def cell(table, row: int, heading: str) -> str:
    headings, rows = table
    return rows[row][headings.index(heading)]


def test_the_overview_has_ratios_against_ours_and_against_the_cpu():
    table = overview(made_up())
    assert cell(table, 0, "time") == "1.00 s"
    assert cell(table, 3, "contestant") == "torchmetrics: ECE"
    assert cell(table, 3, "time / ours") == "2.00x"
    assert cell(table, 3, "time / ours with intervals") == "1.33x"
    assert cell(table, 4, "time") == "absent"
    assert cell(table, 5, "speed / CPU") == "40.0x"
    assert cell(table, 0, "speed / CPU") == "–"
    assert cell(table, 8, "memory, a quarter") == "10.0 MB"
    assert cell(table, 8, "memory, all") == "40.0 MB"
    assert cell(table, 9, "time") == "out of memory"
    assert cell(table, 0, "ECE") == "0.020000"
    assert cell(table, 0, "off float64 by") == "1e-08"


def test_columns_that_nobody_fills_are_left_out():
    headings, _ = overview(results(cpu()))
    assert not any("memory" in heading or "CPU" in heading for heading in headings)


def test_what_the_numbers_come_to():
    lines = verdicts(made_up())
    assert lines == [
        "cpu, 1,000 x 10: the time for the ECE alone, in multiples of ours: 2.00x (torchmetrics)",
        "cpu, 1,000 x 10: the time for the ECE alone, in multiples of ours with intervals: 1.33x (torchmetrics)",
        "cuda, 10,000 x 10: the time for the ECE alone, in multiples of ours: 0.50x (torchmetrics)",
        "cuda, 10,000 x 10: the time for the ECE alone, in multiples of ours with intervals: 0.17x (torchmetrics)",
        "cuda, 10,000 x 10: 40.0x the examples per second of ours on the CPU (2 threads)",
        "cuda, 10,000 x 10: streaming takes 4.00 MB for 250 examples and 4.00 MB for 1,000",
    ]


def test_who_is_missing_or_wrong_is_explained():
    wrong = entry("netcal", 1.0, status="disagrees", reason="its ECE is 1")
    assert remarks(made_up()) == [
        *verdicts(made_up()),
        "netcal absent: netcal is not installed (pip install netcal) (cpu, 1,000 x 10)",
        "netcal failed: out of memory (cuda, 10,000 x 10)",
    ]
    assert summary(cpu(wrong)).endswith("torchmetrics 2.00 s; netcal 1.00 s *")
    assert remarks(results(cpu(wrong)))[-1:] == ["netcal disagrees: its ECE is 1 (cpu, 1,000 x 10)"]


def test_markdown_has_the_table_and_where_it_comes_from():
    text = texts(made_up())["results.md"]
    assert "NVIDIA H200, 2026-11-20T12:00:00+00:00." in text
    assert "CPU: A processor, 2 threads of 16 cores. Rivals: torchmetrics 1.9.0." in text
    assert "| cpu | 1,000 x 10 | torchmetrics: ECE | 2.00 s |" in text
    assert "within 1e-06" in text
    assert "## Notes" in text


def test_csv_has_one_line_per_contestant():
    lines = list(csv.DictReader(io.StringIO(texts(made_up())["results.csv"])))
    assert len(lines) == 10
    assert lines[3]["times_ours"] == "2.0"
    assert lines[5]["speed_over_cpu"] == "40.0"
    assert (lines[8]["memory_quarter"], lines[8]["memory_all"]) == ("10000000", "40000000")
    assert lines[9]["median"] == ""
    assert texts(BENCH.results())["results.csv"] == "device\n"
