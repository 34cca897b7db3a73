from __future__ import annotations

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
    assert CliRunner().invoke(app, [*arguments, "--where", "seed=1"]).output == f"1 runs in {target}\n"
    (line,) = gzip.decompress(target.read_bytes()).splitlines()
    assert json.loads(line)["recipe"]["seed"] == 1


def test_the_command_says_when_there_is_nothing(store, tmp_path):
    empty = CliRunner().invoke(
        app, ["runs", "export", str(tmp_path / "x"), "--runs-dir", str(tmp_path / "none")]
    )
    assert empty.exit_code != 0
    assert "no finished runs to export" in str(empty.exception)
    wrong = CliRunner().invoke(
        app,
        ["runs", "export", str(tmp_path / "x"), "--runs-dir", str(store.root), "--where", "modle=mlp"],
    )
    assert "did you mean" in str(wrong.exception)
