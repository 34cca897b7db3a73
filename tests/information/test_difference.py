from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.information import logit_difference

LOGITS = [[3.0, 1.0, 0.5], [-1.0, 2.0, 8.0]]


@pytest.mark.parametrize(("first", "second"), [(0, 1), (1, 0), (2, 0), (np.int64(1), np.int64(2))])
def test_the_difference_against_loops(first, second):
    expected = [row[first] - row[second] for row in LOGITS]
    assert logit_difference(torch.tensor(LOGITS), first, second).tolist() == expected
    assert logit_difference(np.array(LOGITS), first, second).tolist() == expected


@pytest.mark.parametrize("chosen", [(0, 0), (0, 3), (-1, 0)])
def test_anything_but_two_different_classes_is_refused(chosen):
    with pytest.raises(ValueError, match=r"need two different classes from 0 to 2, not \["):
        logit_difference(torch.tensor(LOGITS), *chosen)


def test_logits_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="logits of example 1 are not all finite: nan for class 2"):
        logit_difference(torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, torch.nan]]), 0, 1)
    with pytest.raises(TypeError):
        logit_difference(torch.tensor(LOGITS), 0, 1.5)
