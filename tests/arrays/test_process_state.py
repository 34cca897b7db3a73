from __future__ import annotations

import pytest
import torch

from softtargets.arrays import ProcessState, several_processes


class Counting(ProcessState):
    """Two tensors that remember, and a buffer that DDP may send around."""

    def __init__(self, persistent=True):
        super().__init__(persistent=persistent)
        self.register_buffer("given", torch.ones(2))
        self.begin()

    def fresh(self, device):
        return {
            "seen": torch.zeros((), dtype=torch.int64, device=device),
            "sums": torch.full((3,), 0.5, device=device),
        }


def test_the_tensors_are_no_buffers_and_have_names():
    model = torch.nn.Sequential(Counting())
    assert [name for name, _ in model.named_buffers()] == ["0.given"]
    assert set(model[0].named_state()) == {"given", "seen", "sums"}
    assert set(model.state_dict()) == {"0.given", "0.seen", "0.sums"}
    assert set(torch.nn.Sequential(Counting(persistent=False)).state_dict()) == {"0.given"}


@pytest.mark.parametrize(("to", "dtype"), [(torch.bfloat16, torch.float32), (torch.float64, torch.float64)])
def test_they_move_but_are_never_rounded(to, dtype):
    module = Counting()
    module.sums += 0.001
    module.seen += 3
    before = module.sums.clone()
    module.to(to)
    assert (module.given.dtype, module.sums.dtype, module.seen.dtype) == (to, dtype, torch.int64)
    torch.testing.assert_close(module.sums, before.to(dtype), rtol=0, atol=0)
    assert module.to("meta").sums.device.type == "meta"
    assert module.to_empty(device="cpu").sums.tolist() == [0.5] * 3


def test_they_are_loaded_in_place_and_all_or_none():
    module, other = Counting(), Counting()
    other.sums += 1
    place = module.sums
    module.load_state_dict(other.state_dict())
    assert module.sums is place
    assert torch.equal(place, other.sums)
    module.load_state_dict({})  # from before it was there
    assert torch.equal(place, other.sums)
    with pytest.raises(RuntimeError, match=r"Missing key.*sums"):
        module.load_state_dict({"given": torch.ones(2), "seen": torch.tensor(1)})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*more"):
        module.load_state_dict(other.state_dict() | {"more": torch.ones(1)})


def test_they_begin_anew_where_the_data_are_if_they_have_no_content():
    with torch.device("meta"):
        module = Counting()
    assert module.sums.is_meta
    module.awake(torch.device("meta"))
    assert module.sums.is_meta
    module.awake(torch.device("cpu"))
    assert module.sums.tolist() == [0.5] * 3
    module.sums += 1
    module.awake(torch.device("cpu"))
    assert module.sums.tolist() == [1.5] * 3
    module.begin()
    assert module.sums.tolist() == [0.5] * 3


def test_one_process_is_not_several():
    assert not several_processes()
