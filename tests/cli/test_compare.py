from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from cli.command import ran
from inspection.made import net

LOGITS, LABELS = net(400, 4)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command line in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return partial(ran, capsys)


def write(path, logits, labels=LABELS):
    np.savez(path, logits=logits.numpy(), labels=labels.numpy())
    return path


def test_two_files_make_a_page(run, tmp_path):
    a, b = write(tmp_path / "a.npz", LOGITS), write(tmp_path / "b.npz", 3 * LOGITS)
    code, out, err = run("compare", a, b)
    assert (code, err) == (0, "")
    assert "a.npz is better calibrated and better by likelihood." in out
    assert "The two models are equally accurate as far as these examples show" in out
    assert (tmp_path / "reports" / "compare-a-b" / "index.html").exists()


def test_json_has_all_numbers(run, tmp_path):
    a, b = write(tmp_path / "a.npz", LOGITS), write(tmp_path / "b.npz", 3 * LOGITS)
    code, out, _ = run("compare", a, b, "--json")
    assert code == 0
    found = json.loads(out)
    nll = [(-side.double().log_softmax(1)[range(400), LABELS]).mean().item() for side in (LOGITS, 3 * LOGITS)]
    assert found["differences"]["nll"]["value"] == pytest.approx(nll[1] - nll[0], abs=1e-5)
    assert found["agreement"] == 1.0
    assert found["overlap"]["only_first_wrong"] == 0
    assert found["b"]["temperature"]["value"] == pytest.approx(
        3 * found["a"]["temperature"]["value"], rel=1e-3
    )


def test_scaling_takes_away_what_a_factor_did(run, tmp_path):
    a, b = write(tmp_path / "a.npz", LOGITS), write(tmp_path / "b.npz", 3 * LOGITS)
    _, out, _ = run("compare", a, b, "--json")
    after = json.loads(out)["differences_scaled"]
    assert after["nll"]["value"] == pytest.approx(0, abs=1e-5)
    assert after["smooth_ece"]["low"] <= 0 <= after["smooth_ece"]["high"]


def test_different_labels_are_refused_in_a_line(run, tmp_path):
    other = LABELS.clone()
    other[5] = (other[5] + 1) % 4
    code, out, err = run(
        "compare", write(tmp_path / "a.npz", LOGITS), write(tmp_path / "b.npz", LOGITS, other)
    )
    assert (code, out) == (2, "")
    assert "first at example 5" in err
    assert not list(tmp_path.glob("reports/*/*"))
