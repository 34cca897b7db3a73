"""What a shell offers after TAB, and that it is quick and never fails."""

import os
import subprocess
import sys

import pytest

from softtargets.cli import completing
from softtargets.data import CATALOGUE
from softtargets.recipes import Dataset, Model, Regulariser, kinds
from softtargets.studies import STUDIES


class Typed:
    """What typer knows of the words before."""

    def __init__(self, **params):
        self.params = params


def offered(complete, incomplete="", **params):
    return [name for name, _ in complete(Typed(**params), incomplete)]


def in_the_shell(words, **environment):
    typed = {
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "_SOFTTARGETS_COMPLETE": "complete_bash",
    }
    ran = subprocess.run(
        [sys.executable, "-m", "softtargets"],
        env={**os.environ, **typed, **environment},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0
    assert ran.stderr == ""
    return ran.stdout.split()


def test_parts_of_recipes():
    assert offered(completing.parts, "labe") == ["label_smoothing"]
    assert {"regulariser", "model", "adamw"} <= set(offered(completing.parts))
    assert offered(completing.datasets) == list(kinds(Dataset))
    assert offered(completing.models) == list(kinds(Model))
    assert offered(completing.regularisers) == list(kinds(Regulariser))
    assert dict(completing.parts(Typed(), "focal"))["focal"].startswith("Weights the loss")


def test_studies_are_those_that_there_are():
    assert offered(completing.studies) == [study.name for study in STUDIES]


def test_datasets_are_those_of_the_catalogue():
    assert offered(completing.sources) == list(CATALOGUE)


def test_runs_are_those_of_the_store(tmp_path, monkeypatch):
    for name, files in (("a" * 16, ("recipe.json", "run.json")), ("b" * 16, ("recipe.json",)), ("notes", ())):
        (tmp_path / name).mkdir()
        for file in files:
            (tmp_path / name / file).touch()
    monkeypatch.setenv("SOFTTARGETS_RUNS", str(tmp_path))
    assert completing.runs(Typed(), "") == [("a" * 16, "finished"), ("b" * 16, "not finished")]
    assert offered(completing.runs, "b") == ["b" * 16]
    assert offered(completing.runs, runs_dir=tmp_path / "nowhere") == []


def test_what_goes_wrong_offers_nothing():
    assert completing.runs(None, "") == []


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("softtargets recipe parts adam", ["adam", "adamw"]),
        ("softtargets study show quick", ["quickstart"]),
        ("softtargets data verify fash", ["fashion-mnist"]),
        ("softtargets recipe init --regulariser max", ["max_sup"]),
    ],
)
def test_in_bash(words, found):
    assert in_the_shell(words) == found


def test_the_script_for_a_shell_is_shown():
    shown = subprocess.run(
        [sys.executable, "-m", "softtargets", "--show-completion", "bash"], capture_output=True, text=True
    )
    assert "_SOFTTARGETS_COMPLETE=complete_bash" in shown.stdout
