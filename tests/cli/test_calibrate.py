from __future__ import annotations

import json
import re
from functools import partial

import numpy as np
import pytest
import torch

from cli.command import ran
from inspection.made import net
from softtargets.calibration import measure_calibration
from softtargets.selection import measure_selection


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(ran, capsys)


LOGITS, LABELS = net(300, 4, sharpness=2.0)


def write(path):
    logits, labels = LOGITS.numpy(), LABELS.numpy()
    kind = path.suffix
    if kind == ".npz":
        np.savez(path, logits=logits, labels=labels)
    elif kind == ".npy":
        np.save(path, logits)
        np.save(path.with_name("labels.npy"), labels)
    elif kind in (".csv", ".parquet"):
        columns = {f"logit_{k}": logits[:, k] for k in range(4)} | {"label": labels}
        if kind == ".csv":
            rows = [",".join(columns)] + [
                ",".join(map(repr, map(float, row))) for row in zip(*columns.values(), strict=True)
            ]
            path.write_text("\n".join(rows) + "\n")
        else:
            pq = pytest.importorskip("pyarrow.parquet")
            import pyarrow

            pq.write_table(pyarrow.table(columns), path)
    elif kind == ".safetensors":
        from safetensors.torch import save_file

        save_file({"logits": LOGITS, "labels": LABELS}, path)
    else:
        torch.save({"logits": LOGITS, "labels": LABELS}, path)
    return path


@pytest.mark.parametrize("kind", ["npz", "npy", "csv", "parquet", "safetensors", "pt"])
def test_every_kind_of_file_gives_the_same_numbers(run, tmp_path, kind):
    file = write(tmp_path / f"a.{kind}")
    more = ["--labels", tmp_path / "labels.npy"] if kind == "npy" else []
    code, out, err = run("calibrate", file, "--json", *more)
    assert (code, err) == (0, "")
    found = json.loads(out)
    expected = measure_calibration(LOGITS, LABELS, from_logits=True)
    assert found["kind"] == "logits"
    assert found["before"]["expected_calibration_error"] == pytest.approx(
        expected.expected_calibration_error, abs=1e-6
    )
    assert found["before"]["intervals"]["accuracy"] == pytest.approx(expected.intervals["accuracy"])
    assert 1.5 < found["temperature"]["value"] < 2.7
    assert found["selection"]["aurc"] == pytest.approx(
        measure_selection(LOGITS, LABELS, from_logits=True).aurc, abs=1e-5
    )
    assert (tmp_path / "reports" / "calibrate-a" / "index.html").exists()


def test_a_terminal_gets_a_table_a_temperature_and_words(run, tmp_path):
    code, out, _ = run("calibrate", write(tmp_path / "a.npz"), "--out", tmp_path / "page", "--bins", "10")
    assert code == 0
    accuracy = float((LOGITS.argmax(1) == LABELS).double().mean())
    assert f"{100 * accuracy:.2f} %" in out
    assert "correction: temperature " in out
    assert "Divide the logits by T = " in out
    assert "If the 20 % least confident cases are handed to a person, accuracy on the rest is " in out
    assert {"AURC", "excess AURC"} <= {re.split(r"\s{2,}", line)[0] for line in out.splitlines()}
    assert f"page: {tmp_path / 'page' / 'index.html'}" in out
    results = json.loads((tmp_path / "page" / "results.json").read_text(encoding="utf-8"))
    assert results["command"].endswith("--bins 10 --out " + str(tmp_path / "page"))


def test_ignored_rows_are_left_out(run, tmp_path):
    labels = LABELS.clone()
    labels[:100] = -100
    np.savez(tmp_path / "a.npz", logits=LOGITS.numpy(), labels=labels.numpy())
    code, out, _ = run("calibrate", tmp_path / "a.npz", "--ignore-index", "-100", "--json")
    assert code == 0
    found = json.loads(out)
    assert found["examples"] == 200
    assert found["before"]["accuracy"] == pytest.approx(
        float((LOGITS.argmax(1) == LABELS)[100:].double().mean())
    )


def test_a_page_is_replaced_and_its_neighbours_are_not(run, tmp_path):
    file = write(tmp_path / "a.npz")
    run("calibrate", file, "--out", tmp_path / "page")
    (tmp_path / "page" / "notes.txt").write_text("mine")
    assert run("calibrate", file, "--out", tmp_path / "page")[0] == 0
    assert (tmp_path / "page" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["missing.npz"], "does not exist"),
        (["a.npz", "--kind", "odds"], "--kind must be logits or probabilities, not odds"),
        (["a.npz", "--bins", "0"], "--bins must lie between 1 and 1000, not 0"),
        (["a.npz", "--scores", "logit"], "did you mean 'logits'?"),
        (["a.npy"], "has no labels"),
        (["nan.npz"], "nan"),
        (["empty.npz"], "is empty"),
    ],
)
def test_what_is_wrong_is_said_in_a_line_and_nothing_is_written(run, tmp_path, words, sentence):
    write(tmp_path / "a.npz")
    np.save(tmp_path / "a.npy", LOGITS.numpy())
    broken = LOGITS.clone()
    broken[7, 1] = torch.nan
    np.savez(tmp_path / "nan.npz", logits=broken.numpy(), labels=LABELS.numpy())
    (tmp_path / "empty.npz").touch()
    code, out, err = run("calibrate", *words)
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("reports/*/*"))


