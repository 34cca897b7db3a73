"""One clear line where the library that an adapter is for is missing."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec


def needs(adapter: str, extra: str, *libraries: str) -> None:
    """Refuse to go on without these libraries; `extra` is the one of ours that installs them.

    A library that is there but fails to load says so itself.

    >>> needs("nowhere", "nothing", "a_library_that_nobody_wrote")
    Traceback (most recent call last):
    ImportError: softtargets.integrations.nowhere needs a_library_that_nobody_wrote: pip install "softtargets[nothing]"
    """
    missing = [name for name in libraries if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"softtargets.integrations.{adapter} needs {' and '.join(missing)}: "
            f'pip install "softtargets[{extra}]"',
            name=missing[0],
        )
    for name in libraries:
        import_module(name)
