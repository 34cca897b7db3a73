"""What must be the same in all processes that train a run together, in a few words each."""

from __future__ import annotations

import hashlib
import platform
import zlib
from collections.abc import Iterable
from typing import Any

import torch

from softtargets.recipes import Recipe
from softtargets.runs import RunStore, code_version
from softtargets.training.tasks import Task, TranslationTask


def of_code() -> dict[str, str]:
    """Versions."""
    code = code_version()
    changed = " with changes" if code["uncommitted_changes"] else ""
    return {
        "version of softtargets": f"{code['softtargets']}, commit {code['commit']}{changed}",
        "version of torch": str(torch.__version__),
        "version of Python": platform.python_version(),
    }


def of_recipes(recipes: Iterable[Recipe], store: RunStore) -> dict[str, str]:
    """Recipes by their ids, and the directory of runs."""
    ids = [recipe.id for recipe in recipes]
    if len(ids) == 1:
        return {"recipe": ids[0], "directory of runs": str(store.root.absolute())}
    digest = hashlib.sha256(" ".join(ids).encode()).hexdigest()[:16]
    return {
        "list of recipes": f"{len(ids)} recipes, {digest}",
        "directory of runs": str(store.root.absolute()),
    }


def of_data(task: Task) -> str:
    """The content of a task's splits, as far as it is in memory, and how large they are.

    Of tensors and text a checksum; what is read from files while a training goes on is known by its recipe.
    """
    found = zlib.crc32(repr([(name, len(split)) for name, split in task.splits.items()]).encode())
    for split in task.splits.values():
        for content in _contents(task, split):
            found = zlib.crc32(content, found)
    return f"{found:08x}"


def _contents(task: Task, split: Any) -> Iterable[Any]:
    if isinstance(task, TranslationTask):
        yield task.learnt.encode()
        yield from (side.flat.tobytes() for side in (split.sources, split.targets))
        return
    for name in ("images", "labels"):
        values = getattr(split, name, None)
        if isinstance(values, torch.Tensor):
            yield values.cpu().contiguous().numpy().tobytes()
