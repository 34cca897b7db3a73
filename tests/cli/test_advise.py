from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from cli.command import ran
from inspection.advise.cases import noisy, uniform


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(ran, capsys)


@pytest.fixture
def file(tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 1000)
    np.savez(tmp_path / "a.npz", logits=logits, labels=labels)
    return tmp_path / "a.npz"


def test_json_has_the_advice_and_the_code(run, tmp_path, file):
    code, out, err = run("advise", file, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["clean_rate"]["low"] <= 0.8 <= found["clean_rate"]["high"]
    assert found["type"] == "alpha"
    assert found["alpha"]["all"]["value"] == pytest.approx((1 - found["p"]["value"]) * 4 / 3)
    assert found["code"]["PyTorch"].endswith(f"(label_smoothing={found['alpha']['all']['value']:.3f})")
    assert found["recommends_smoothing"]
    assert np.array(found["noise_matrix"]).shape == (4, 4)
    assert (tmp_path / "reports" / "advise-a" / "index.html").exists()


def test_a_terminal_gets_a_table_words_and_lines(run, tmp_path, file):
    code, out, _ = run("advise", file, "--test-labels", "noisy", "--out", tmp_path / "page")
    assert code == 0
    assert "right labels" in out
    assert "torch.nn.CrossEntropyLoss(label_smoothing=" in out
    assert "timm.loss.LabelSmoothingCrossEntropy(smoothing=" in out
    assert f"page: {tmp_path / 'page' / 'index.html'}" in out
    results = json.loads((tmp_path / "page" / "results.json").read_text(encoding="utf-8"))
    assert results["command"] == f"softtargets advise {file} --test-labels noisy --out {tmp_path / 'page'}"


def test_a_teacher_gets_a_warning_and_no_smoothing(run, file):
    code, out, _ = run("advise", file, "--purpose", "teacher", "--method", "confident", "--sample", "600")
    assert code == 0
    assert "A teacher: train it without label smoothing." in out
    assert "Estimated from a sample of " in out
    assert "label_smoothing=" not in out
    found = json.loads(run("advise", file, "--purpose", "transfer", "--method", "naive", "--json")[1])
    assert found["code"] == {}
    assert not found["recommends_smoothing"]


def test_predictions_learned_by_heart_are_refused_advice(run, tmp_path, file):
    labels = np.load(file)["labels"]
    np.savez(tmp_path / "b.npz", logits=8 * np.eye(4)[labels] + 0.1, labels=labels)
    code, out, _ = run("advise", tmp_path / "b.npz")
    assert code == 0
    assert "learned by heart" in out
    assert "label_smoothing=" not in out


def test_a_dataset_is_learned_and_advised_on(run, tmp_path):
    code, out, err = run("advise", "--data", "digits", "--limit", "600", "--folds", "3", "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["examples"], found["examples_used"], found["classes"]) == (1297, 600, 10)
    assert found["clean_rate"]["value"] > 0.94  # these labels are right; what is missing is the model's doing
    assert found["accuracy_on_given_labels"] > 0.85
    assert "logistic regression" in found["trained"]
    assert (tmp_path / "reports" / "advise-digits" / "index.html").exists()
    page = json.loads((tmp_path / "reports" / "advise-digits" / "results.json").read_text(encoding="utf-8"))
    assert page["command"] == "softtargets advise --data digits --limit 600 --folds 3"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give a file with out-of-fold predictions, or a dataset with --data NAME"),
        (["a.npz", "--data", "digits"], "give a file or --data, not both"),
        (["a.npz", "--limit", "5"], "--limit is for --data, not for a file"),
        (["--data", "digits", "--kind", "logits"], "--kind is for a file, not for --data"),
        (["--data", "digits", "--limit", "1"], "--limit must be at least 2 examples, not 1"),
        (["--data", "digits", "--limit", "12"], "raise --limit"),
        (["--data", "digits", "--method", "guess"], "--method must be one of"),
        (["--data", "digit"], "did you mean 'digits'?"),
        (["--data", "digits", "--data-option", "labels=worse"], "has no option 'labels'"),
        (["missing.npz"], "does not exist"),
        (["a.npz", "--purpose", "student"], "--purpose must be classify, teacher or transfer, not student"),
        (["a.npz", "--test-labels", "dirty"], "--test-labels must be clean or noisy, not dirty"),
        (["a.npz", "--method", "guess"], "--method must be one of likelihood, confident, naive, not guess"),
        (["a.npz", "--sample", "0"], "--sample must be at least 1 row, not 0"),
        (["a.npz", "--kind", "odds"], "--kind must be logits or probabilities, not odds"),
        (["one.npz"], "no example is labelled 1"),
        (["few.npz"], "3 examples are too few for 4 classes"),
        (["outside.npz"], "outside.npz"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(run, tmp_path, file, words, sentence):
    logits = np.load(file)["logits"]
    np.savez(tmp_path / "one.npz", logits=logits, labels=np.zeros(1000, int))
    np.savez(tmp_path / "few.npz", logits=logits[:3], labels=np.arange(3))
    np.savez(tmp_path / "outside.npz", logits=logits, labels=np.arange(1000) % 5)
    code, out, err = run("advise", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("reports/*/*"))
