"""Code on pages runs, and commands on pages exist with the options that they are given."""

from __future__ import annotations

import re
import shlex
from copy import deepcopy
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
import typer
import yaml
from torch import nn
from typer.testing import CliRunner

from docs.building import cards
from documentation.blocks import ROOT, Block, blocks, pages
from documentation.names import made
from softtargets.cli.app import app
from softtargets.losses import REGULARISERS, SoftTargetLoss

# What a block with these words would need is not here in seconds; the tests that run the same.
ELSEWHERE = {
    "load_translator(run)": "tests/cli/test_translate.py",
    "RayExecutor(": "tests/executors/ray/conftest.py",
    "compute_loss_func=": "tests/integrations/huggingface/test_loss.py",
    "DistillationTrainer(": "tests/integrations/huggingface/test_distilling.py",
    "Trainer(callbacks": "tests/integrations/test_lightning.py",
    "CalibrationCallback(": "tests/integrations/test_lightning.py",
    "calibration_metrics(": "tests/integrations/test_torchmetrics.py",
    "create_criterion(": "tests/integrations/test_timm.py",
    "accelerator.device": "examples/accelerate_loop.py",
    "calibration_report(": "tests/integrations/test_trackers.py",
}
PYTHON = [page for page in pages() if any(block.language == "python" for block in blocks(page))]
COMMANDS = [
    (page, line)
    for page in pages()
    for block in blocks(page)
    if block.language in ("", "console", "bash", "sh")
    for line in block.code.splitlines()
    if re.match(r"(\$ )?softtargets ", line)
]


def _named(value: object) -> str:
    return str(value.relative_to(ROOT)) if isinstance(value, Path) else str(value)[:60]


@pytest.mark.parametrize("page", PYTHON, ids=_named)
def test_python_on_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = dict(made())
    if page.name == "calibration.md":  # its commands come first
        np.savez("validation.npz", logits=3 * names["val_logits"].numpy(), labels=names["val_labels"].numpy())
        CliRunner().invoke(app, ["calibrate", "validation.npz", "--save-calibrated", "calibrated.npz"])
    for block in blocks(page):
        if block.language == "python" and not any(words in block.code for words in ELSEWHERE):
            _run(block, names)


@pytest.mark.parametrize("words", ELSEWHERE)
def test_what_is_run_elsewhere_is(words: str) -> None:
    assert any(words in block.code for page in PYTHON for block in blocks(page))
    named = re.split(r"\W", words)[0]
    assert named in (ROOT / ELSEWHERE[words]).read_text(encoding="utf-8")


def _run(block: Block, names: dict[str, object]) -> None:
    where = f"{block.page.relative_to(ROOT)}:{block.line}"
    try:
        exec(compile("\n" * (block.line - 1) + block.code, where, "exec"), names)
    except Exception as error:
        raise AssertionError(f"the code at {where} fails: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=_named)
def test_a_command_on_a_page_exists_with_its_options(page: Path, line: str) -> None:
    words = shlex.split(line.removeprefix("$ "), comments=True)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"{page.name}: there is no `softtargets {words[0]}`"
        command, words = command.commands[words[0]], words[1:]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    assert given <= known | {"--help"}, f"{page.name}: {line!r} has options that are not there"


def test_every_method_has_a_card() -> None:
    written = {page.stem for page in (ROOT / "docs/methods").glob("*.md")} - {"index"}
    assert written == set(REGULARISERS)


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_code_of_a_card_makes_the_loss_and_its_recipe_names_it(name: str) -> None:
    text = (ROOT / f"docs/methods/{name}.md").read_text(encoding="utf-8")
    meta = yaml.safe_load(text.split("---")[1])
    names = dict(made())
    exec(f"from softtargets.losses import {meta['names']}\nloss = {meta['code']}", names)
    assert type(names["loss"]) is REGULARISERS[name]
    part = yaml.safe_load(meta["recipe"].replace("{...}", "{}"))
    assert part["name"] == name
    tabs = cards.code(meta)
    assert all(
        f'=== "{library}"' in tabs for library in ("PyTorch", "Hugging Face", "Lightning", "timm", "Recipe")
    )


def _run_tab(name: str, library: str, names: dict[str, Any]) -> dict[str, Any]:
    meta = yaml.safe_load((ROOT / f"docs/methods/{name}.md").read_text(encoding="utf-8").split("---")[1])
    tab = cards.code(meta).split(f'=== "{library}"')[1].split("===")[0]
    code = re.search(r"```python\n(.*?)```", tab, re.DOTALL)
    assert code is not None
    names = made() | names
    exec("\n".join(line[4:] for line in code[1].splitlines()), names)
    return names


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_pytorch_tab_of_a_card_runs(name: str) -> None:
    logits = made()["logits"].detach().clone().requires_grad_()
    _run_tab(name, "PyTorch", {"logits": logits})
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_hugging_face_tab_of_a_card_trains(name: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from transformers import Trainer

    from integrations.huggingface import small

    names = {
        "Trainer": Trainer,
        "model": small.classifier(labels=10),
        "teacher": small.classifier(seed=1, labels=10),
        "args": small.arguments(tmp_path, num_train_epochs=1),
        "data": small.labelled(8, labels=10),
    }
    trained = _run_tab(name, "Hugging Face", names)["trainer"].train()
    assert np.isfinite(trained.training_loss)


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_lightning_tab_of_a_card_trains(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pytest.importorskip("lightning")
    from lightning.pytorch import LightningModule, Trainer

    names = _run_tab(
        name,
        "Lightning",
        {"LightningModule": LightningModule, "Trainer": Trainer, "make_network": lambda: nn.Linear(64, 10)},
    )
    model = names["Student"](names["teacher"]) if "Student" in names else names["Model"]()
    assert model.training_step((names["images"], names["labels"]), 0).isfinite()
    told = type(model.loss).end_epoch is not SoftTargetLoss.end_epoch
    assert told == ("trainer" in names)  # whose callback tells the loss of epochs
    if told:
        (callback,) = (one for one in names["trainer"].callbacks if isinstance(one, names["LossCallback"]))
        callback.on_train_epoch_end(names["trainer"], model)


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_timm_tab_of_a_card_makes_a_criterion(name: str) -> None:
    model = deepcopy(made()["model"])
    names = _run_tab(name, "timm", {"model": model, "input": made()["images"]})
    if name == "distillation":  # its tab is a step of the loop
        assert all(one.grad.isfinite().all() for one in model.parameters())
        return
    hard = names["labels"]
    mixed = 0.7 * nn.functional.one_hot(hard, 10) + 0.3 * nn.functional.one_hot(hard.flip(0), 10)
    assert names["train_loss_fn"](names["logits"].detach(), hard if name == "cs_kd" else mixed).isfinite()
