"""What a shell offers after TAB: names of parts, studies, datasets and runs, each with a word about it.

A completion that fails, or takes long, is worse than none: whatever goes wrong, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path

from typer import Context

Offer = tuple[str, str]
MOST = 200


def _offering(found: Callable[[Context], Iterator[Offer]]) -> Callable[[Context, str], list[Offer]]:
    @wraps(found)
    def offer(ctx: Context, incomplete: str) -> list[Offer]:
        try:
            matching = [one for one in found(ctx) if one[0].startswith(incomplete)]
        except Exception:
            return []
        return matching[:MOST]

    offer.__annotations__ = {"ctx": Context, "incomplete": str}
    del offer.__wrapped__  # typer looks at the signature of what it calls
    return offer


def _parts_of(field: str) -> Iterator[Offer]:
    from softtargets.cli.recipe_parts import first_sentence, slots
    from softtargets.recipes import kinds

    for name, part in kinds(slots()[field]).items():
        yield name, first_sentence(part)


@_offering
def parts(ctx: Context) -> Iterator[Offer]:
    """Fields of a recipe and the parts that fit them."""
    from softtargets.cli.recipe_parts import slots

    for field in slots():
        yield field, "a field of a recipe"
        yield from _parts_of(field)


@_offering
def datasets(ctx: Context) -> Iterator[Offer]:
    """What a recipe can train on."""
    return _parts_of("data")


@_offering
def models(ctx: Context) -> Iterator[Offer]:
    """Networks that a recipe can name."""
    return _parts_of("model")


@_offering
def regularisers(ctx: Context) -> Iterator[Offer]:
    """Where the training target may come from."""
    return _parts_of("regulariser")


@_offering
def sources(ctx: Context) -> Iterator[Offer]:
    """Datasets that `softtargets data` knows."""
    from softtargets.data import CATALOGUE

    return ((name, source.title) for name, source in CATALOGUE.items())


@_offering
def studies(ctx: Context) -> Iterator[Offer]:
    """Studies by name, from the list of their modules: importing them would take longer than anyone waits for TAB."""
    import ast

    import softtargets

    listing = Path(softtargets.__file__).parent / "studies" / "__init__.py"
    for node in ast.parse(listing.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_MODULES":
            for name in ast.literal_eval(node.value):
                yield name.replace("_", "-"), ""


@_offering
def runs(ctx: Context) -> Iterator[Offer]:
    """Runs of the store that the command would read, by their directories alone."""
    given = ctx.params.get("runs_dir")
    root = Path(given or os.environ.get("SOFTTARGETS_RUNS") or "runs")
    for directory in sorted(root.iterdir()):
        if len(directory.name) == 16 and (directory / "recipe.json").is_file():
            yield directory.name, "finished" if (directory / "run.json").is_file() else "not finished"
