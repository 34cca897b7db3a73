"""ARCHITECTURE.md says what may import what; this holds it to that."""

from __future__ import annotations

import ast
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


def test_no_two_rooms_import_each_other():
    table = rooms()

    def below(room: str, seen: tuple[str, ...] = ()) -> None:
        assert room not in seen, f"a circle: {' -> '.join([*seen, room])}"
        for other in table[room]:
            below(other, (*seen, room))

    for room in table:
        below(room)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import softtargets", ["torch", "numpy", "typer"]),
        ("import softtargets.cli.app", ["torch", "numpy", "scipy", "sklearn", "matplotlib"]),
        ("import softtargets.recipes", ["torch", "numpy"]),
        ("import softtargets.runs", ["torch", "scipy", "matplotlib"]),
        ("import softtargets.data", ["torch", "sklearn", "PIL"]),
        (
            "import softtargets.losses",
            ["sklearn", "matplotlib", "torch._dynamo", "softtargets.training", "softtargets.runs"],
        ),
        ("import softtargets.calibration", ["matplotlib", "softtargets.training", "softtargets.runs"]),
        ("import softtargets.information", ["matplotlib", "scipy", "softtargets.training"]),
        ("import softtargets.distillation", ["matplotlib", "softtargets.training"]),
        ("import softtargets.geometry", ["matplotlib", "softtargets.training"]),
        ("import softtargets.predictions", ["matplotlib", "pyarrow", "softtargets.training"]),
        ("import softtargets.theory", ["torch", "scipy", "matplotlib"]),
        ("import softtargets.errors", ["matplotlib", "softtargets.training"]),
        ("import softtargets.training", ["torchvision", "timm", "matplotlib", "torch._dynamo"]),
    ],
)
def test_importing_a_room_imports_nothing_it_does_not_need(statement, absent):
    code = f"{statement}\nimport sys\nprint([name for name in {absent!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
