from __future__ import annotations

import json

from softtargets.cli.output import print_json, print_rows, print_section
from softtargets.recipes import parse_yaml


def test_what_is_no_number_is_null(capsys):
    print_json({"a": [float("nan"), 1.5, (float("inf"), 2)], "b": {"c": -float("inf")}, "d": "naïve"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": [None, 1.5, [None, 2]], "b": {"c": None}, "d": "naïve"}
    assert "naïve" in out


def test_rows_are_a_table_or_a_list_of_objects(capsys):
    rows = [("a", "short"), ("longer", "b")]
    print_rows(("name", "what"), rows, as_json=False)
    assert capsys.readouterr().out == "name    what\na       short\nlonger  b\n"
    print_rows(("name", "what"), rows, as_json=True)
    assert json.loads(capsys.readouterr().out) == [
        {"name": "a", "what": "short"},
        {"name": "longer", "what": "b"},
    ]


def test_a_section_is_read_back_as_it_was(capsys):
    # Digests of hexadecimal digits that YAML would take for numbers, and words that it would take for no.
    fields = {"digest": "1234e5", "short": "12345678", "nothing": "no", "lr": 1e-3, "name": "naïve"}
    fields["nested"] = {"digests": ["9e10", "0x1f", "abc"], "on": True}
    print_section("data", fields)
    out = capsys.readouterr().out
    assert parse_yaml(out) == {"data": fields}
    assert "digest: '1234e5'" in out
    assert "name: naïve" in out
