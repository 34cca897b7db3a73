"""`softtargets calibrate` on token predictions of anyone's model: four forms, the same numbers."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest
import torch

from cli.command import ran
from softtargets.calibration import measure_calibration

V = 40


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(ran, capsys)


@pytest.fixture(scope="module")
def tokens():
    generator = torch.Generator().manual_seed(1)
    logits = 3 * torch.randn(30, 12, V, generator=generator)
    labels = torch.distributions.Categorical(logits=logits / 2).sample()
    labels[torch.arange(12)[None] >= torch.randint(4, 13, (30, 1), generator=generator)] = -100
    return logits, labels


def write(kind, tokens):
    logits, labels = tokens
    kept = labels != -100
    top = logits.softmax(-1).max(-1)
    p, right = top.values[kept].tolist(), (top.indices == labels)[kept].tolist()
    if kind == "padded":
        np.savez("a.npz", logits=logits.numpy(), labels=labels.numpy())
        return ["a.npz", "--ignore-index=-100"]
    if kind == "flat":
        np.savez("a.npz", logits=logits[kept].numpy(), labels=labels[kept].numpy())
        return ["a.npz"]
    if kind == "pad id":
        # Class 0 is what others pad with; labels of 0 are then left out too, so there are none here.
        others = torch.where(kept, labels + 1, 0)
        np.savez(
            "a.npz",
            logits=torch.nn.functional.pad(logits, (1, 0), value=-50.0).numpy(),
            labels=others.numpy(),
        )
        return ["a.npz", "--ignore-index", "0"]
    if kind == "csv":
        rows = [f"{a!r},{int(b)}\n" for a, b in zip(p, right, strict=True)]
        with open("a.csv", "w") as file:
            file.writelines(["confidence,correct\n", *rows])
        return ["a.csv"]
    if kind == "jsonl":
        with open("a.jsonl", "w") as file:
            for n in range(len(labels)):
                some = kept[n]
                one = {
                    "id": n,
                    "token_logprobs": top.values[n][some].double().log().tolist(),
                    "predicted": top.indices[n][some].tolist(),
                    "labels": labels[n][some].tolist(),
                }
                file.write(json.dumps(one) + "\n")
        return ["a.jsonl"]
    np.savez("a.npz", conf=top.values.numpy(), out=top.indices.numpy(), gold=labels.numpy())
    names = ["--confidence", "conf", "--prediction", "out", "--label", "gold"]
    return ["a.npz", *names, "--ignore-index=-100"]


@pytest.mark.parametrize("kind", ["padded", "flat", "pad id", "csv", "jsonl", "arrays"])
def test_every_form_gives_the_same_numbers(run, tokens, kind):
    code, out, err = run("calibrate", *write(kind, tokens), "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    expected = measure_calibration(*tokens, from_logits=True, ignore_index=-100)
    assert found["examples"] == expected.examples
    for name in ("expected_calibration_error", "smooth_calibration_error", "accuracy", "mean_confidence"):
        assert found["before"][name] == pytest.approx(getattr(expected, name), abs=1e-5), name
    assert found["before"]["intervals"]["expected_calibration_error"] == pytest.approx(
        expected.intervals["expected_calibration_error"], abs=1e-4
    )
    whole = kind in ("padded", "flat", "pad id")
    assert (found["temperature"] is not None) == whole
    assert found["selection"]["aurc"] > 0
    if whole:
        assert 1.6 < found["temperature"]["value"] < 2.4


def test_a_page_of_confidences_says_why_there_is_no_temperature(run, tokens, tmp_path):
    code, out, err = run("calibrate", *write("csv", tokens), "--out", "page")
    assert (code, err) == (0, "")
    assert "No correction can be fitted to this file." in out
    assert "the file has no scores of other classes" in out
    assert "NLL" not in out
    page = (tmp_path / "page" / "index.html").read_text()
    assert "save the logits of some held-out predictions" in page
    assert (tmp_path / "page" / "reliability_bins.csv").exists() or list(
        (tmp_path / "page").rglob("*reliability*")
    )


def test_labels_of_padding_are_named_with_the_way_out(run, tokens):
    file, _ = write("padded", tokens)
    code, _, err = run("calibrate", file)
    assert code == 2
    assert "label -100" in err
    assert "--ignore-index=-100" in err


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--save-calibrated", "b.npz"], "nothing can be written to b.npz"),
        (["--kind", "logits"], "--kind must be probabilities or left out"),
        (["--labels", "a.csv"], "--labels must be left out with confidences"),
        (["--confidence", "confidense"], "did you mean 'confidence'"),
        (["--correct", "confidence"], "right (1) or wrong (0)"),
        (["--ignore-index", "3"], "has no labels"),
    ],
)
def test_what_confidences_cannot_do(run, tokens, more, words):
    given = more if "--correct" in more or "--confidence" in more else ["--confidence", "confidence", *more]
    code, _, err = run("calibrate", *write("csv", tokens), *given)
    assert code == 2
    assert words in err


def test_one_probability_with_labels_of_a_vocabulary_names_the_way_out(run):
    with open("a.csv", "w") as file:
        file.write("label,prediction,prob\n17,17,0.5\n3,4,0.2\n")
    code, _, err = run("calibrate", "a.csv")
    assert code == 2
    assert "call it 'confidence'" in err
    code, out, _ = run("calibrate", "a.csv", "--confidence", "prob", "--json")
    assert code == 0
    assert json.loads(out)["before"]["accuracy"] == 0.5
