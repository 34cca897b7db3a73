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
    logits, labels, _ = noisy(uniform(0.8, 4), 1500)
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
    assert found["identified"] is True
    assert found["error_rate"]["value"] == pytest.approx(1 - found["clean_rate"]["value"])
    assert found["suspicious"]["file"] == "suspicious.csv"
    rows = (tmp_path / "reports" / "advise-a" / "suspicious.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 1 + found["suspicious"]["count"]
    assert np.array(found["noise_matrix"]).shape == (4, 4)
    assert (tmp_path / "reports" / "advise-a" / "index.html").exists()


def test_a_terminal_gets_a_table_words_and_lines(run, tmp_path, file):
    code, out, _ = run("advise", file, "--test-labels", "noisy", "--out", tmp_path / "page")
    assert code == 0
    assert out.startswith(("About ", "Between "))
    assert "wrong labels" in out
    assert f"labels to check: {tmp_path / 'page' / 'suspicious.csv'}" in out
    assert "torch.nn.CrossEntropyLoss(label_smoothing=" in out
    assert "timm.loss.LabelSmoothingCrossEntropy(smoothing=" in out
    assert f"page: {tmp_path / 'page' / 'index.html'}" in out
    results = json.loads((tmp_path / "page" / "results.json").read_text(encoding="utf-8"))
    assert results["command"] == f"softtargets advise {file} --test-labels noisy --out {tmp_path / 'page'}"


def test_a_teacher_gets_a_warning_and_no_smoothing(run, file):
    code, out, _ = run("advise", file, "--purpose", "teacher", "--method", "confident", "--sample", "1200")
    assert code == 0
    assert "Train a teacher without label smoothing." in out
    assert "Estimated from a sample of " in out
    assert "label_smoothing=" not in out
    found = json.loads(run("advise", file, "--purpose", "transfer", "--method", "naive", "--json")[1])
    assert found["code"] == {}
    assert not found["recommends_smoothing"]


def test_what_cannot_be_told_comes_first_with_a_bound_and_without_code(run, tmp_path):
    logits, labels, _ = noisy(uniform(0.8, 4), 1500, sharpness=1.0)
    np.savez(tmp_path / "b.npz", logits=logits, labels=labels)
    code, out, _ = run("advise", tmp_path / "b.npz")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "We cannot tell how many labels are wrong."
    assert lines[1].startswith("At most ")
    assert "label_smoothing=" not in out
    assert "alpha" not in out
    code, out, _ = run("advise", tmp_path / "b.npz", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["identified"] is False
    assert found["reason"]
    assert found["code"] == {}
    assert found["alpha"] is None


def test_memorised_predictions_get_no_advice(run, tmp_path, file):
    labels = np.load(file)["labels"]
    np.savez(tmp_path / "b.npz", logits=8 * np.eye(4)[labels] + 0.1, labels=labels)
    code, out, _ = run("advise", tmp_path / "b.npz")
    assert code == 0
    assert out.startswith("We cannot tell how many labels are wrong.\nThese predictions do not even give")
    assert "label_smoothing=" not in out


def test_rows_of_a_table_are_counted_with_those_left_out(run, tmp_path, file):
    with np.load(file) as saved:
        logits, labels = saved["logits"], saved["labels"].copy()
    wrong = np.flatnonzero(logits.argmax(1) != labels)
    labels[:10] = -1
    np.savez(tmp_path / "c.npz", logits=logits, labels=labels)
    assert run("advise", tmp_path / "c.npz", "--ignore-index", "-1", "--json")[0] == 0
    written = tmp_path / "reports" / "advise-c" / "suspicious.csv"
    rows = np.genfromtxt(written, delimiter=",", names=True, dtype=None, encoding="utf-8")
    assert sorted(rows["row"].tolist()) == wrong[wrong >= 10].tolist()


def test_a_dataset_is_learned_and_advised_on(run, tmp_path):
    words = ("--data", "digits", "--model", "logistic", "--limit", "1200", "--folds", "3")
    code, out, err = run("advise", *words, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["examples"], found["examples_used"], found["classes"]) == (1297, 1200, 10)
    assert not found["identified"] or found["error_rate"]["value"] <= 0.03  # these labels are right
    assert found["accuracy_on_given_labels"] > 0.85
    assert "logistic regression" in found["trained"]
    page = tmp_path / "reports" / "advise-digits"
    assert (page / "index.html").exists()
    assert (page / "figures" / "suspicious.png").exists()
    results = json.loads((page / "results.json").read_text(encoding="utf-8"))
    assert results["command"] == f"softtargets advise {' '.join(words)}"


def test_a_network_is_trained_on_a_dataset(run):
    words = ("--data", "digits", "--folds", "2", "--epochs", "6", "--device", "cpu", "--json")
    code, out, err = run("advise", *words)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["accuracy_on_given_labels"] > 0.93
    assert not found["identified"] or found["error_rate"]["value"] <= 0.03
    assert (
        found["trained"]
        == "2 small convolutional networks, each trained on 649 examples for 6 epochs on the CPU"
    )


@pytest.mark.realdata
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_clean_labels_are_not_called_wrong(run, name):
    from softtargets.data import load
    from softtargets.exceptions import DataError

    try:
        load(name, "train")
    except DataError as missing:
        pytest.skip(str(missing))
    code, out, _ = run("advise", "--data", name, "--limit", "1500", "--folds", "2", "--epochs", "4", "--json")
    assert code == 0
    found = json.loads(out)
    assert not found["identified"] or found["error_rate"]["value"] <= 0.03


def test_what_cannot_be_asked_is_refused_before_a_dataset_is_read(run, monkeypatch):
    def read(*_, **__):
        raise AssertionError("read")

    monkeypatch.setattr("softtargets.data.load", read)
    for words in (["--method", "guess"], ["--model", "forest"], ["--epochs", "0"], ["--device", "tpu"]):
        code, _, err = run("advise", "--data", "digits", *words)
        assert code == 2
        assert f"{words[0]} must be" in err


def test_help_shows_every_default(run):
    code, out, _ = run("advise", "--help")
    assert code == 0
    text = " ".join(out.replace("│", " ").split())
    for default in (
        "[default: (anchors)]",
        "[default: (cnn)]",
        "30,000 on a CPU",
        "10 to 30 on a CPU",
        "[default: (0)]",
    ):
        assert default in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give a file with out-of-fold predictions, or a dataset with --data NAME"),
        (["a.npz", "--data", "digits"], "give a file or --data, not both"),
        (["a.npz", "--limit", "5"], "--limit is for --data, not for a file"),
        (["--data", "digits", "--kind", "logits"], "--kind is for a file, not for --data"),
        (["--data", "digits", "--limit", "1"], "--limit must be at least 2 examples, not 1"),
        (["--data", "digits", "--limit", "12"], "Raise --limit"),
        (["--data", "digits", "--method", "guess"], "--method must be "),
        (["--data", "digit"], "did you mean 'digits'?"),
        (["--data", "digits", "--data-option", "labels=worse"], "has no option 'labels'"),
        (["missing.npz"], "does not exist"),
        (["a.npz", "--purpose", "student"], "--purpose must be classify, teacher or transfer, not student"),
        (["a.npz", "--test-labels", "dirty"], "--test-labels must be clean or noisy, not dirty"),
        (["a.npz", "--method", "guess"], "--method must be "),
        (["a.npz", "--sample", "0"], "--sample must be at least 1 row, not 0"),
        (["a.npz", "--kind", "odds"], "--kind must be logits or probabilities, not odds"),
        (["outside.npz"], "outside.npz"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(run, tmp_path, file, words, sentence):
    logits = np.load(file)["logits"]
    np.savez(tmp_path / "outside.npz", logits=logits, labels=np.arange(1500) % 5)
    code, out, err = run("advise", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("reports/*/*"))
