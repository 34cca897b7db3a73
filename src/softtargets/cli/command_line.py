"""Commands describe themselves: the line that does the same again, and what arguments of functions are called in it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from softtargets.exceptions import SofttargetsError

PRINTING = ("as_json",)  # options that change what is printed and nothing else


def command_line(context: typer.Context, without: Collection[str] = ()) -> str:
    """The command that does this again, without what is at its default, and without the parameters of these names."""
    arguments: list[str] = []
    options: list[str] = []
    for parameter in context.command.params:
        name, value = str(parameter.name), context.params.get(str(parameter.name))
        if parameter.param_type_name == "argument":
            arguments += _each(value)
        elif name not in (*PRINTING, *without) and value != parameter.get_default(context):
            options += _option(parameter, value)
    if any(word.startswith("-") for word in arguments):
        arguments, options = [*options, "--"], arguments
    return shlex.join([*context.command_path.split(), *arguments, *options])


def _option(parameter: Any, value: Any) -> list[str]:
    if isinstance(value, bool):
        return [(parameter.opts if value else parameter.secondary_opts)[0]]
    return [word for one in _each(value) for word in (parameter.opts[0], one)]


def _each(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]


@contextmanager
def naming_options(context: typer.Context) -> Iterator[None]:
    """Refusals speak of the options of this command instead of arguments of functions."""
    options = {
        str(one.name): one.opts[0] for one in context.command.params if one.param_type_name == "option"
    }
    try:
        yield
    except SofttargetsError as mistake:
        said = mistake.with_options(options)
        if said == str(mistake):
            raise
        raise SofttargetsError(said) from mistake
