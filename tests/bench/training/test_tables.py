from __future__ import annotations

import csv
import io
from dataclasses import replace

from bench.training.making import made_up, results
from benchmarks.training import BENCH
from benchmarks.training.results import AccuracyResult, TrainingResult
from benchmarks.training.tables import accuracy_overview, overview, remarks, summary, texts, verdict


def cell(table, row: int, heading: str) -> str:
    headings, rows = table
    return rows[row][headings.index(heading)]


def test_one_line_per_case_with_rates_ratio_and_set_up():
    table = overview(made_up())
    assert cell(table, 0, "net") == "fcn"
    assert cell(table, 3, "runs") == "64"
    assert cell(table, 3, "ours images/s") == "11.0 M/s"
    assert cell(table, 3, "torch eager images/s") == "200 k/s"
    assert cell(table, 3, "ours / torch eager") == "55.0x"
    assert cell(table, 3, "engine's choice") == "yes"
    assert cell(table, 4, "engine's choice") == "no"
    assert cell(table, 3, "set-up") == "31.5 s"
    assert cell(table, 3, "memory ours") == "57.60 GB"
    assert cell(table, -1, "ours images/s") == "out of memory"
    assert cell(table, -1, "ours / torch eager") == "–"


def test_a_second_rival_has_columns_of_its_own():
    table = overview(made_up(also_bf16=True))
    assert cell(table, 0, "ours / torch eager") == "9.60x"
    assert cell(table, 0, "ours / torch eager, bf16") == "11.3x"


def test_accuracies_are_in_per_cent_and_differences_in_points():
    table = accuracy_overview(made_up())
    assert cell(table, 0, "ours") == "97.04 ± 0.38 %"
    assert cell(table, 0, "difference") == "+0.20 ± 0.24 points"
    assert cell(table, 0, "allowed") == "0.69 points"
    assert cell(table, 0, "verdict") == "within the allowed 0.69 points"
    worse = replace(made_up().of(AccuracyResult)[0], ours=(0.95, 0.951, 0.949))
    assert verdict(worse).startswith("DIFFERENT: beyond the allowed ")
    failed = replace(
        made_up().of(AccuracyResult)[0], ours=(), eager=(), status="failed", reason="a run failed: NaN"
    )
    assert accuracy_overview(results(failed))[1][0][-1] == "failed"


def test_markdown_has_every_table_and_where_it_comes_from():
    text = texts(made_up())["results.md"]
    assert "NVIDIA H200, 2026-11-20T12:00:00+00:00. softtargets 0.1.0" in text
    assert "```\npython -m benchmarks training --accuracy\n```" in text
    assert "differed by at most 4.1 %" in text
    assert "| fcn | 128 | 1 | stacked | yes | bf16 | 1.92 M/s | 200 k/s | 9.60x |" in text
    assert "Allowed: 2 standard errors and 0.2 points." in text
    assert "- ours failed: out of memory (resnet18, 16 runs streams, batch 128 bf16)" in text


def test_csv_has_one_line_per_contestant_and_one_per_seed():
    found = made_up(also_bf16=True)
    lines = list(csv.DictReader(io.StringIO(texts(found)["results.csv"])))
    assert len(lines) == 3 * len(found.of(TrainingResult))
    assert float(lines[0]["images_per_second"]) == 1_920_000
    assert float(lines[1]["times_slower_than_ours"]) == 9.6
    seeds = list(csv.DictReader(io.StringIO(texts(found)["accuracy.csv"])))
    assert [(line["side"], line["seed"]) for line in seeds][4:6] == [("ours", "4"), ("eager", "0")]


def test_one_case_in_one_line():
    found = made_up()
    assert summary(found.of(TrainingResult)[0]) == (
        "fcn, 1 run stacked, batch 128 bf16: ours 1.92 M/s; torch eager 200 k/s; 9.60x; set-up 31.5 s"
    )
    assert summary(found.of(TrainingResult)[-1]) == (
        "resnet18, 16 runs streams, batch 128 bf16: ours out of memory; torch eager 12.0 k/s"
    )
    assert summary(found.of(AccuracyResult)[0]).endswith(
        "ours 97.04 ± 0.38 %; torch eager 96.84 ± 0.38 %; within the allowed 0.69 points"
    )
    failed = replace(found.of(AccuracyResult)[0], status="failed", reason="a run failed: NaN")
    assert summary(failed).endswith(": a run failed: NaN")
    assert remarks(results(failed)) == [f"the comparison failed: a run failed: NaN ({failed.case})"]


def test_nothing_measured_is_no_error():
    assert overview(BENCH.results())[1] == []
    found = texts(BENCH.results())
    assert found["results.csv"] == "net\n"
    assert "accuracy.csv" not in found
    assert found["results.md"].startswith("# Training")
