"""A user's own arrays and own network, and AdamW, from a recipe through the engine to a run."""

import sys
import textwrap

import numpy as np
import pytest
import torch

from softtargets.data import keep_arrays, load, read_own_arrays
from softtargets.exceptions import DataError, RecipeError
from softtargets.models import source_digest
from softtargets.recipes import MLP, Adam, AdamW, Arrays, Digits, Own, Recipe
from softtargets.runs import RunStore
from softtargets.training import train

NET = """
    from torch import nn

    class Small(nn.Module):
        def __init__(self, shape, classes, width=16, dropout=0.0):
            super().__init__()
            channels, height, side = shape
            self.body = nn.Sequential(
                nn.Flatten(), nn.Linear(channels * height * side, width), nn.ReLU(), nn.Dropout(dropout)
            )
            self.out = nn.Linear(width, classes)

        def forward(self, images):
            return self.out(self.body(images))
"""


@pytest.fixture
def net(tmp_path, monkeypatch):
    (tmp_path / "ownnets.py").write_text(textwrap.dedent(NET))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield "ownnets:Small"
    sys.modules.pop("ownnets", None)


@pytest.fixture
def digits(tmp_path):
    train_, test = load("digits", "train"), load("digits", "test")
    np.savez(
        tmp_path / "mine.npz",
        images=train_.images,
        labels=train_.labels,
        test_images=test.images,
        test_labels=test.labels,
    )
    return read_own_arrays(tmp_path / "mine.npz")


def test_arrays_that_are_the_digits_train_to_the_same_weights(digits, tmp_path):
    name, digest = keep_arrays(digits, tmp_path / "data")
    base = Recipe(data=Digits(limit=256), model=MLP(hidden=[16]), epochs=2, batch=64)
    own = base.replace({"data": Arrays(arrays=name, digest=digest, limit=256)})
    assert own.id != base.id
    store = RunStore(tmp_path / "runs")
    theirs, mine = train([base, own], store, device="cpu", data_dir=tmp_path / "data")
    one, other = theirs.weights(), mine.weights()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_arrays_of_another_content_are_refused_before_training(digits, tmp_path):
    name, digest = keep_arrays(digits, tmp_path / "data")
    recipe = Recipe(data=Arrays(arrays=name, digest="f" * 16), model=MLP(hidden=[16]), epochs=1)
    with pytest.raises(DataError, match=f"their digest is {digest}"):
        train([recipe], RunStore(tmp_path / "runs"), device="cpu", data_dir=tmp_path / "data")


def test_a_network_of_ones_own_learns_and_is_what_the_built_in_one_is(net, tmp_path):
    digest = source_digest(net)
    own = Recipe(
        data=Digits(),
        model=Own(net=net, digest=digest, options={"width": 16}),
        epochs=3,
        optimiser=AdamW(lr=0.01),
    )
    store = RunStore(tmp_path / "runs")
    (run,) = train([own], store, device="cpu", keep=("test",))
    assert run.summary["test_accuracy"] > 0.8
    kept = run.predictions("test")
    assert kept.features.shape == (500, 16)
    weights = run.weights()
    assert torch.allclose(
        kept.features @ weights["head.weight"].T + weights["head.bias"], kept.logits, atol=1e-5
    )
    (again,) = train([own], store, device="cpu")
    assert again.id == run.id


def test_dropout_of_ones_own_network_follows_the_seed(net, tmp_path):
    part = Own(net=net, digest=source_digest(net), options={"dropout": 0.5})
    recipe = Recipe(data=Digits(limit=128), model=part, epochs=1, batch=32)
    runs = []
    for place in range(2):
        torch.manual_seed(place)  # which must not matter
        runs += train([recipe], RunStore(tmp_path / f"runs{place}"), device="cpu")
    one, other = (run.weights() for run in runs)
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_changed_code_is_another_recipe_and_the_old_one_is_refused(net, tmp_path):
    old = Recipe(data=Digits(), model=Own(net=net, digest=source_digest(net)), epochs=1)
    with open(tmp_path / "ownnets.py", "a") as file:
        file.write("# changed\n")
    with pytest.raises(
        RecipeError, match=r"model: the source of ownnets:Small has the digest .* another version"
    ):
        train([old], RunStore(tmp_path / "runs"), device="cpu")
    new = old.replace({"model.digest": source_digest(net)})
    assert new.id != old.id
    with pytest.raises(RecipeError, match="the recipe does not name a digest"):
        train([old.replace({"model.digest": ""})], RunStore(tmp_path / "runs"), device="cpu")


@pytest.mark.parametrize("together", [False, True], ids=["alone", "stacked"])
def test_adamw_is_adam_with_decoupled_decay(together, tmp_path):
    base = Recipe(data=Digits(limit=256), model=MLP(hidden=[16]), epochs=2, batch=64)
    options = {"lr": 0.01, "weight_decay": 0.1, "betas": (0.9, 0.98)}
    seeds = (0, 1) if together else (0,)
    made = [
        base.replace({"optimiser": part(**options, **more), "seed": seed})
        for seed in seeds
        for part, more in ((AdamW, {}), (Adam, {"decoupled": True}))
    ]
    runs = train(made, RunStore(tmp_path / "runs"), device="cpu")
    assert len({run.id for run in runs}) == len(made)
    for w, decoupled in zip(runs[::2], runs[1::2], strict=True):
        one, other = w.weights(), decoupled.weights()
        assert all(torch.equal(one[key], other[key]) for key in one)


def test_adamw_in_the_engine_is_torchs_in_double_precision():
    from softtargets.training.optimisers import make_update

    random = torch.Generator().manual_seed(0)
    weights = [
        torch.randn(4, 3, generator=random, dtype=torch.float64),
        torch.randn(4, generator=random, dtype=torch.float64),
    ]
    theirs = [torch.nn.Parameter(weight.clone()) for weight in weights]
    optimiser = torch.optim.AdamW(theirs, lr=0.02)
    update = make_update([AdamW(lr=0.02)], ["weight", "bias"], lead=0, dtype=torch.float64)
    state = update.initial(weights)
    for step in range(20):
        gradients = [torch.randn(w.shape, generator=random, dtype=torch.float64) for w in weights]
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient.clone()
        optimiser.step()
        update.apply_(weights, gradients, state, torch.tensor(0.02, dtype=torch.float64), torch.tensor(step))
    for mine, other in zip(weights, theirs, strict=True):
        torch.testing.assert_close(mine, other.detach(), rtol=1e-13, atol=1e-14)


def test_recipes_of_before_have_the_ids_they_had():
    adam = Recipe(data=Digits(), model=MLP(), epochs=1, optimiser=Adam(decoupled=True, weight_decay=0.01))
    assert adam.id == "7b5c8e353ddca274"
    assert AdamW().canonical() == {"name": "adamw"}
