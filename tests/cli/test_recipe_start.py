"""``recipe init``, ``recipe model``, ``recipe parts`` and ``data arrays``: what they write and print."""

import json
import sys

import numpy as np
import pytest

from softtargets.cli.recipe_start import check_start, starting_recipe
from softtargets.recipes import (
    Dataset,
    Model,
    Noise,
    Optimiser,
    Recipe,
    Regulariser,
    Schedule,
    TranslationDataset,
    kinds,
    parse_yaml,
    source_of,
)
from softtargets.recipes.sources import _SOURCES

from .command import ran

IMAGES = [name for name, part in kinds(Dataset).items() if not issubclass(part, TranslationDataset)]


@pytest.mark.parametrize("data", kinds(Dataset))
def test_every_dataset_has_a_recipe_to_start_from(data):
    text = starting_recipe(data, None, "label_smoothing")
    filled = (
        text.replace("YOUR-CORPUS", "mine").replace("YOUR-ARRAYS", "mine.npz").replace("YOUR-FOLDER", "mine")
    )
    assert Recipe.from_yaml(filled).data.name == data
    assert (check_start(text) is None) == (filled != text)


@pytest.mark.parametrize("regulariser", kinds(Regulariser))
def test_every_regulariser_has_one(regulariser):
    recipe = check_start(starting_recipe("digits", None, regulariser))
    assert recipe.regulariser.name == regulariser
    assert recipe.model.hidden == (64,)


@pytest.mark.parametrize("model", [name for name in kinds(Model) if name != "transformer"])
def test_every_model_has_one(model):
    text = starting_recipe("cifar10", model, "cross_entropy")
    recipe = Recipe.from_yaml(text.replace("YOUR-NET", "a:B" if model == "own" else "resnet18"))
    assert recipe.model.name == model


def test_every_option_of_the_chosen_parts_is_there_with_its_default():
    text = starting_recipe("digits", None, "labo")
    for name, value in (("tau", 1.25), ("rho", 0.5), ("hypergradient", False), ("reading", "literal")):
        (line,) = [line for line in text.splitlines() if line.strip().startswith(f"# {name}:")]
        assert parse_yaml(line.strip().lstrip("# ").split("#")[0]) == {name: value}
    assert "# Formula: H((1 - alpha) onehot(y) + alpha softmax(z / tau), p)" in text
    # Without the comment marks it is the same recipe.
    lines = [line.replace("  # ", "  ", 1) if line.startswith("  # ") else line for line in text.splitlines()]
    assert Recipe.from_yaml("\n".join(lines)).id == Recipe.from_yaml(text).id


def test_a_file_is_written_once(tmp_path, capsys):
    path = tmp_path / "first.yaml"
    code, out, err = ran(capsys, "recipe", "init", path, "--data", "digits")
    assert (code, err) == (0, "")
    recipe = Recipe.load(path)
    assert recipe.id in out
    before = path.read_text()
    code, _, err = ran(capsys, "recipe", "init", path, "--data", "mnist")
    assert code == 2
    assert "exists and will not be overwritten" in err
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "mnits"], "--data mnits is not known (did you mean 'mnist'?)"),
        (["--model", "resnets"], "--model resnets is not known"),
        (["--regulariser", "smoothing"], "--regulariser smoothing is not known"),
        (
            ["--data", "multi30k", "--model", "cnn"],
            "cnn cannot be trained on multi30k; choose --model transformer",
        ),
        (["--data", "mnist", "--model", "transformer"], "transformer cannot be trained on mnist"),
    ],
)
def test_what_is_not_known_is_refused_and_nothing_written(tmp_path, capsys, words, message):
    code, _, err = ran(capsys, "recipe", "init", tmp_path / "r.yaml", *words)
    assert code == 2
    assert message in err
    assert not list(tmp_path.iterdir())


def test_what_is_to_be_filled_in_is_said(tmp_path, capsys):
    code, out, _ = ran(capsys, "recipe", "init", tmp_path / "r.yaml", "--data", "arrays")
    assert code == 0
    assert "replace every YOUR-" in out
    code, _, err = ran(capsys, "recipe", "init", tmp_path / "no" / "r.yaml")
    assert code == 2
    assert "is not a directory" in err


@pytest.mark.parametrize(
    ("model", "kind", "net"),
    [("own:mine.nets:Small", "own", "mine.nets:Small"), ("timm:resnet50", "timm", "resnet50")],
)
def test_a_network_may_be_named_as_in_a_recipe(tmp_path, capsys, model, kind, net):
    code, out, err = ran(capsys, "recipe", "init", tmp_path / "r.yaml", "--model", model)
    assert (code, err) == (0, "")
    assert "fill in" not in out
    recipe = Recipe.load(tmp_path / "r.yaml")
    assert (recipe.model.name, recipe.model.net) == (kind, net)
    words = ("--model", model, "--data", "arrays:mine.npz", "--regulariser", "distillation")
    ran(capsys, "recipe", "init", tmp_path / "taught.yaml", *words)
    teacher = Recipe.load(tmp_path / "taught.yaml").regulariser.teacher
    assert (teacher.model.net, teacher.data.arrays) == (net, "mine.npz")


