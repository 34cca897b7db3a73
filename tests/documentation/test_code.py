"""Code on pages runs, and commands on pages exist with the options that they are given."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import typer
import yaml
from typer.testing import CliRunner

from docs.building import cards
from documentation.blocks import ROOT, Block, blocks, pages
from documentation.names import made
from softtargets.cli.app import app
from softtargets.losses import REGULARISERS

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


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_pytorch_tab_of_a_card_runs(name: str) -> None:
    meta = yaml.safe_load((ROOT / f"docs/methods/{name}.md").read_text(encoding="utf-8").split("---")[1])
    tab = cards.code(meta).split('=== "PyTorch"')[1].split("===")[0]
    code = re.search(r"```python\n(.*?)```", tab, re.DOTALL)
    assert code is not None
    names = dict(made())
    names["logits"] = names["logits"].detach().clone().requires_grad_()
    exec("\n".join(line[4:] for line in code[1].splitlines()), names)
    assert names["logits"].grad.isfinite().all()
