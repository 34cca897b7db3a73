from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import pytest
import typer

from softtargets.cli.command_line import command_line, naming_options
from softtargets.exceptions import SofttargetsError
from softtargets.predictions import PredictionFileError


def said(*words, without=(), failing=None):
    """The line of a command that was called with these words, and its refusal."""
    told = []
    app = typer.Typer(add_completion=False)

    @app.callback()
    def root():
        pass

    @app.command()
    def measure(
        context: typer.Context,
        files: list[Path],
        bins: int = 15,
        scores_name: Annotated[list[str] | None, typer.Option("--scores")] = None,
        ignore_index: int | None = None,
        memory: Annotated[bool, typer.Option("--memory/--no-memory")] = True,
        quick: Annotated[bool, typer.Option("--quick")] = False,
        out: Path | None = None,
        as_json: Annotated[bool, typer.Option("--json")] = False,
    ) -> None:
        told.append(command_line(context, without))
        if failing is not None:
            with naming_options(context):
                raise failing

    app(args=["measure", *words], prog_name="softtargets", standalone_mode=False)
    return told[0]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["a.npz"], "a.npz"),
        (["a.npz", "--bins", "15", "--memory", "--json"], "a.npz"),  # at their default, and only printing
        (["--bins=10", "a.npz", "b.npz"], "a.npz b.npz --bins 10"),
        (["../my file.npz", "--out", "$HOME/a b"], "'../my file.npz' --out '$HOME/a b'"),
        (["a.npz", "--scores", "x", "--scores", "y z"], "a.npz --scores x --scores 'y z'"),
        (["a.npz", "--ignore-index", "-100"], "a.npz --ignore-index -100"),
        (["a.npz", "--no-memory", "--quick"], "a.npz --no-memory --quick"),
        (["--bins", "3", "--", "-a.npz"], "--bins 3 -- -a.npz"),
    ],
)
def test_a_command_says_how_to_do_the_same_again(words, line):
    told = said(*words)
    assert told == f"softtargets measure {line}"
    assert said(*shlex.split(told)[2:]) == told


def test_what_does_not_change_the_result_can_be_left_out():
    assert said("a.npz", "--bins", "3", "--quick", without=("quick",)) == "softtargets measure a.npz --bins 3"


def test_refusals_name_the_option_instead_of_the_argument():
    with pytest.raises(SofttargetsError, match=r"^--bins must be at least 1, not 0$"):
        said("a.npz", failing=SofttargetsError("must be at least 1, not 0", argument="bins"))
    with pytest.raises(SofttargetsError, match=r"^ratio must be less than 1$"):  # no option of this command
        said("a.npz", failing=SofttargetsError("must be less than 1", argument="ratio"))
    with pytest.raises(SofttargetsError, match=r"^the disk is full, bins and all$"):
        said("a.npz", failing=SofttargetsError("the disk is full, bins and all"))


def test_advice_about_a_file_names_options_and_leaves_words_alone():
    advice = 'say which with scores_name, give another file with labels, or use ignore_index=-1 or bins="few"'
    with pytest.raises(SofttargetsError) as refused:
        said("a.npz", failing=PredictionFileError("bins.npz", "has bins with scores_name", advice))
    assert str(refused.value) == (
        "bins.npz has bins with scores_name; say which with --scores, give another file with labels, "
        "or use --ignore-index=-1 or --bins few"
    )