def test_a_recipe_of_ones_own_network_says_its_version_if_that_is_here(tmp_path, capsys, monkeypatch):
    """Training asks for it, so that a recipe without it is no recipe to begin with."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    words = ("recipe", "init", tmp_path / "early.yaml", "--model", "own:startnets:A")
    code, out, _ = ran(capsys, *words)
    assert code == 0
    assert "run softtargets recipe model startnets:A where" in out
    (tmp_path / "startnets.py").write_text("from torch import nn\nclass A(nn.Linear):\n    pass\n")
    words = (
        "recipe",
        "init",
        tmp_path / "r.yaml",
        "--model",
        "own:startnets:A",
        "--regulariser",
        "distillation",
    )
    code, out, _ = ran(capsys, *words)
    assert (code, "next: softtargets train" in out) == (0, True)
    _, printed, _ = ran(capsys, "recipe", "model", "startnets:A")
    recipe = Recipe.load(tmp_path / "r.yaml")
    wanted = parse_yaml(printed)["model"]["digest"]
    assert recipe.model.digest == recipe.regulariser.teacher.model.digest == wanted
    sys.modules.pop("startnets")


def test_a_finished_run_of_an_older_version_is_said_to_be_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOFTTARGETS_RUNS", str(tmp_path / "runs"))
    net = (
        "from torch import nn\nclass A(nn.Sequential):\n    def __init__(self):\n"
        "        super().__init__(nn.Flatten(), nn.Linear(64, 10))\n"
    )
    (tmp_path / "oldnets.py").write_text(net)
    _, printed, _ = ran(capsys, "recipe", "model", "oldnets:A")
    (tmp_path / "r.yaml").write_text(printed + "data: {name: digits, limit: 200}\nepochs: 1\n")
    for _ in range(2):
        code, _, err = ran(capsys, "train", "r.yaml", "--device", "cpu")
        assert (code, "note:" in err) == (0, False), err
    (tmp_path / "oldnets.py").write_text(net + "# other\n")
    _, printed, _ = ran(capsys, "recipe", "model", "oldnets:A")
    code, _, err = ran(capsys, "train", "r.yaml", "--device", "cpu")
    assert code == 0
    assert "note: the file of oldnets:A has changed since this recipe was made" in err
    assert f"model.digest: '{parse_yaml(printed)['model']['digest']}'" in err
    sys.modules.pop("oldnets")


def test_ones_own_is_told_how_to_be_written(tmp_path, capsys):
    _, _, err = ran(capsys, "recipe", "init", tmp_path / "r.yaml", "--model", "mynets:A")
    assert "write --model own:mynets:A" in err
    _, _, err = ran(capsys, "recipe", "init", tmp_path / "r.yaml", "--data", "mine.npz")
    assert "write --data arrays:mine.npz" in err


def test_parts_tell_formula_source_defaults_and_ranges(capsys):
    _, out, _ = ran(capsys, "recipe", "parts", "label_smoothing")
    for words in (
        "formula",
        "Szegedy et al. 2016",
        "a number of at least 0 and at most 1; default: 0.1",
        "one of all, others",
    ):
        assert words in " ".join(out.split())


def test_parts_have_a_formula_and_a_source():
    slots = {"regulariser": Regulariser, "optimiser": Optimiser, "schedule": Schedule, "noise": Noise}
    without = {"constant", "none"}  # which need neither
    for slot, part in slots.items():
        for name in set(kinds(part)) - without:
            assert all(source_of(slot, name)), name
    ours = {"cnn", "timm", "own"}
    assert {name for name in kinds(Model) if source_of("model", name) is None} == ours


def test_no_source_is_of_a_part_that_is_not_there():
    slots = {
        "regulariser": Regulariser,
        "optimiser": Optimiser,
        "schedule": Schedule,
        "noise": Noise,
        "model": Model,
    }
    assert {slot for slot, _ in _SOURCES} <= set(slots)
    for slot, name in _SOURCES:
        assert name in kinds(slots[slot]), name


def test_a_network_of_ones_own_as_a_part(tmp_path, capsys, monkeypatch):
    (tmp_path / "partnets.py").write_text("from torch import nn\nclass A(nn.Linear):\n    pass\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    code, out, err = ran(capsys, "recipe", "model", "partnets:A")
    assert (code, err) == (0, "")
    part = parse_yaml(out)
    recipe = Recipe.from_dict({"data": "digits", "epochs": 1, **part})
    assert recipe.model.net == "partnets:A"
    assert len(recipe.model.digest) == 16
    _, out, _ = ran(capsys, "recipe", "model", "partnets:A", "--json")
    assert json.loads(out) == part
    code, _, err = ran(capsys, "recipe", "model", "partnets:B")
    assert code == 2
    assert "has no class 'B'; it has A" in err
    sys.modules.pop("partnets")


def test_arrays_of_ones_own_as_a_part(tmp_path, capsys):
    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "mine.npz",
        images=random.integers(0, 256, (24, 8, 8), dtype=np.uint8),
        labels=np.arange(24) % 3,
    )
    words = ("data", "arrays", tmp_path / "mine.npz", "--data-dir", tmp_path / "data")
    code, out, err = ran(capsys, *words)
    assert (code, err) == (0, "")
    assert "20 images to train on and 4 to test, 8 x 8, 1 channel, 3 classes" in out
    recipe = Recipe.from_dict({"model": "cnn", "epochs": 1, **parse_yaml(out)})
    assert (tmp_path / "data" / recipe.data.arrays).exists()
    _, out, _ = ran(capsys, *words, "--json")
    assert json.loads(out)["data"]["digest"] == recipe.data.digest
    np.save(tmp_path / "x.npy", np.zeros((3, 3)))
    code, _, err = ran(capsys, "data", "arrays", tmp_path / "x.npy")
    assert code == 2
    assert "also give the file with its labels" in err
