"""Without the library that an adapter is for, importing it says in one line what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import sys
for name in sys.argv[2].split(","): sys.modules[name] = None
import importlib.util
find, importlib.util.find_spec = importlib.util.find_spec, lambda name, *rest: (
    None if name in sys.argv[2].split(",") else find(name, *rest))
import softtargets.integrations
__import__("softtargets.integrations." + sys.argv[1])
"""


@pytest.mark.parametrize(
    ("adapter", "missing", "line"),
    [
        ("huggingface", "transformers", 'needs transformers: pip install "softtargets[huggingface]"'),
        (
            "huggingface",
            "transformers,accelerate",
            'needs transformers and accelerate: pip install "softtargets[huggingface]"',
        ),
        ("lightning", "lightning", 'needs lightning: pip install "softtargets[lightning]"'),
        ("torchmetrics", "torchmetrics", 'needs torchmetrics: pip install "softtargets[torchmetrics]"'),
    ],
)
def test_one_clear_line(adapter, missing, line):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, adapter, missing], capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == f"ImportError: softtargets.integrations.{adapter} {line}"


@pytest.mark.parametrize("adapter", ["timm", "trackers"])
def test_these_need_nothing(adapter):
    command = [sys.executable, "-c", WITHOUT, adapter, "timm,tensorboard,wandb,mlflow,transformers,lightning"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_the_room_alone_imports_no_library():
    code = "import sys, softtargets.integrations; print({'torch', 'transformers', 'lightning'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_adapters_are_there_when_they_are_asked_for():
    """As all other rooms: ``st.integrations.sklearn`` needs no import of its own."""
    import softtargets as st

    assert st.integrations.sklearn.TemperatureScaler.__name__ == "TemperatureScaler"
    assert {"huggingface", "lightning", "sklearn", "timm", "torchmetrics", "trackers"} <= set(
        dir(st.integrations)
    )
    with pytest.raises(AttributeError, match="no attribute 'keras'; there are huggingface, lightning"):
        _ = st.integrations.keras


def test_help_is_there_without_the_libraries():
    """Python's help looks at all that a module lists; what would raise for want of a library is not listed."""
    code = """
import inspect, pydoc, sys
for name in ("transformers", "lightning", "torchmetrics"):
    sys.modules[name] = None
import softtargets as st
assert "softtargets.integrations" in pydoc.render_doc(st.integrations)
print(*(name for name, _ in inspect.getmembers(st.integrations) if not name.startswith("_")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["sklearn", "timm", "trackers"], 0), done.stderr


def test_every_extra_is_declared():
    from pathlib import Path

    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for extra in ("huggingface", "lightning", "torchmetrics"):
        assert f"\n{extra} = [" in project
