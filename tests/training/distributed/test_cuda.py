"""On a GPU: what processes exchange is recorded with the step. One process with NCCL is all that one GPU allows."""

from __future__ import annotations

import pytest

from forking import finish, start
from softtargets.recipes import CNN, MLP, Digits, PreActResNet
from softtargets.runs import RunStore
from softtargets.training import train

from ..tasks.translation.counting import write_corpus
from .launching import said, together
from .test_equality import apart
from .trainings import BASE, TRANSLATION

WIDE = BASE.replace({"data": Digits(validation=50, limit=150), "batch": 64, "epochs": 3})
IMAGES = {
    "norms": WIDE.replace({"model": PreActResNet(depth=8)}),
    "dropout": WIDE.replace({"model": MLP(hidden=(64,), dropout=0.3)}),
    "bf16": WIDE.replace({"model": CNN(), "precision": "bf16"}),
    "beta_smoothing": WIDE.replace(
        {"model": PreActResNet(depth=8), "regulariser": {"name": "beta_smoothing"}}
    ),
    "disturb_label": WIDE.replace({"model": MLP(hidden=(64,)), "regulariser": {"name": "disturb_label"}}),
    "online_label_smoothing": WIDE.replace({"regulariser": {"name": "online_label_smoothing"}}),
    "knowledge_refinery": WIDE.replace({"regulariser": {"name": "knowledge_refinery"}}),
    "cs_kd": WIDE.replace({"regulariser": {"name": "cs_kd"}}),
}


# Where ranks add up what norms need, rounding differs, and of half a million inputs of ReLUs some lie so near to 0
# that it decides: one that goes the other way changes a gradient by some per cent (0.03 was seen; so it is between two
# libraries on a CPU), and later steps by anything. So one step is compared, and then how the losses fall.
NORMS = ("norms", "beta_smoothing")
ROWS = WIDE.data.limit


def on_gpu(recipes, root, data_dir=None):
    train(recipes, RunStore(root), device="cuda", data_dir=data_dir, progress=False)


def both(recipes, tmp_path, data=None):
    """The runs of one process, and those of one that is a rank of one: pairs."""
    assert finish(start(on_gpu, recipes, tmp_path / "alone", data, daemon=False)) == 0
    codes = together(1, on_gpu, recipes, tmp_path / "ranks", data, folder=tmp_path, daemon=False)
    assert codes == [0], said(tmp_path, 0)
    stores = [RunStore(tmp_path / place) for place in ("alone", "ranks")]
    pairs = [tuple(store.find(recipe) for store in stores) for recipe in recipes]
    assert all(other.provenance["ranks"] == [1] for _, other in pairs)
    return pairs


def losses(run):
    return [row["train_loss"] for row in run.history()]


@pytest.mark.cuda
@pytest.mark.parametrize("name", [name for name in IMAGES if name not in NORMS])
def test_a_process_with_nccl_trains_what_one_without_trains(name, tmp_path):
    ((one, other),) = both([IMAGES[name]], tmp_path)
    low = IMAGES[name].precision == "bf16"
    assert losses(one)[0] == pytest.approx(losses(other)[0], rel=1e-2 if low else 1e-5)
    assert apart(one, other) < (0.05 if low else 1e-3)


@pytest.mark.cuda
@pytest.mark.parametrize("name", NORMS)
def test_with_norms_it_takes_the_same_step_and_learns_as_much(name, tmp_path):
    step = IMAGES[name].replace({"batch": ROWS, "epochs": 1})
    (one, other), several = both([step, IMAGES[name]], tmp_path)
    assert losses(one) == pytest.approx(losses(other), rel=1e-4)
    assert apart(one, other) < 0.2
    fallen, also = map(losses, several)
    assert fallen == pytest.approx(also, rel=0.1)
    assert fallen[-1] < fallen[0]


@pytest.mark.cuda
def test_so_does_one_that_translates(tmp_path):
    data = write_corpus(tmp_path / "data")
    ((one, other),) = both([TRANSLATION.replace({"precision": "bf16", "batch": 256})], tmp_path, data)
    assert losses(one)[-1] == pytest.approx(losses(other)[-1], rel=1e-2)
