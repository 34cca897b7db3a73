"""The top of the package: names, loaded late, seen by people, shells and type checkers."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import softtargets as st

SOURCE = Path(st.__file__)
ROOMS = {path.parent.name for path in SOURCE.parent.glob("*/__init__.py")}


def alone(script):
    """What a fresh interpreter prints, as JSON."""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def test_importing_it_loads_nothing_heavy_and_its_rooms_not_at_all():
    loaded = alone("import json, sys, softtargets as st; dir(st); print(json.dumps(sorted(sys.modules)))")
    heavy = {"torch", "numpy", "scipy", "sklearn", "matplotlib", "typer", "yaml"}
    assert not heavy & set(loaded)
    assert [name for name in loaded if name.startswith("softtargets.")] == []


def test_a_name_loads_its_room_and_no_more():
    script = (
        "import json, sys, softtargets as st; st.Recipe; first = 'torch' in sys.modules; st.LabelSmoothing\n"
        "print(json.dumps([first, *(m in sys.modules for m in ('torch', 'matplotlib', 'softtargets.training'))]))"
    )
    assert alone(script) == [False, True, False, False]


@pytest.mark.parametrize("name", sorted(set(st.__all__) - ROOMS - {"__version__"}))
def test_every_name_is_that_of_its_room(name):
    home = sys.modules[f"softtargets.{st._HOMES[name]}"] if getattr(st, name) is not None else None
    assert getattr(home, name) is getattr(st, name)
    assert name in home.__all__
    assert name in dir(st)
    assert getattr(st, name).__doc__


def test_there_are_about_twenty_and_rooms_beside_them():
    names = set(st.__all__) - ROOMS - {"__version__"}
    assert 20 <= len(names) <= 25
    assert set(st.__all__) & ROOMS >= {
        "losses",
        "calibration",
        "plotting",
        "integrations",
        "recipes",
        "training",
    }
    assert st.losses.LabelSmoothing is st.LabelSmoothing
    with pytest.raises(AttributeError, match="no attribute 'LabelSmothing'"):
        st.LabelSmothing  # noqa: B018


def test_type_checkers_are_told_the_same_names():
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    told = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in told.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert seen == set(st.__all__) - {"__version__"}
    assert (SOURCE.parent / "py.typed").exists()


def test_type_checkers_do_not_see_how_names_are_found_and_so_refuse_others():
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    assert not [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
    ]


def test_reprs_are_one_line_that_says_something(tmp_path):
    import torch

    logits, labels = torch.eye(3).repeat(10, 1), torch.arange(3).repeat(10)
    metric = st.CalibrationMetric(3, from_logits=True)
    metric.update(logits, labels)
    curve = st.measure_selection(logits, labels, from_logits=True)
    shown = {
        "30 examples": [
            metric,
            metric.compute(),
            metric.compute().reliability,
            curve,
            curve.curve,
            st.vector_scaling(logits, labels),
            st.temperature_scaling(2 * logits, labels.roll(1).where(torch.arange(30) < 9, labels)),
            st.neural_collapse(logits + 0.1 * torch.randn(30, 3), labels, torch.eye(3)),
            st.calibration.temperature_sweep(logits, labels),
            st.plane_view(logits, labels, torch.eye(3), [0, 1, 2]),
        ],
        "alpha=0.1": [st.LabelSmoothing(0.1)],
        str(tmp_path): [st.RunStore(tmp_path), st.runs.Run(tmp_path / "nothing")],
        "not finished": [st.runs.Run(tmp_path / "nothing")],
        "epochs=2": [st.Recipe(data="digits", model="mlp", epochs=2)],
    }
    for words, things in shown.items():
        for thing in things:
            assert words in repr(thing), repr(thing)
            assert "\n" not in repr(thing)
            assert "tensor(" not in repr(thing)
            assert len(repr(thing)) < 250 + len(str(tmp_path))


def test_a_recipe_can_be_read_back_from_its_repr():
    from softtargets import recipes

    recipe = st.Recipe(
        data="digits", model={"name": "mlp", "hidden": [8]}, epochs=2, regulariser="label_smoothing"
    )
    assert eval(repr(recipe), vars(recipes)) == recipe
