"""Adapters for other libraries' training loops: one module for each library, and only that module imports the
library.

``softtargets.integrations.huggingface``, ``.lightning``, ``.timm``, ``.torchmetrics``, ``.sklearn`` and ``.trackers``.
Importing this room imports none of them.
"""

from importlib import import_module as _import_module
from typing import Any

_ADAPTERS = ("huggingface", "lightning", "sklearn", "timm", "torchmetrics", "trackers")


def __getattr__(name: str) -> Any:
    if name in _ADAPTERS:  # loaded when it is asked for, and then says what it needs
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; there are {', '.join(_ADAPTERS)}")


def __dir__() -> list[str]:
    return sorted({*_ADAPTERS, "__doc__", "__file__", "__name__", "__path__"})
