"""Where datasets live: what the caller says, else ``SOFTTARGETS_DATA``, else the user's cache."""

from __future__ import annotations

import os
import sys
from pathlib import Path

VARIABLE = "SOFTTARGETS_DATA"


def data_directory(explicit: Path | str | None = None) -> Path:
    """Return the directory datasets are read from and fetched to; it need not exist yet.

    >>> data_directory("sets").as_posix()
    'sets'
    """
    return where(explicit)[0]


def where(explicit: Path | str | None = None) -> tuple[Path, str]:
    """Return the data directory and, for a person, the reason it is that one.

    >>> where("sets")[1]
    'given explicitly'
    """
    if explicit is not None and str(explicit):
        return Path(explicit).expanduser(), "given explicitly"
    configured = os.environ.get(VARIABLE)
    if configured:
        return Path(configured).expanduser(), f"from the environment variable {VARIABLE}"
    return user_cache() / "softtargets" / "data", f"the default; set {VARIABLE} to change it"


def user_cache() -> Path:
    """The directory for what can be found out again."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    xdg = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says a relative path is to be ignored.
    return Path(xdg) if xdg and Path(xdg).is_absolute() else Path.home() / ".cache"
