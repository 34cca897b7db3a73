from __future__ import annotations

import csv
import gzip
import json

import pytest
from typer.testing import CliRunner

from softtargets.cli.app import app
from softtargets.exceptions import RunError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import RunStore, export_logs
from softtargets.training import train


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("runs"))
    recipe = Recipe(data=Digits(limit=64), model=MLP(hidden=(4,)), epochs=2, batch=32)
    train([recipe, recipe.replace({"seed": 1})], store, device="cpu", keep=())
    return store


def runs_of(store):
    return [store.get(entry.id) for entry in store.entries()]


def test_every_run_is_one_line_with_all_that_was_logged(store, tmp_path):
    assert export_logs(runs_of(store), tmp_path / "logs.jsonl") == 2
    found = [json.loads(line) for line in (tmp_path / "logs.jsonl").read_text().splitlines()]
    assert [entry["id"] for entry in found] == sorted(run.id for run in runs_of(store))
    for entry in found:
        run = store.get(entry["id"])
        assert Recipe.from_dict(entry["recipe"]).id == run.id
        assert [row["epoch"] for row in entry["history"]] == [1, 2]
        assert entry["history"] == run.history()
        assert entry["summary"] == run.summary
        assert entry["provenance"]["device"] == "cpu"


def test_the_same_runs_give_the_same_bytes_compressed_too(store, tmp_path):
    for name in ("one.jsonl.gz", "two.jsonl.gz", "plain.jsonl"):
        export_logs(runs_of(store)[:: 1 if name.startswith("one") else -1], tmp_path / name)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    unpacked = gzip.decompress((tmp_path / "one.jsonl.gz").read_bytes())
    assert unpacked == (tmp_path / "plain.jsonl").read_bytes()


def test_a_damaged_run_is_refused_and_nothing_is_written(store, tmp_path):
    run = runs_of(store)[0]
    metrics = run.directory / "metrics.jsonl"
    kept = metrics.read_bytes()
    metrics.write_bytes(kept[:-5])
    try:
        with pytest.raises(RunError, match="is damaged"):
            export_logs(runs_of(store), tmp_path / "logs.jsonl")
    finally:
        metrics.write_bytes(kept)
    assert not (tmp_path / "logs.jsonl").exists()


def test_the_command_takes_a_filter(store, tmp_path):
    target = tmp_path / "logs.jsonl.gz"
    arguments = ["runs", "export", str(target), "--runs-dir", str(store.root)]
    assert CliRunner().invoke(app, [*arguments, "--where", "seed=1"]).output == f"1 run in {target}\n"
    (line,) = gzip.decompress(target.read_bytes()).splitlines()
    assert json.loads(line)["recipe"]["seed"] == 1


def test_the_command_says_when_there_is_nothing(store, tmp_path):
    empty = CliRunner().invoke(
        app, ["runs", "export", str(tmp_path / "x.jsonl"), "--runs-dir", str(tmp_path / "none")]
    )
    assert empty.exit_code != 0
    assert "no finished runs to export" in str(empty.exception)
    wrong = CliRunner().invoke(
        app,
        ["runs", "export", str(tmp_path / "x.jsonl"), "--runs-dir", str(store.root), "--where", "modle=mlp"],
    )
    assert "did you mean" in str(wrong.exception)


@pytest.mark.parametrize("name", ["runs.csv", "runs.CSV", "runs.csv.gz"])
def test_a_name_that_ends_in_csv_gets_a_table(store, tmp_path, name):
    target = tmp_path / name
    arguments = ["runs", "export", str(target), "--runs-dir", str(store.root)]
    assert CliRunner().invoke(app, arguments).output == f"2 runs in {target}\n"
    content = target.read_bytes()
    text = (gzip.decompress(content) if name.endswith("gz") else content).decode()
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["id"] for row in rows] == sorted(run.id for run in runs_of(store))
    for row in rows:
        run = store.get(row["id"])
        assert row["status"] == "finished"
        assert row["recipe.model.hidden"] == "[4]"
        assert int(row["recipe.seed"]) == run.recipe.seed
        assert float(row["summary.test_accuracy"]) == run.summary["test_accuracy"]
        assert row["provenance.device"] == "cpu"


@pytest.mark.parametrize("name", ["runs.parquet", "runs", "runs.json", "runs.csv.zip", "runs.gz"])
def test_other_kinds_of_file_are_refused_before_anything_is_read(store, tmp_path, name):
    target = tmp_path / name
    refused = CliRunner().invoke(app, ["runs", "export", str(target), "--runs-dir", str(store.root)])
    assert "end the name in .jsonl" in str(refused.exception)
    assert not target.exists()
