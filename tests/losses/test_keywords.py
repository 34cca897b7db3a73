"""Losses take the names of arguments that torch's losses take."""

import pytest
import torch

from softtargets.losses import REGULARISERS

SPECIAL = {
    "forward_correction": {"matrix": torch.tensor([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])},
    "online_label_smoothing": {"classes": 3},
    "knowledge_refinery": {"classes": 3},
}


@pytest.mark.parametrize("name", REGULARISERS)
def test_input_and_target_are_names_as_they_are_for_torch(name):
    random = torch.Generator().manual_seed(0)
    logits, target = torch.randn(6, 3, generator=random), torch.tensor([0, 1, 2, 2, 1, 0])
    more = {"teacher_logits": logits.flip(0)} if name == "distillation" else {}
    loss = REGULARISERS[name](**SPECIAL.get(name, {})).eval()
    by_place = loss(logits, target, *more.values())
    assert torch.equal(loss(input=logits, target=target, **more), by_place)
    assert torch.equal(loss(target=target, input=logits, **more), by_place)
    with pytest.raises(TypeError, match="input"):
        loss(target=target)
