from __future__ import annotations

import pytest

from benchmarks.words import counts, names, words
from softtargets.exceptions import SofttargetsError


def test_words_are_what_stands_between_commas():
    assert words("--x", " a ,,b ") == ["a", "b"]
    with pytest.raises(SofttargetsError, match="--x is empty: give at least one"):
        words("--x", " , ")


def test_names_are_known_and_come_once():
    assert names("--x", "b,a,b", ["a", "b"]) == ("b", "a")
    assert names("--x", "all", ["a", "b"], everything=True) == ("a", "b")
    assert names("--x", "none", ["a", "b"], nothing=True) == ()
    with pytest.raises(SofttargetsError, match=r"--x: no 'zzz'; allowed: a, b"):
        names("--x", "zzz", ["a", "b"])


@pytest.mark.parametrize("text", ["0", "-1", "4.5", "many", "1,,x"])
def test_counts_are_whole_numbers_from_1(text):
    assert counts("--x", "64, 4,4") == (4, 64)
    with pytest.raises(SofttargetsError, match="is not a whole number from 1; write for example 1,4,16"):
        counts("--x", text)
