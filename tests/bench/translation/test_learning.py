from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from benchmarks.translation import learning
from softtargets.data import data_directory
from softtargets.studies.study import Settings
from softtargets.studies.translation.corpora import trials


def test_the_recipe_is_what_is_asked_for():
    one, other = learning.recipe(0), learning.recipe(1)
    assert one.id != other.id
    assert (one.model.width, one.model.encoder_layers, one.model.decoder_layers) == (256, 4, 4)
    assert one.regulariser.alpha == 0.1
    assert learning.recipe(0, batch=512).batch == 512


def test_the_runs_are_those_of_the_studies():
    cells = {
        trial.recipe.id
        for trial in trials(Settings(3, {}, "full"))
        if trial.labels["corpus"] == "multi30k" and trial.labels["alpha"] == 0.1
    }
    assert {learning.recipe(seed).id for seed in range(3)} == cells


@pytest.mark.realdata
def test_trainings_are_scored_at_the_end_and_go_on_if_they_were_cut(tmp_path, monkeypatch):
    import typer

    if not (data_directory(None) / "multi30k").is_dir():
        pytest.skip("needs multi30k")
    pytest.importorskip("sacrebleu")
    original = learning.recipe

    def small(seed, epochs, limit):
        return original(
            seed,
            epochs,
            limit,
            **{"model.width": 16, "model.heads": 2, "model.inner": 16, "model.encoder_layers": 1},
            **{"model.decoder_layers": 1, "data.vocabulary": 300},
        )

    monkeypatch.setattr(learning, "recipe", small)
    app = typer.Typer()
    app.command()(learning.main)
    words = ["--store", str(tmp_path), "--seeds", "2", "--epochs", "1", "--limit", "60", "--device", "cpu"]
    cut = CliRunner().invoke(app, [*words, "--minutes", "0"])
    assert cut.exit_code == 3
    assert "call again to go on" in cut.output
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "seed 1: " in done.output
    assert "(asked: 38)" in done.output
    kept = json.loads((tmp_path / "multi30k-seed0.json").read_text())
    assert len(kept["hypotheses"]) == len(kept["references"]) == 1000
