"""What ``--help`` shows: all that was written about each option, every default, first lines that are not cut off."""

from __future__ import annotations

import re

import pytest
import typer

from softtargets.cli.app import app

from .command import ran

# Options that do nothing unless they are given, and flags, which are off: there is no default to show.
WITHOUT = {"--set", "--where", "--tensorboard", "--data", "--data-option", "--save-calibrated"}


def commands(command=None, words=()):
    """Every command with the words that call it."""
    command = command or typer.main.get_command(app)
    yield words, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*words, name))


COMMANDS = {" ".join(words): command for words, command in commands() if words != ("bench",)}


def packed(text: str) -> str:
    """Without white space: lines are broken between words and after hyphens."""
    return re.sub(r"\s+", "", text)


@pytest.fixture(params=[80, 120])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words or "softtargets")
def test_help_shows_every_word_and_every_default(words, columns, capsys):
    code, out, err = ran(capsys, *words.split(), "--help")
    assert (code, err) == (0, "")
    shown = packed(out)
    assert max(map(len, out.splitlines())) <= columns
    assert packed(COMMANDS[words].help) in shown
    for parameter in COMMANDS[words].params:
        if parameter.hidden if hasattr(parameter, "hidden") else False:
            continue
        assert parameter.help, f"{parameter.name} says nothing of itself"
        assert packed(parameter.help) in shown
        if parameter.param_type_name == "option":
            for name in parameter.opts:
                assert name in out
            default = shown_default(parameter)
            if default is not None:
                assert packed(default) in shown, f"{parameter.opts[0]} does not show its default"


def shown_default(option) -> str | None:
    """How the default of an option must be shown; None where there is none."""
    if isinstance(option.show_default, str):
        return f"[default: ({option.show_default})"
    if option.is_flag:
        assert option.default in (False, None), f"{option.opts[0]}: an option that is on must show that"
        return None
    if option.default is not None:
        return f"default: {option.default}"
    if option.opts[0] in WITHOUT or option.required:
        return None
    said = re.search(r"\[[^\]]+\]|\(default: [^)]+\)", option.help)
    assert said, f"{option.opts[0]} has no default in show_default, nor in [brackets] in its help"
    return said[0]


@pytest.mark.parametrize("words", [words for words in COMMANDS if hasattr(COMMANDS[words], "commands")])
def test_lists_of_commands_cut_no_line_off(words, columns, capsys):
    listed = ran(capsys, *words.split(), "--help")[1].partition("Commands:")[2]
    assert listed
    assert "..." not in listed


def test_sizes_of_studies_are_in_their_help(capsys):
    from softtargets.studies import STUDIES

    assert {"full"} <= {size for study in STUDIES for size in study.sizes}
    for words in ("run", "show"):
        assert "size=full" in ran(capsys, "study", words, "--help")[1]
