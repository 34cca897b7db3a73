from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from softtargets.calibration import (
    Correction,
    bias_corrected_temperature,
    load_correction,
    temperature_scaling,
    vector_scaling,
    zero_floor,
)
from softtargets.exceptions import SofttargetsError

FITS = [temperature_scaling, bias_corrected_temperature, vector_scaling]


def data(n=400, k=4):
    random = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(n, k, generator=random)
    return logits, torch.multinomial((logits / 2).softmax(1), 1, generator=random).squeeze(1)


@pytest.mark.parametrize("fit", FITS)
def test_what_was_fitted_is_what_is_loaded(tmp_path, fit):
    logits, labels = data()
    found = fit(logits, labels)
    Correction.of(found, kind="logits", classes=4).save(tmp_path / "c.json")
    loaded = load_correction(tmp_path / "c.json")
    assert torch.allclose(loaded(logits), found(logits), atol=1e-6)
    assert torch.allclose(loaded(logits.reshape(20, 20, 4).numpy()).reshape(-1, 4), found(logits), atol=1e-6)
    assert loaded(logits.double()).dtype == torch.float64
    assert loaded(logits.half()).dtype == torch.float32


@pytest.mark.parametrize("fit", FITS)
def test_probabilities_stay_probabilities_and_zeros_become_possible(tmp_path, fit):
    logits, labels = data()
    p = (logits.softmax(1) * 20).round() / 20
    p = p / p.sum(1, keepdim=True)
    floor = zero_floor(p, labels)
    found = fit(torch.where(p > 0, p, floor).log(), labels)
    Correction.of(found, kind="probabilities", classes=4, floor=floor).save(tmp_path / "c.json")
    corrected = load_correction(tmp_path / "c.json")(p)
    expected = found(torch.where(p > 0, p, floor).log()).softmax(1)
    assert torch.allclose(corrected, expected, atol=1e-6)
    assert float(corrected.min()) > 0
    assert torch.allclose(corrected.sum(1), torch.ones(400))


def test_a_person_can_read_the_file(tmp_path):
    correction = Correction(
        method="vector_scaling",
        kind="logits",
        classes=2,
        scale=torch.tensor([0.5, 1.5], dtype=torch.float64),
        bias=torch.tensor([0.25, -0.25], dtype=torch.float64),
        class_names=("cat", "dog"),
        about={"fitted_to": "val.npz"},
    )
    correction.save(tmp_path / "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["format"] == "softtargets correction"
    assert found["version"] == 1
    assert (found["scale"], found["bias"]) == ([0.5, 1.5], [0.25, -0.25])
    assert found["class_names"] == ["cat", "dog"]
    assert load_correction(tmp_path / "c.json").numbers() == correction.numbers()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "has version 2, and this program reads version 1; update"),
        ({"version": None}, "has version None"),
        ({"format": "other"}, "is not a correction"),
        ({"method": "isotonic"}, "unknown method 'isotonic'"),
        ({"kind": "odds"}, "kind 'odds'"),
        ({"temperature": 0}, "temperature is 0, not a positive number"),
        ({"temperature": True}, "temperature is True"),
        ({"temperature": "2"}, "temperature is '2'"),
        ({"classes": 0}, "classes is 0"),
        ({"classes": 3.0}, "classes is 3.0"),
        ({"class_names": ["a"]}, "class_names must be 3 names"),
        ({"zero_counts_as": 2.0}, "zero_counts_as is 2.0"),
        ({"method": "vector_scaling"}, "it has no 'scale'"),
        ({"method": "vector_scaling", "scale": [1, 2], "bias": [0, 0, 0]}, "scale must be 3 finite numbers"),
        ({"method": "bias_corrected_temperature", "bias": [1, "x", 2]}, "bias must be 3 finite numbers"),
    ],
)
def test_a_file_that_says_something_else_is_refused(tmp_path, change, sentence):
    good = {
        "format": "softtargets correction",
        "version": 1,
        "method": "temperature",
        "kind": "logits",
        "classes": 3,
        "temperature": 1.5,
    }
    (tmp_path / "c.json").write_text(json.dumps(good))
    assert load_correction(tmp_path / "c.json").temperature == pytest.approx(1.5)
    (tmp_path / "c.json").write_text(json.dumps(good | change))
    with pytest.raises(SofttargetsError) as refused:
        load_correction(tmp_path / "c.json")
    assert sentence in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\xff\xfe", b'{"version": NaN}'])
def test_what_is_no_json_is_refused(tmp_path, content):
    (tmp_path / "c.json").write_bytes(content)
    with pytest.raises(SofttargetsError, match="is not a correction"):
        load_correction(tmp_path / "c.json")
    with pytest.raises(SofttargetsError, match="does not exist"):
        load_correction(tmp_path / "missing.json")


def test_other_scores_are_refused():
    scale = torch.tensor(0.5)
    logits = Correction(method="temperature", kind="logits", classes=3, scale=scale)
    probabilities = Correction(method="temperature", kind="probabilities", classes=3, scale=scale)
    with pytest.raises(ValueError, match=r"logits must be \(\.\.\., 3\).*not \(2, 4\)"):
        logits(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="nan"):
        logits(torch.full((1, 3), torch.nan))
    with pytest.raises(ValueError, match="probabilities"):
        probabilities(torch.tensor([[2.0, 1.0, 0.0]]))
    assert logits(torch.zeros(0, 3)).shape == (0, 3)
