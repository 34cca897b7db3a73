"""Names, files and terminals that nobody would expect: one line, and no work that is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import torch

from softtargets.recipes import LABO, Recipe

from .command import ran

RECIPE = "data: {name: digits, limit: 60}\nmodel: {name: mlp, hidden: [8]}\nepochs: 1\nbatch: 20\n"
TEACHER = "teacher: {data: {name: digits, limit: 60}, model: mlp, epochs: 1, batch: 20, regulariser: labo}"


def predictions(path, names=("a", "b", "c"), rows: int = 60):
    scores = np.random.default_rng(0).normal(size=(rows, len(names)))
    lines = [",".join([*map(str, row), str(row.argmax())]) for row in scores]
    path.write_text("\n".join([",".join(['"' + name + '"' for name in (*names, "label")]), *lines, ""]))
    return path


@pytest.mark.parametrize(
    "regulariser", ["{name: labo}", "{name: distillation, " + TEACHER + "}", "{name: labo, alpha: 0.1}"]
)
def test_a_regulariser_that_finds_its_own_strength_is_trained(capsys, tmp_path, regulariser):
    file = tmp_path / "recipe.yaml"
    file.write_text(f"{RECIPE}regulariser: {regulariser}\n")
    code, out, err = ran(capsys, "train", file, "--runs-dir", tmp_path / "runs", "--device", "cpu")
    assert (code, "test_accuracy" in out) == (0, True), err
    assert "labo" in err
    code, out, err = ran(capsys, "runs", "list", "--runs-dir", tmp_path / "runs")
    assert (code, "None" in out) == (0, False)
    assert Recipe.from_yaml(f"{RECIPE}regulariser: labo").regulariser == LABO()


@pytest.mark.parametrize("option", ["--out", "--runs-dir"])
def test_a_link_that_leads_nowhere_is_one_line(capsys, tmp_path, option):
    (tmp_path / "link").symlink_to(tmp_path / "unmounted")
    if option == "--out":
        words = ["calibrate", predictions(tmp_path / "a.csv")]
    else:
        (tmp_path / "recipe.yaml").write_text(RECIPE)
        words = ["train", tmp_path / "recipe.yaml"]
    code, _, err = ran(capsys, *words, option, tmp_path / "link")
    assert (code, "which does not exist" in err.splitlines()[-1]) == (2, True)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "a" * 5000 + "=b.npz"])
def test_names_that_no_system_has_are_refused_in_one_line(capsys, name):
    for words in (["view", name], ["calibrate", name]):
        code, _, err = ran(capsys, *words)
        assert (code, err.count("\n")) == (2, 1), err


def test_a_name_that_is_no_text_does_not_cost_the_page(tmp_path):
    path = os.fsencode(predictions(tmp_path / "a.csv"))
    odd = path.replace(b"a.csv", b"\xff.csv")
    os.rename(path, odd)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for more in ([], ["--json"]):
        words = [sys.executable, "-m", "softtargets", "calibrate", odd, "--out", tmp_path / "page", *more]
        done = subprocess.run(words, capture_output=True, env=environment, timeout=120)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (tmp_path / "page" / "index.html").exists()
        assert not more or json.loads(done.stdout)["report"]


def test_nothing_that_a_file_says_moves_the_cursor(capsys, tmp_path):
    path = predictions(tmp_path / "a.csv", ("\x1b[2Jcat", "b\x07", "c"))
    code, out, err = ran(capsys, "calibrate", path, "--out", tmp_path / "page")
    assert code == 0, err
    assert all(character.isprintable() or character == "\n" for character in out)
    code, _, err = ran(capsys, "calibrate", tmp_path / "no\n\x1b[2Jsuch.csv")
    assert (code, err.count("\n"), "\x1b" in err) == (2, 1, False)
    code, _, err = ran(capsys, "train", tmp_path / "no\n\x1b[2Jsuch.yaml")
    assert (code, err.count("\n"), "\x1b" in err) == (2, 1, False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_an_output_that_is_full_is_no_bug(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with open("/dev/full", "w") as full:
        words = [sys.executable, "-m", "softtargets", "runs", "list", "--runs-dir", str(tmp_path)]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=environment, timeout=120)
    assert done.returncode == 2
    assert done.stderr == b"error: cannot write the output: No space left on device\n"


def test_an_endless_device_is_no_recipe(capsys):
    code, _, err = ran(capsys, "recipe", "check", "/dev/zero")
    assert (code, "has more than 4 MiB, too much for a recipe" in err) == (2, True)


def test_what_had_not_begun_is_not_called_saved(capsys, tmp_path, monkeypatch):
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("softtargets.executors.local.train", pressed)
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    code, _, err = ran(capsys, "train", tmp_path / "recipe.yaml", "--runs-dir", tmp_path / "runs")
    assert (code, "had not started" in err, "saved" in err) == (130, True, False)


@pytest.mark.parametrize("number", [2**70, -(2**70)])
def test_a_label_that_no_file_can_have_is_refused(capsys, tmp_path, number):
    path = predictions(tmp_path / "a.csv")
    code, _, err = ran(capsys, "calibrate", path, "--ignore-index", number, "--out", tmp_path / "page")
    assert (code, "--ignore-index" in err) == (2, True), err


def test_advice_names_options_and_shows_labels_as_they_are(capsys, tmp_path):
    scores = torch.randn(20, 3)
    labels = torch.zeros(20)
    for label, words in ((-1, "--ignore-index=-1"), (float("inf"), "the label inf")):
        labels[3] = label
        np.savez(tmp_path / "a.npz", logits=scores.numpy(), labels=labels.numpy())
        code, _, err = ran(capsys, "calibrate", tmp_path / "a.npz", "--out", tmp_path / "page")
        assert (code, words in err, "ignore_index" in err) == (2, True, False), err