def test_advice_speaks_of_options(run, tmp_path):
    np.savez(tmp_path / "a.npz", scores=np.full((30, 3), 0.5), labels=np.zeros(30, dtype=int))
    _, _, err = run("calibrate", tmp_path / "a.npz")
    assert "--kind logits" in err
    assert "kind=" not in err


def test_files_of_one_name_have_a_page_each(run, tmp_path):
    for kind in ("npz", "pt", "safetensors"):
        assert run("calibrate", write(tmp_path / f"hard.{kind}"))[0] == 0
    (tmp_path / "other").mkdir()
    run("calibrate", write(tmp_path / "other" / "hard.npz"))
    run("calibrate", "hard.npz")  # again, by another name of the same file
    made = sorted(tmp_path.glob("reports/*/results.json"))
    assert [one.parent.name for one in made] == [f"calibrate-hard{end}" for end in ("", "-2", "-3", "-4")]
    sources = [json.loads(one.read_text())["provenance"]["file"].rpartition(" (")[0] for one in made]
    assert sources[0] == "hard.npz"
    assert sources[3] == str(tmp_path / "other" / "hard.npz")


def test_a_run_is_named_by_its_id(run, tmp_path, recipe):
    from softtargets.runs import RunStore
    from softtargets.training import train

    found = train([recipe], RunStore(tmp_path / "runs"))[0]
    code, out, err = run("calibrate", found.id, "--json")
    assert (code, err) == (0, "")
    test = found.predictions("test")
    accuracy = float((test.logits.argmax(1) == test.labels).double().mean())
    assert json.loads(out)["before"]["accuracy"] == pytest.approx(accuracy)
    assert (tmp_path / "reports" / f"calibrate-{found.id}-test" / "index.html").exists()
    assert json.loads(run("calibrate", f"{found.id[:6]}:validation", "--json")[1])["examples"] == 100
    code, _, err = run("calibrate", f"{found.id}:tset")
    assert code == 2
    assert "has no predictions on 'tset'" in err
    assert run("compare", f"{found.id}:test", found.id)[0] == 0


def test_help_shows_every_default(run):
    for command in ("calibrate", "apply", "compare"):
        words = " ".join(run(command, "--help")[1].split())
        options = words.split("Options:")[1]
        for option in options.split(" --")[1:]:
            name = option.split()[0]
            if name not in ("out", "help", "json", "overwrite") or (name == "out" and command != "apply"):
                assert "[" in option, f"{command} --{option}"
    assert "[default: 15]" in words


def test_a_label_that_marks_padding_is_told_by_the_name_of_the_option(run, tmp_path):
    labels = LABELS.clone()
    labels[3] = -100
    np.savez(tmp_path / "a.npz", logits=LOGITS.numpy(), labels=labels.numpy())
    _, _, err = run("calibrate", tmp_path / "a.npz")
    assert "use --ignore-index=-100" in err


def test_sigmoid_scores_of_several_labels_are_called_that(run, tmp_path):
    np.savez(tmp_path / "a.npz", probabilities=torch.sigmoid(LOGITS).numpy(), labels=LABELS.numpy())
    _, _, err = run("calibrate", tmp_path / "a.npz")
    assert "one class at a time" in err


def test_classes_that_come_second_are_told_to_come_last(run, tmp_path):
    np.savez(tmp_path / "a.npz", logits=np.zeros((5, 3, 7, 7)), labels=np.zeros((5, 7, 7), dtype=int))
    _, _, err = run("calibrate", tmp_path / "a.npz")
    assert "classes to the last dimension" in err


def test_scores_of_smaller_images_are_told_to_be_enlarged(run, tmp_path):
    np.savez(tmp_path / "a.npz", logits=np.zeros((5, 3, 4, 4)), labels=np.zeros((5, 16, 16), dtype=int))
    _, _, err = run("calibrate", tmp_path / "a.npz")
    assert "the logits have 4 x 4 places and the labels 16 x 16" in err


def test_a_class_that_is_masked_is_told_what_may_stand_there(run, tmp_path):
    masked = LOGITS.clone()
    masked[:, 2] = -torch.inf
    np.savez(tmp_path / "a.npz", logits=masked.numpy(), labels=LABELS.numpy())
    _, _, err = run("calibrate", tmp_path / "a.npz")
    assert "has -inf in row 0, class 2" in err
    assert "give it a logit far below all others, such as -1e4" in err


def test_numbered_columns_with_named_labels_are_told_to_be_named(run, tmp_path):
    rows = [
        f"{p:.2f},{1 - p:.2f},{'cat' if p > 0.5 else 'dog'}" for p in torch.linspace(0.1, 0.9, 30).tolist()
    ]
    (tmp_path / "a.csv").write_text("0,1,label\n" + "\n".join(rows) + "\n")
    _, _, err = run("calibrate", tmp_path / "a.csv")
    assert "the classes are 0, 1, as the columns of scores are named: name these like the labels" in err
