"""Executors by the names that the command line has for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from softtargets.exceptions import SofttargetsError, nearest
from softtargets.executors.executor import Executor
from softtargets.executors.local import LocalExecutor
from softtargets.executors.ranks import RanksExecutor
from softtargets.executors.ray import RayExecutor

EXECUTORS: dict[str, Callable[..., Executor]] = {
    "local": LocalExecutor,
    "ranks": RanksExecutor,
    "ray": RayExecutor,
}


def make_executor(name: str, **options: Any) -> Executor:
    """The executor of a name, with the options that are not None; those that it does not have are refused.

    >>> make_executor("local", address=None)
    LocalExecutor()
    >>> make_executor("local", address="auto")
    Traceback (most recent call last):
    softtargets.exceptions.SofttargetsError: address is not an option of the executor local, only of ray
    """
    if name not in EXECUTORS:
        raise SofttargetsError(
            f"there is no executor '{name}'{nearest(name, EXECUTORS)}; there are {', '.join(EXECUTORS)}"
        )
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in _options(name):
            having = [other for other in EXECUTORS if option in _options(other)]
            raise SofttargetsError(
                f"is not an option of the executor {name}, only of {' and '.join(having)}", argument=option
            )
    return EXECUTORS[name](**given)


def _options(name: str) -> set[str]:
    return {field.name for field in fields(EXECUTORS[name]) if field.init}  # type: ignore[arg-type]
