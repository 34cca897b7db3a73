from __future__ import annotations

import pytest
import torch

from softtargets.exceptions import RecipeError
from softtargets.recipes import Calibration, Probe
from softtargets.recipes.schema import kinds
from softtargets.runs import RunStore
from softtargets.training import train
from softtargets.training.probing import PROBES

from .making import finished, started


def test_every_probe_a_recipe_names_can_be_made():
    assert set(PROBES) == set(kinds(Probe))


def test_a_probe_looks_every_so_many_steps_and_at_the_end(recipe):
    watched = recipe.replace({"probes": [Calibration(every=7)], "epochs": 3})
    history = finished(started(watched)).slots[0].history
    assert [row["step"] for row in history] == [5, 7, 10, 14, 15]
    assert [row["step"] for row in history if "calibration.test_ece" in row] == [7, 14, 15]
    bare = finished(started(watched.replace({"probes": []}))).slots[0].history
    assert bare[-1]["test_loss"] == history[-1]["test_loss"], "looking changes nothing"


@pytest.mark.parametrize("stacked", [False, True])
def test_what_it_sees_is_the_net_of_its_own_run(recipe, stacked, tmp_path):
    others = [recipe.replace({"seed": seed}) for seed in (1, 2)] if stacked else []
    watched = recipe.replace({"probes": [Calibration(every=100, split="validation", bins=5)]})
    run = train([*others, watched], RunStore(tmp_path), device="cpu")[-1]
    said = run.predictions("validation")
    confidence, guess = said.logits.softmax(-1).max(-1)
    gap = 0.0
    for place in range(5):
        inside = (confidence * 5).long().clamp(max=4) == place
        if inside.any():
            right = (guess[inside] == said.labels[inside]).double().mean()
            gap += float(inside.double().mean() * (confidence[inside].double().mean() - right).abs())
    assert run.summary["calibration.validation_ece"] == pytest.approx(gap, abs=1e-6)
    assert run.summary["calibration.validation_confidence"] == pytest.approx(
        float(confidence.double().mean())
    )


def test_what_is_no_number_is_nothing(recipe, monkeypatch):
    monkeypatch.setitem(PROBES, "calibration", lambda moment, split, bins: {"odd": float("nan")})
    history = finished(started(recipe.replace({"probes": ["calibration"], "epochs": 1}))).slots[0].history
    assert history[-1]["calibration.odd"] is None


def test_the_numbers_of_a_probe_survive_a_resume(recipe, tmp_path):
    from softtargets.training import Watcher

    watched = recipe.replace({"probes": [Calibration(every=3)]})
    (whole,) = train([watched], RunStore(tmp_path / "whole"), device="cpu")

    class Stop(Watcher):
        def epoch(self, recipe, row):
            if row["step"] == 9:
                raise RuntimeError("power cut")

    store = RunStore(tmp_path / "cut")
    with pytest.raises(RuntimeError):
        train([watched], store, device="cpu", watcher=Stop(), checkpoint_seconds=0)
    (resumed,) = train([watched], store, device="cpu")
    assert resumed.history() == whole.history()
    assert torch.equal(resumed.weights()["head.weight"], whole.weights()["head.weight"])


def test_a_split_that_is_not_there_is_refused(recipe):
    with pytest.raises(RecipeError, match=r"probes\.0\.split: there is no validation split to look at"):
        recipe.replace({"data.validation": 0, "probes": [Calibration(split="validation")]})
