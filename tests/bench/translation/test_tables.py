from __future__ import annotations

import csv
import io
from dataclasses import replace

from bench.translation.making import made_up, timed
from benchmarks.translation import BENCH
from benchmarks.translation.drawing import draw_translation
from benchmarks.translation.results import DecodingResult, StepResult, TrainingResult
from benchmarks.translation.tables import (
    decoding_overview,
    overview,
    remarks,
    step_overview,
    summary,
    texts,
)


def cell(table, row: int, heading: str) -> str:
    headings, rows = table
    return rows[row][headings.index(heading)]


def test_one_line_per_pack_with_what_is_asked_of_it():
    table = overview(made_up())
    assert cell(table, 0, "ours tokens/s") == "1.35 M/s"
    assert cell(table, 0, "nn.Transformer tokens/s") == "300 k/s"
    assert cell(table, 0, "ours / nn.Transformer") == "4.50x"
    assert cell(table, 0, "asked") == "at least 4x: met"
    assert cell(table, 1, "asked") == "at least 8x: met"
    assert cell(table, 2, "ours tokens/s") == "out of memory"
    assert cell(table, 2, "asked") == "at least 8x"
    assert cell(table, 3, "asked") == "at least 3x: MISSED"
    assert cell(table, 1, "memory") == "7.60 GB"


def test_a_step_may_take_little_longer_and_decoding_is_held_against_the_fastest():
    assert cell(step_overview(made_up()), 0, "ratio") == "1.10x"
    assert cell(step_overview(made_up()), 0, "asked") == "at most 1.05x: MISSED"
    table = decoding_overview(made_up())
    assert cell(table, 0, "ours sentences/s") == "10.0 k/s"
    assert cell(table, 0, "hugging face 256 sentences/s") == "500 /s"
    assert cell(table, 0, "ours / fastest") == "12.5x"
    assert cell(table, 0, "asked") == "at least 10x: met"


def test_remarks_name_the_best_pack_and_who_failed():
    lines = remarks(made_up())
    assert lines[0].startswith("replication, 1 run,")
    assert any(line.startswith("replication, 4 runs") and "asked: at least 8x: met" in line for line in lines)
    assert any("ours failed: out of memory" in line for line in lines)


def test_every_kind_of_case_has_a_summary_and_the_files_have_all():
    results = made_up()
    for item in results.everything():
        assert str(item.case) in summary(item)
    found = texts(results)
    lines = list(csv.DictReader(io.StringIO(found["results.csv"])))
    assert len(lines) == sum(len(item.entries) for item in results.everything())
    assert {line["kind"] for line in lines} == {"training", "steps", "decoding"}
    assert "13.0 % are padding" in found["results.md"]


def test_results_come_back_from_json_as_they_were(tmp_path):
    results = made_up()
    results.save(tmp_path / "results.json")
    again = BENCH.results().load(tmp_path / "results.json")
    for kind in (TrainingResult, StepResult, DecodingResult):
        assert again.of(kind) == results.of(kind)


def test_a_rival_that_is_not_there_leaves_no_ratio():
    (item,) = made_up().of(DecodingResult)
    alone = replace(item, entries=(timed("ours", 0.1),))
    assert alone.ratio is None
    assert "asked" not in summary(alone)


def test_the_picture_has_a_panel_for_each_size_and_for_decoding():
    drawing = draw_translation(made_up())
    assert [axes.get_title() for axes in drawing.axes] == [
        "Training replication, 3+3 layers, 512/512, 8 heads",
        "Training iwslt, 6+6 layers, 512/1024, 4 heads",
        "Beam 5, multi30k, 1000 sentences to 32 tokens",
    ]
