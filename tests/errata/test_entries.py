"""Every numbered entry of ERRATA.md has a test of the same number in this directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ERRATA = (HERE.parents[1] / "ERRATA.md").read_text(encoding="utf-8")
TESTED = {
    "M": "test_muller.py",
    "A": "test_response.py",
    "": "test_chen.py",
    "R": "test_replication.py",
    "L": "test_labo.py",
}


@pytest.mark.parametrize("letter", TESTED)
def test_every_entry_has_its_test(letter):
    entries = re.findall(rf"^### {letter}(\d+)\. ", ERRATA, re.MULTILINE)
    assert [int(number) for number in entries] == list(range(1, len(entries) + 1))
    assert entries
    tests = (HERE / TESTED[letter]).read_text(encoding="utf-8")
    tested = re.findall(rf"^def test_{letter.lower()}(\d+)_", tests, re.MULTILINE)
    assert set(tested) == set(entries)


def test_no_entry_is_without_a_paper():
    headings = re.findall(r"^### (.*)", ERRATA, re.MULTILINE)
    numbered = [heading for heading in headings if re.match(r"[MARL]?\d+\. ", heading)]
    assert all(heading.startswith("Not ") for heading in headings if heading not in numbered)
