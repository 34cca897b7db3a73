"""Adapters for other libraries' training loops: one module for each library, and only that module imports the
library.

``softtargets.integrations.huggingface``, ``.lightning``, ``.timm``, ``.torchmetrics``, ``.sklearn`` and ``.trackers``.
Importing this room imports none of them.
"""

from importlib import import_module as _import_module
from importlib.util import find_spec as _find_spec
from typing import Any

# Each with the libraries that not everybody has.
_ADAPTERS = {
    "huggingface": ("transformers", "accelerate"),
    "lightning": ("lightning",),
    "sklearn": (),
    "timm": (),
    "torchmetrics": ("torchmetrics",),
    "trackers": (),
}


def __getattr__(name: str) -> Any:
    if name in _ADAPTERS:  # loaded when it is asked for, and then says what it needs
        return _import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; there are {', '.join(_ADAPTERS)}")


def __dir__() -> list[str]:
    """Without those that cannot be loaded here: ``help`` asks for all that is listed."""
    there = (name for name, libraries in _ADAPTERS.items() if all(map(_find_spec, libraries)))
    return sorted({*there, "__doc__", "__file__", "__name__", "__path__"})
