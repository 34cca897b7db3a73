from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from cli.command import ran
from inspection.cases import rare_class
from inspection.made import net
from softtargets.calibration import expected_calibration_error, load_correction
from softtargets.predictions import open_predictions

LOGITS, LABELS = net(600, 4, sharpness=2.0)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in a directory of its own, which has predictions."""
    monkeypatch.chdir(tmp_path)
    np.savez("val.npz", logits=LOGITS.numpy(), labels=LABELS.numpy())
    np.savez("p.npz", probabilities=LOGITS.softmax(1).numpy(), labels=LABELS.numpy())
    return partial(ran, capsys)


def test_corrected_predictions_and_their_correction_are_saved(run, tmp_path):
    code, out, err = run("calibrate", "val.npz", "--save-calibrated", "cal.npz")
    assert (code, err) == (0, "")
    assert "corrected predictions: cal.npz" in out
    assert "correction: cal.correction.json" in out
    correction = load_correction("cal.correction.json")
    scores, labels = open_predictions("cal.npz").load()
    assert torch.equal(labels, LABELS)
    assert torch.allclose(scores, correction(LOGITS), atol=1e-6)
    assert expected_calibration_error(scores.softmax(1), labels) < 0.5 * expected_calibration_error(
        LOGITS.softmax(1), LABELS
    )
    beside = load_correction(tmp_path / "reports" / "calibrate-val" / "correction.json")
    assert beside.numbers() == correction.numbers()


@pytest.mark.parametrize("file", ["val.npz", "p.npz"])
@pytest.mark.parametrize("ending", ["npz", "csv", "safetensors"])
def test_apply_does_to_another_file_what_calibrate_did(run, file, ending):
    run("calibrate", file, "--save-calibrated", f"a.{ending}")
    code, out, err = run("apply", "a.correction.json", file, "--out", f"b.{ending}")
    assert (code, err) == (0, "")
    assert f"600 examples of {file} corrected: b.{ending}" in out
    one, two = (open_predictions(f"{name}.{ending}").load() for name in "ab")
    assert torch.equal(one[0], two[0])
    assert torch.equal(one[1], two[1])


def test_apply_needs_no_labels(run):
    run("calibrate", "val.npz", "--save-calibrated", "a.npz")
    np.savez("new.npz", logits=LOGITS[:50].numpy())
    code, out, _ = run("apply", "a.correction.json", "new.npz", "--out", "b.npz", "--json")
    assert code == 0
    assert json.loads(out) == {
        "written": "b.npz",
        "kind": "logits",
        "examples": 50,
        "method": "temperature",
        "predictions_changed": 0,
    }
    with np.load("b.npz") as found:
        assert list(found) == ["logits"]
        assert found["logits"] == pytest.approx(
            load_correction("a.correction.json")(LOGITS[:50]).numpy(), abs=1e-6
        )


def test_nothing_is_saved_where_nothing_helps(run):
    np.savez("good.npz", logits=net(600, 4)[0].numpy(), labels=net(600, 4)[1].numpy())
    code, out, err = run("calibrate", "good.npz", "--save-calibrated", "cal.npz", "--out", "page")
    assert code == 2
    assert "nothing was written to cal.npz: Leave the model as it is." in err
    assert "Leave the model as it is." in out
    assert not Path("cal.npz").exists()


def test_a_correction_of_an_older_page_does_not_stay(run, tmp_path):
    run("calibrate", "val.npz", "--out", "page")
    assert (tmp_path / "page" / "correction.json").exists()
    np.savez("good.npz", logits=net(600, 4)[0].numpy(), labels=net(600, 4)[1].numpy())
    run("calibrate", "good.npz", "--out", "page")
    assert not (tmp_path / "page" / "correction.json").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["a.correction.json", "p.npz", "--out", "b.npz"],
            "has probabilities, but the correction was fitted to logits",
        ),
        (
            ["a.correction.json", "five.npz", "--out", "b.npz"],
            "has 5 classes, but the correction was fitted to 4",
        ),
        (["a.correction.json", "val.npz", "--out", "a.npz"], "a.npz exists already; choose another name"),
        (
            ["a.correction.json", "val.npz", "--out", "b.xyz"],
            "ends in '.xyz'; predictions are written as one of",
        ),
        (["new.json", "val.npz", "--out", "b.npz"], "has version 7, and this program reads version 1"),
        (["val.npz", "val.npz", "--out", "b.npz"], "is not a correction"),
        (["a.correction.json", "missing.npz", "--out", "b.npz"], "does not exist"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(run, tmp_path, words, sentence):
    run("calibrate", "val.npz", "--save-calibrated", "a.npz")
    np.savez("five.npz", logits=np.random.default_rng(0).normal(size=(9, 5)))
    (tmp_path / "new.json").write_text('{"format": "softtargets correction", "version": 7}')
    before = sorted(one.name for one in tmp_path.iterdir())
    code, out, err = run("apply", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert sorted(one.name for one in tmp_path.iterdir()) == before


def test_saving_refuses_to_write_over_files_before_it_begins(run, tmp_path):
    (tmp_path / "cal.correction.json").write_text("mine")
    code, out, err = run("calibrate", "val.npz", "--save-calibrated", "cal.npz")
    assert (code, out) == (2, "")
    assert "cal.correction.json exists already" in err
    assert not (tmp_path / "reports").exists()
    assert run("calibrate", "val.npz", "--save-calibrated", "cal.npz", "--overwrite")[0] == 0
    assert load_correction("cal.correction.json").temperature > 1


def test_classes_in_another_order_are_refused(run, tmp_path):
    for name, classes in (("a.csv", "xyz"), ("b.csv", "xzy")):
        rows = [",".join([*(f"prob_{one}" for one in classes), "label"])]
        p = LOGITS[:, :3].softmax(1)
        truth = torch.multinomial(
            (LOGITS[:, :3] / 3).softmax(1), 1, generator=torch.Generator().manual_seed(0)
        )
        labels = ["xyz"[i] for i in truth.flatten().tolist()]
        rows += [",".join([*map(repr, row), label]) for row, label in zip(p.tolist(), labels, strict=True)]
        (tmp_path / name).write_text("\n".join(rows) + "\n")
    run("calibrate", "a.csv", "--save-calibrated", "c.csv")
    code, _, err = run("apply", "c.correction.json", "b.csv", "--out", "d.csv")
    assert code == 2
    assert "class 1 is 'z' in b.csv, but was 'y' when the correction was fitted" in err


def test_one_example_is_one_example(run):
    run("calibrate", "p.npz", "--save-calibrated", "cal.npz")
    np.savez("one.npz", probabilities=LOGITS[:1].softmax(1).numpy(), labels=LABELS[:1].numpy())
    assert (
        "1 example of one.npz corrected"
        in run("apply", "cal.correction.json", "one.npz", "--out", "x.npz")[1]
    )
    assert "1 example, 4 classes" in run("calibrate", "one.npz")[1]
    assert "1 example, 4 classes" in run("advise", "one.npz")[1]
    assert "1 example;" in run("compare", "one.npz", "one.npz")[1]


def test_predictions_that_become_another_class_are_counted(run):
    logits, labels = rare_class()
    np.savez("rare.npz", logits=logits.numpy(), labels=labels.numpy())
    _, out, _ = run("calibrate", "rare.npz", "--save-calibrated", "a.npz")
    assert "(recall of class 2: " in out
    assert "the correction costs recall" in out
    _, out, _ = run("apply", "a.correction.json", "rare.npz", "--out", "b.npz")
    with np.load("b.npz") as found:
        changed = int((found["logits"].argmax(1) != logits.numpy().argmax(1)).sum())
    assert changed > 100
    assert f"{changed} predictions changed to another class" in out
