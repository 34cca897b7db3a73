from __future__ import annotations

import pytest
import torch

from forking import finish, start
from softtargets.runs import RunStore
from softtargets.training import train
from softtargets.training.precision import autocast, float32_products

CPU = torch.device("cpu")


def state():
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.fixture(autouse=True)
def as_it_was():
    products, convolutions = state()
    yield
    torch.set_float32_matmul_precision(products)
    torch.backends.cudnn.allow_tf32 = convolutions


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_full_precision_runs_the_forward_pass_as_it_is(precision):
    with autocast(precision, CPU):
        assert not torch.is_autocast_enabled("cpu")
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


def test_bf16_multiplies_in_bf16_inside_only():
    with autocast("bf16", CPU):
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_autocast_dtype("cpu") == torch.bfloat16
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert not torch.is_autocast_enabled("cpu")
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32


@pytest.mark.parametrize(
    ("precision", "inside"),
    [("fp32", ("highest", False)), ("bf16", ("highest", False)), ("tf32", ("high", True))],
)
@pytest.mark.parametrize("before", [("highest", True), ("high", False), ("highest", False)])
def test_products_use_tf32_only_where_the_recipe_says_so(precision, inside, before):
    torch.set_float32_matmul_precision(before[0])
    torch.backends.cudnn.allow_tf32 = before[1]
    with float32_products(precision):
        assert state() == inside
    assert state() == before


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("before", [True, False])
def test_which_algorithm_computes_a_convolution_is_not_tried_out(precision, before, monkeypatch):
    """The fastest of a moment may add up in another order than that of the next."""
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", before)
    with float32_products(precision):
        assert not torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.benchmark is before


@pytest.mark.parametrize(("precision", "inside"), [("fp32", True), ("tf32", True), ("bf16", False)])
def test_float32_convolutions_have_the_same_bits_every_time(precision, inside, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", False)
    with float32_products(precision):
        assert torch.backends.cudnn.deterministic is inside
    assert not torch.backends.cudnn.deterministic
    torch.backends.cudnn.deterministic = True  # what a user has asked for stays
    with float32_products(precision):
        assert torch.backends.cudnn.deterministic
    assert torch.backends.cudnn.deterministic


@pytest.mark.cuda
def test_on_a_gpu_they_have(recipe, tmp_path):
    """Processes of their own, since one process may choose the same convolution twice by chance."""
    small = recipe.replace({"precision": "fp32", "model": {"name": "preact_resnet", "depth": 8}, "epochs": 2})
    runs = []
    for place in ("one", "other"):
        assert finish(start(on_gpu, small, tmp_path / place, daemon=False)) == 0
        runs.append(RunStore(tmp_path / place).find(small))
    for name, value in runs[0].weights().items():
        assert torch.equal(runs[1].weights()[name], value), name


def on_gpu(recipe, root):
    train([recipe], RunStore(root), device="cuda", progress=False)


def test_the_setting_comes_back_after_an_error():
    before = state()
    with pytest.raises(RuntimeError, match="midway"), float32_products("tf32"):
        raise RuntimeError("midway")
    assert state() == before


def test_settings_may_be_nested():
    with float32_products("tf32"):
        with float32_products("fp32"):
            assert state() == ("highest", False)
        assert state() == ("high", True)
