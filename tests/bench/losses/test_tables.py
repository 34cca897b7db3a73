from __future__ import annotations

import csv
import io

from bench.losses.making import made_up
from benchmarks.losses import BENCH
from benchmarks.losses.results import LinearResult, LossResult
from benchmarks.losses.tables import linear_overview, overview, remarks, summary, texts


def cell(table, row: int, heading: str) -> str:
    headings, rows = table
    return rows[row][headings.index(heading)]


def test_the_overview_shows_multiples_of_the_floor_and_time_per_call_for_small_sizes():
    table = overview(made_up())
    assert cell(table, 0, "ours") == "1.90x"
    assert cell(table, 0, "Liger") == "3.65x"
    assert cell(table, 0, "best rival / ours") == "1.92x"
    assert cell(table, 0, "memory torch eager") == "3.00"
    assert cell(table, 2, "Liger") == "–"
    assert cell(table, -4, "ours") == "60.0 µs"
    assert cell(table, -4, "best rival / ours") == "1.58x"
    assert cell(table, -4, "memory ours") == "–"


def test_who_failed_or_disagrees_is_marked_and_explained():
    results = made_up()
    table = overview(results)
    assert cell(table, 7, "torch eager") == "out of memory"
    assert cell(table, 8, "torch eager") == "13.2x *"
    # Who disagrees is no rival to boast of beating.
    assert cell(table, 8, "best rival / ours") == f"{13.8 / 2.6:.2f}x"
    assert "torch eager failed: out of memory (labo 4096 x 131072 fp32)" in remarks(results)
    assert "Liger absent: Liger has no such loss (labo 8192 x 32768 bf16 and 13 more)" in remarks(results)


def test_markdown_has_every_table_and_where_it_comes_from():
    text = texts(made_up())["results.md"]
    assert "NVIDIA H200, 2026-11-20T12:00:00+00:00. softtargets 0.1.0, python 3.12.3, torch 2.11.0" in text
    assert "Commit 0123456789." in text
    assert "```\npython -m benchmarks losses\n```" in text
    assert "Copy rate: 4.25 TB/s" in text
    assert "| label_smoothing | 8192 x 32768 | bf16 | 253 µs | 1.90x (480 µs) |" in text
    for heading in ("Time per call", "Peak extra memory", "Errors against float64", "Projection", "Notes"):
        assert f"## {heading}" in text
    for line in text.splitlines():
        if line.startswith("| label_smoothing | 8192 x 32768 | bf16"):
            assert line.count("|") in (8, 9)


def test_csv_has_one_line_per_contestant():
    results = made_up()
    lines = list(csv.DictReader(io.StringIO(texts(results)["results.csv"])))
    assert len(lines) == sum(len(item.entries) for item in results.everything())
    assert float(lines[0]["times_floor"]) == 1.9
    assert lines[0]["memory_in_logits"] == "1.0"
    assert lines[-1]["section"] == "linear"
    assert lines[-1]["status"] == "absent"


def test_the_linear_section():
    table = linear_overview(made_up())
    assert cell(table, 0, "of three products") == "1.30x"
    assert cell(table, 0, "memory without gradients") == "0.40 GB"
    assert cell(table, 3, "time") == "failed"


def test_one_case_in_one_line():
    results = made_up()
    assert summary(results.of(LossResult)[2]) == (
        "labo 8192 x 32768 bf16: ours 2.13x; torch eager 48.0x; torch.compile 9.80x"
    )
    assert "ours, materialised 1.40x" in summary(results.of(LinearResult)[0])


def test_nothing_measured_is_no_error():
    assert overview(BENCH.results())[1] == []
    found = texts(BENCH.results())
    assert found["results.csv"] == "loss\n"
    assert found["results.md"].startswith("# Losses")
