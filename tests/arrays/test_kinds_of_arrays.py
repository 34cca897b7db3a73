"""What people have their numbers in: every instrument takes it, or says in one sentence what to do."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets import calibration, distillation, errors, geometry, noise

GENERATOR = torch.Generator().manual_seed(0)
LABELS = torch.arange(60) % 3
LOGITS = 3 * torch.eye(3)[LABELS] + torch.randn(60, 3, generator=GENERATOR)
TEMPLATES = torch.randn(3, 4, generator=GENERATOR)
COUNTS = torch.tensor([5, 20, 30])

INSTRUMENTS = {
    "measure_calibration": lambda z, y: (
        calibration.measure_calibration(z, y, from_logits=True).negative_log_likelihood
    ),
    "fit_temperature": calibration.fit_temperature,
    "confusion_matrix": lambda z, y: errors.confusion_matrix(z, y, 3).tolist(),
    "error_overlap": lambda z, y: errors.error_overlap(z, z, y),
    "accuracy_by_frequency": lambda z, y: errors.accuracy_by_frequency(z, y, COUNTS),
    "assign_folds": lambda z, y: noise.assign_folds(y, 3).tolist(),
    "neural_collapse": lambda z, y: geometry.neural_collapse(z, y, TEMPLATES[:, :3]).nc1,
    "agreement": lambda z, y: distillation.agreement(z, z).divergence,
}


def frame(values):
    return pytest.importorskip("pandas").DataFrame(values.numpy(), index=range(100, 100 + len(values)))


def series(values):
    return pytest.importorskip("pandas").Series(values.numpy(), index=range(100, 100 + len(values)))


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_tables_of_pandas_are_taken(name):
    expected = INSTRUMENTS[name](LOGITS, LABELS)
    assert INSTRUMENTS[name](frame(LOGITS), series(LABELS)) == expected


@pytest.mark.parametrize("name", INSTRUMENTS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_labels_of_every_whole_number_are_taken(name, dtype):
    expected = INSTRUMENTS[name](LOGITS, LABELS)
    assert INSTRUMENTS[name](LOGITS, LABELS.to(getattr(torch, dtype))) == expected
    assert INSTRUMENTS[name](LOGITS, LABELS.numpy().astype(dtype)) == expected


@pytest.mark.parametrize("name", INSTRUMENTS)
@pytest.mark.parametrize("which", ["scores", "labels"])
@pytest.mark.parametrize("kind", ["sparse", "meta"])
def test_tensors_without_plain_numbers_are_refused_in_a_sentence(name, which, kind):
    def spoilt(values):
        return values.to_sparse() if kind == "sparse" else values.to("meta")

    given = (spoilt(LOGITS), LABELS) if which == "scores" else (LOGITS, spoilt(LABELS))
    if (name, which) in (("assign_folds", "scores"), ("agreement", "labels")):
        pytest.skip("it does not ask for these")
    with pytest.raises(ValueError, match=r"to_dense\(\)|meta device has no values"):
        INSTRUMENTS[name](*given)


def test_the_largest_unsigned_numbers_are_no_classes():
    with pytest.raises(ValueError, match="must lie between 0 and 2"):
        errors.confusion_matrix(LABELS, np.full(60, 2**64 - 1, np.uint64), 3)
