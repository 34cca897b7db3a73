"""What code on pages takes for granted: a small network on real digits, and what it says of examples."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

EPOCHS = 60


@cache
def made() -> dict[str, Any]:
    """The names, made once."""
    data = load_digits()
    images, labels = torch.tensor(data.data / 16, dtype=torch.float32), torch.tensor(data.target)
    train, val, test = slice(0, 900), slice(900, 1300), slice(1300, None)
    teacher, student = (
        _trained(images[train], labels[train], seed, width) for seed, width in ((0, 64), (1, 16))
    )
    with torch.no_grad():
        found = {
            "images": images[test],
            "labels": labels[test],
            "target": labels[test],
            "logits": teacher(images[test]),
            "val_logits": teacher(images[val]),
            "val_labels": labels[val],
            "teacher_logits": teacher(images[test]),
            "student_logits": student(images[test]),
            "activations": teacher[:2](images[test]),
            "weights": teacher[2].weight.detach(),
            "model": student,
            "teacher": teacher,
        }
    found["logits"].requires_grad_()  # as in a training
    some = slice(1300, 1797)
    fitted = LogisticRegression(max_iter=200)
    out_of_fold = cross_val_predict(fitted, data.data[some] / 16, data.target[some], method="predict_proba")
    tokens = torch.randn(4, 7, 30, generator=torch.Generator().manual_seed(0))
    padded = tokens.argmax(-1).masked_fill(torch.arange(7) > 4, -100)
    return found | {
        "out_of_fold_probabilities": torch.tensor(out_of_fold),
        "fit_predict": _fit_predict,
        "classifier": LogisticRegression(max_iter=200).fit(data.data[train], data.target[train]),
        "X_calibration": data.data[val],
        "y_calibration": data.target[val],
        "X": data.data[test],
        "axes": Figure().subplots(),
        "token_logits": tokens,
        "token_labels": padded,
        "noise_matrix": 0.8 * torch.eye(10) + 0.02,
        "last_layer": teacher[2],
        "word_frequencies": torch.full((10,), 0.1),
        "hidden": torch.randn(497, 8, requires_grad=True),
        "output_matrix": torch.randn(10, 8),
    }


def _fit_predict(train: Any, held_out: Any) -> Any:
    """For `out_of_fold`: fit to some of the last digits, predict others."""
    data = load_digits()
    images, labels = data.data[1300:] / 16, data.target[1300:]
    return LogisticRegression(max_iter=200).fit(images[train], labels[train]).predict_proba(images[held_out])


def _trained(images: torch.Tensor, labels: torch.Tensor, seed: int, width: int) -> torch.nn.Sequential:
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(EPOCHS):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimiser.step()
    return model
