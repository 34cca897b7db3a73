from __future__ import annotations

import pytest
import torch

from softtargets.models import known_attention
from softtargets.training.recording import Recorder, compiling_as_often_as_needed


def test_without_a_gpu_functions_are_called():
    called = []
    recorder = Recorder([], on=False)
    recorder.run(lambda *given: called.append(given), 3, "a")
    recorder.ready(lambda *given: called.append(given), 4)
    assert called == [(3, "a")]


def test_what_is_set_for_compiling_is_set_back():
    import torch._dynamo
    import torch.fx.experimental._config as shapes

    config = torch._dynamo.config
    limit = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"  # of torch 2.6
    before = getattr(config, limit), shapes.use_duck_shape
    with compiling_as_often_as_needed():
        assert getattr(config, limit) == 1024
        assert not shapes.use_duck_shape
    assert (getattr(config, limit), shapes.use_duck_shape) == before


def test_attention_is_set_back_after_an_error():
    before = torch.backends.cuda.cudnn_sdp_enabled()
    noted = []

    def broken():
        with known_attention():
            noted.append(torch.backends.cuda.cudnn_sdp_enabled())
            raise KeyError

    with pytest.raises(KeyError):
        broken()
    assert noted == [False]
    assert torch.backends.cuda.cudnn_sdp_enabled() == before


@pytest.mark.cuda
def test_graphs_of_one_recorder_share_memory_and_are_replayed_in_any_order():
    torch.manual_seed(0)
    inputs = torch.randn(1024, 1024, device="cuda")
    total, calls = torch.zeros((), device="cuda"), torch.zeros((), dtype=torch.int64, device="cuda")

    def work(rows):
        seen = inputs[:rows]
        for _ in range(8):  # eight intermediate results at a time
            seen = torch.cat((seen, seen.roll(1, 0)))[: 4 * rows].sin()
        total.add_(seen[0, 0])
        calls.add_(1)

    def expected(rows):
        before = total.clone()
        work(rows)
        difference = total - before
        total.copy_(before)
        calls.sub_(1)
        return difference

    wanted = {rows: expected(rows).item() for rows in (1024, 512, 256)}
    total.zero_()
    recorder = Recorder([total, calls])
    with torch.cuda.stream(torch.cuda.Stream()):
        sizes = []
        for rows in (1024, 512, 256):
            recorder.ready(work, rows)
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            sizes.append(torch.cuda.memory_reserved())
        assert sizes[2] <= 1.05 * sizes[0]  # the smaller ones have room in what the first has
        for rows in (256, 1024, 512, 1024):
            recorder.run(work, rows)
        torch.cuda.synchronize()
    assert calls.item() == 4
    assert total.item() == pytest.approx(sum(wanted[rows] for rows in (256, 1024, 512, 1024)), rel=1e-5)
