from __future__ import annotations

import pytest
import torch

from softtargets.training.memory_counter import MemoryCounter


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_is_alive_at_a_time(device):
    before = torch.ones(1000, device=device)
    with MemoryCounter() as alive:
        one = before + before
        two = one * 2
        assert alive.now == 8000
        del one
        three = two + before
        del two
        assert alive.now == 4000
        three.mul_(2)
        view = three.view(10, 100).t()
        before.add_(1)
    assert alive.now == 4000, "nothing new: changes in place, and views"
    assert alive.most == 8000
    del three
    assert alive.now == 4000, "a view keeps it"
    del view
    assert alive.now == 0


def test_what_is_kept_for_the_backward_pass_is_alive():
    weight = torch.ones(500, requires_grad=True)
    with MemoryCounter() as alive:
        total = weight.exp().exp().sum()
        held = alive.now
        total.backward()
    assert held == 2 * 500 * 4 + 4, "both results are needed again"
    assert alive.now == 500 * 4 + 4, "what is left is the gradient, and the sum"
