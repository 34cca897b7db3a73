"""Where a number comes from: the code, the libraries and the machine that made it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

import softtargets
from softtargets.exceptions import RunError
from softtargets.runs.engines import ENGINE

# Where the code is a copy of a commit without its .git, as on a rented machine: which commit that is.
COMMIT = "SOFTTARGETS_COMMIT"
_PART = ("commit", "engine", "torch", "device_name")


def now() -> str:
    """The time in UTC, to the second, as ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


@cache
def code_version() -> dict[str, Any]:
    """Package version and, when the package runs from its own git checkout, commit and cleanliness.

    Elsewhere the commit is what `COMMIT` says, if anything; whether the copy was changed nobody can tell then.
    """
    package = Path(softtargets.__file__).parent
    commit = None
    # The tracked-file test keeps us from reporting the commit of a repository that merely contains the
    # virtual environment we are installed in.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is not None:
        commit = _git(package, "rev-parse", "HEAD")
    changed = bool(_git(package, "status", "--porcelain", "--", ".")) if commit else None
    commit = commit or _stated_commit()
    return {"softtargets": softtargets.__version__, "commit": commit, "uncommitted_changes": changed}


def _stated_commit() -> str | None:
    stated = os.environ.get(COMMIT, "").strip().lower()
    if stated and not re.fullmatch(r"[0-9a-f]{40}", stated):
        raise RunError(
            f"{COMMIT} is '{stated}', which is no commit; set it to the 40 digits that `git rev-parse HEAD` prints "
            "where the code was copied from"
        )
    return stated or None


def is_untraceable_copy() -> bool:
    """Whether the code is a copy of a checkout that nobody can follow to a commit; installed releases are none."""
    root = Path(softtargets.__file__).parent.parent.parent
    return code_version()["commit"] is None and (root / "pyproject.toml").is_file()


def environment(device: str) -> dict[str, Any]:
    """Versions and hardware a run depends on. `device` is a torch device string."""
    import torch

    name = torch.cuda.get_device_name(device) if device.startswith("cuda") else platform.machine()
    return code_version() | {
        "engine": ENGINE,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "platform": platform.system(),
        "device": device,
        "device_name": name,
        "threads": torch.get_num_threads(),
    }


def note_part(begun: dict[str, Any], resumed: bool, device: str) -> None:
    """Note which code and device train a run from here on, where others have trained it until here.

    ``parts`` are all of them in their order, each once in a row; a run that one code trained on one device has none.
    Of a checkpoint that does not tell who wrote it, the first part is empty.

    begun: what is told of the training until here, which goes into checkpoints and into the provenance.
    """
    here = {key: told for key, told in environment(device).items() if key in _PART}
    last = begun.get("part", {} if resumed else here)
    if last != here:
        begun["parts"] = [*begun.get("parts", [last]), here]
    begun["part"] = here


def provenance_problem(provenance: Mapping[str, Any], unit: str) -> str:
    """What a run's provenance lacks of what a number must come with; empty where it is complete.

    unit: in which the work of such a run is counted: images, tokens.

    >>> told = {"softtargets": "0.1.0", "torch": "2.11", "python": "3.12", "device": "cuda", "seconds": 1.5}
    >>> provenance_problem(told, "images")
    'its provenance has no device_name'
    >>> provenance_problem({**told, "device_name": "H200", "engine": "six"}, "images")
    "its provenance has the engine 'six', which is not a whole number"
    """
    for key in ("softtargets", "torch", "python", "device", "device_name"):
        if not isinstance(provenance.get(key), str):
            return f"its provenance has no {key}"
    if "seconds" not in provenance:
        return "its provenance has no seconds"
    parts = provenance.get("parts", [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        return "its provenance has parts that are not parts of a training"
    if any(type(part.get("engine", 0)) is not int for part in parts):
        return "its provenance has a part whose engine is not a whole number"
    for key in ("engine", unit):
        if type(provenance.get(key, 0)) is not int:
            return f"its provenance has the {key} {provenance[key]!r}, which is not a whole number"
    return ""


def _git(directory: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(directory), *arguments], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
