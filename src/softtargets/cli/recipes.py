"""``softtargets recipe``: check a file, see what may be written in one."""

from __future__ import annotations

from dataclasses import MISSING, fields
from pathlib import Path

import typer

from softtargets.cli.options import Json, Set, assignments
from softtargets.cli.output import print_json, print_rows

app = typer.Typer(help="Recipes: descriptions of one training.", no_args_is_help=True)


@app.command()
def check(recipe: Path, changes: Set = None, as_json: Json = False) -> None:
    """Read a recipe, refuse it or print it with its id and every default filled in."""
    import yaml

    from softtargets.recipes import Recipe

    found = Recipe.load(recipe).replace(assignments(changes))
    if as_json:
        print_json({"id": found.id, "recipe": found.to_dict()})
    else:
        typer.echo(f"# {found.id}")
        typer.echo(yaml.safe_dump(found.to_dict(), sort_keys=False, allow_unicode=True).rstrip())


@app.command()
def parts(as_json: Json = False) -> None:
    """List every field of a recipe, what it accepts, and its default."""
    from softtargets.recipes import Part, Recipe, describe, field_types, kinds

    rows = []
    for name, hint in field_types(Recipe).items():
        rows.append((name, describe(hint), _default(Recipe, name)))
        slot = hint if isinstance(hint, type) else next(iter(getattr(hint, "__args__", ())), None)
        if isinstance(slot, type) and issubclass(slot, Part):
            for kind, part in kinds(slot).items():
                for option, accepted in field_types(part).items():
                    rows.append((f"{name}.{option} ({kind})", describe(accepted), _default(part, option)))
    print_rows(("field", "accepts", "default"), rows, as_json)


def _default(part: type, name: str) -> str:
    default = next(field.default for field in fields(part) if field.name == name)
    if default is MISSING:
        return "required"
    return str(getattr(default, "name", None) or ("" if default is None else default))
