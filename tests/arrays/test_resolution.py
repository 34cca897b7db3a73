from __future__ import annotations

import pytest
import torch

from softtargets.arrays import resolution_advice


def advised(scores, labels, name="logits"):
    """What the advised line makes of scores."""
    said = resolution_advice(scores.shape, labels.shape, name)
    names = {"torch": torch, name: scores, "labels": labels}
    exec(said.partition("them, ")[2], names)
    return names[name]


@pytest.mark.parametrize(
    ("shape", "size", "expected"),
    [
        ((2, 5, 8, 8), (2, 32, 32), (2, 5, 32, 32)),
        ((2, 8, 6, 8), (2, 24, 32), (2, 8, 24, 32)),  # classes second, by the shape of the images
        ((2, 8, 8, 5), (2, 32, 32), (2, 32, 32, 5)),
        ((2, 5, 32, 32), (2, 8, 8), (2, 5, 8, 8)),
        ((2, 5, 9, 9), (2, 33, 35), (2, 5, 33, 35)),  # rounded up
        ((1, 3, 4, 4, 4), (1, 8, 8, 8), (1, 3, 8, 8, 8)),
    ],
)
def test_the_line_gives_scores_the_size_of_the_labels(shape, size, expected):
    assert advised(torch.zeros(shape), torch.zeros(size)).shape == expected


def test_labels_may_be_distributions_and_scores_have_another_name():
    assert advised(torch.zeros(2, 5, 8, 8), torch.zeros(2, 5, 16, 16), "preds").shape == (2, 5, 16, 16)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((2, 5, 8, 8), (2, 8, 8)),  # which fit
        ((2, 8, 8, 5), (2, 8, 8)),
        ((2, 5, 8, 8), (3, 32, 32)),  # other images
        ((2, 9, 5), (2, 8)),  # sentences
        ((8, 5), (9,)),
        ((2, 5, 8, 8), (2,)),
        ((2, 5, 8, 8), (2, 4, 32, 32)),  # distributions over other classes
    ],
)
def test_what_is_something_else_gets_no_advice(shape, size):
    assert resolution_advice(shape, size) == ""
