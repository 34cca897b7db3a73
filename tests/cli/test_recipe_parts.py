from __future__ import annotations

import json

import pytest

from softtargets.recipes import kinds

from .command import ran


@pytest.fixture(params=[80, 120])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def test_the_overview_fits_a_terminal_and_says_what_each_part_is(columns, capsys):
    from softtargets.cli.recipe_parts import slots

    out = ran(capsys, "recipe", "parts")[1]
    assert max(map(len, out.splitlines())) <= columns
    lines = out.splitlines()
    for field, slot in slots().items():
        assert any(line.startswith(f"{field} ") for line in lines)
        for name in kinds(slot):
            (line,) = [line for line in lines if line.startswith(f"  {name} ")]
            assert len(line.split()) > 2, f"{name} is not described"


def test_a_part_is_shown_with_its_options(columns, capsys):
    out = ran(capsys, "recipe", "parts", "sgd")[1]
    assert max(map(len, out.splitlines())) <= columns
    assert "  nesterov               true or false; default: false" in out
    assert "  decay_form             one of gradient, loss, norm; default: gradient" in out
    assert "which the schedule" in " ".join(out.split()), "what all optimisers share"
    assert "optimiser: adam" in ran(capsys, "recipe", "parts", "optimiser")[1]


def test_a_part_is_the_same_for_scripts(capsys):
    everything = json.loads(ran(capsys, "recipe", "parts", "--json")[1])
    some = json.loads(ran(capsys, "recipe", "parts", "sgd", "--json")[1])
    assert some == [row for row in everything if row["field"].endswith("(sgd)")]


def test_a_misspelt_part_gets_the_nearest(capsys):
    code, _, err = ran(capsys, "recipe", "parts", "lable_smoothing")
    assert code == 2
    assert "did you mean 'label_smoothing'" in err
