"""ARCHITECTURE.md says what may import what; this holds it to that."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import softtargets

PACKAGE = Path(softtargets.__file__).parent
DOCUMENT = Path(__file__).parents[1] / "ARCHITECTURE.md"


def rooms() -> dict[str, set[str]]:
    """The table in ARCHITECTURE.md: a room, and the rooms it may import."""
    table = {}
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and (match := re.fullmatch(r"`(\w+)`", cells[0])):
            table[match[1]] = set(re.findall(r"`(\w+)`", cells[2]))
    return table


def imports(path: Path) -> set[str]:
    """The rooms a module imports, wherever in the module it does so."""
    return {name.split(".")[1] for name in modules(path) if name.startswith("softtargets.")}


def modules(path: Path) -> set[str]:
    """Everything a module imports, wherever in the module it does so."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where things come from"
            names = [node.module or ""]
        else:
            continue
        found |= set(names)
    return found


def test_the_table_names_every_room_and_only_real_ones():
    there = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert set(rooms()) == there


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_imports_only_what_the_table_allows(room):
    allowed = rooms()[room] | {room, "exceptions"}
    for path in (PACKAGE / room).rglob("*.py"):
        assert imports(path) <= allowed, f"{path.relative_to(PACKAGE)} imports {imports(path) - allowed}"


def test_the_package_does_without_the_benchmarks():
    # They are not in the wheel; `softtargets bench` looks for them beside the sources and hands over.
    for path in PACKAGE.rglob("*.py"):
        assert not {name for name in modules(path) if name.split(".")[0] == "benchmarks"}, path


# Beside a room's `__init__`: drawing, which loads matplotlib, and of inspection the files that every question has.
DOORS = re.compile(r"\w+\.(\w+_)?drawing|inspection\.\w+\.(finding|words|figures|page)")


def deep_imports(path: Path) -> set[str]:
    """The modules inside other rooms that a module imports; a room, or a package inside it, is a door."""
    room, found = path.relative_to(PACKAGE).parts[0], set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = PACKAGE.parent.joinpath(*node.module.split("."))
            hidden = [alias.name for alias in node.names if (inside / f"{alias.name}.py").exists()]
            exported = (inside / "__init__.py").read_text(encoding="utf-8") if hidden else ""
            names = [node.module, *(f"{node.module}.{n}" for n in hidden if f'"{n}"' not in exported)]
        else:
            continue
        for name in names:
            _, *parts = name.split(".")
            if (
                name.startswith("softtargets.")
                and parts[0] != room
                and PACKAGE.joinpath(*parts).with_suffix(".py").exists()
            ):
                found.add(".".join(parts))
    return found - {"exceptions"}


def test_rooms_are_entered_through_their_doors():
    for path in PACKAGE.rglob("*.py"):
        past = {module for module in deep_imports(path) if not DOORS.fullmatch(module)}
        assert not past, (
            f"{path.relative_to(PACKAGE)} imports {past}: export there what the room has to offer"
        )


def test_no_two_rooms_import_each_other():
    table = rooms()

    def below(room: str, seen: tuple[str, ...] = ()) -> None:
        assert room not in seen, f"a circle: {' -> '.join([*seen, room])}"
        for other in table[room]:
            below(other, (*seen, room))

    for room in table:
        below(room)


# What importing each takes no part in. Those of the second kind load torch, and torch alone loads none of these.
LIGHT = {
    "softtargets": ["torch", "numpy", "typer"],
    "softtargets.cli.app": ["torch", "numpy", "scipy", "sklearn", "matplotlib"],
    "softtargets.recipes": ["torch", "numpy"],
    "softtargets.runs": ["torch", "scipy", "matplotlib"],
    "softtargets.data": ["torch", "sklearn", "PIL"],
    "softtargets.theory": ["torch", "scipy", "matplotlib"],
}
WITH_TORCH = {
    "softtargets.losses": [
        "sklearn",
        "matplotlib",
        "torch._dynamo",
        "softtargets.training",
        "softtargets.runs",
    ],
    "softtargets.calibration": ["matplotlib", "softtargets.training", "softtargets.runs"],
    "softtargets.information": ["matplotlib", "scipy", "softtargets.training"],
    "softtargets.distillation": ["matplotlib", "softtargets.training"],
    "softtargets.geometry": ["matplotlib", "softtargets.training"],
    "softtargets.predictions": ["matplotlib", "pyarrow", "softtargets.training"],
    "softtargets.errors": ["matplotlib", "softtargets.training"],
    "softtargets.training": ["torchvision", "timm", "matplotlib", "torch._dynamo"],
}
# Each module is imported in a fork of its own, so that torch is loaded once.
IMPORTING = """
import importlib, json, os, sys
before, wanted = json.loads(sys.argv[1])
for module in before: importlib.import_module(module)
for module, absent in wanted.items():
    sys.stdout.flush()
    if os.fork() == 0:
        importlib.import_module(module)
        print(json.dumps([module, [name for name in absent if name in sys.modules]]), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.parametrize(("before", "wanted"), [([], LIGHT), (["torch"], WITH_TORCH)], ids=["light", "torch"])
def test_importing_a_room_imports_nothing_it_does_not_need(before, wanted):
    command = [sys.executable, "-c", IMPORTING, json.dumps([before, wanted])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert found == {module: [] for module in wanted}, done.stderr
