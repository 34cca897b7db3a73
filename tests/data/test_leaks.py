from __future__ import annotations

import pytest

from softtargets.data import LeakReport, Pairs, leaks, load_pairs
from softtargets.data.sentences import hashed, plain_form

TRAIN = Pairs(("Hello, you.", "Go!", "Go!"), ("Hallo, du.", "Geh!", "Los!"))


def test_each_side_and_the_pair_are_counted_to_the_character_and_by_words():
    held_out = Pairs(
        ("Hello, you.", "hello you", "Go!", "go", "Stop!", "Go!"),
        ("Hallo, du.", "HALLO DU", "Hallo, du.", "Fort!", "Los!", "Los!"),
    )
    assert leaks(TRAIN, held_out) == LeakReport(
        held_out=6, sources=3, targets=4, pairs=2, sources_alike=5, targets_alike=5, pairs_alike=3
    )


def test_nothing_leaks_out_of_or_into_nothing():
    empty = Pairs((), ())
    assert leaks(TRAIN, empty) == LeakReport(0, 0, 0, 0, 0, 0, 0)
    assert leaks(empty, TRAIN) == LeakReport(3, 0, 0, 0, 0, 0, 0)
    assert "0 of 0" in str(leaks(empty, empty))


def test_words_alone_decide_what_is_alike():
    assert plain_form("„Straße“, sagte er\u202f!") == plain_form("STRASSE sagte er")
    assert plain_form("cafe\u0301") == plain_form("café")
    assert plain_form("I'm here.") != plain_form("I'm there.")
    # Punctuation is all that these consist of, and they are not the same.
    assert plain_form("?!") != plain_form("...")
    assert plain_form("") == plain_form("  ") == ""


def test_the_hash_is_pinned_and_even():
    assert hashed("hello", "an example") == 0.69145659426027
    values = [hashed(str(i), "evenness") for i in range(4000)]
    assert all(0 <= value < 1 for value in values)
    for low in (0.0, 0.25, 0.5, 0.75):
        assert abs(sum(low <= value < low + 0.25 for value in values) - 1000) < 120
    assert hashed("a", "b") != hashed("b", "a")
    hashed("\ud800", "a lone surrogate")


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("target", "part", "expected"),
    [
        ("de", "validation", LeakReport(1014, 1, 1, 0, 1, 1, 0)),
        ("fr", "validation", LeakReport(1014, 1, 3, 1, 1, 4, 1)),
        ("de", "test", LeakReport(1000, 0, 0, 0, 0, 0, 0)),
        ("fr", "test", LeakReport(1000, 0, 0, 0, 0, 0, 0)),
    ],
)
def test_multi30k_leaks_next_to_nothing(real, target, part, expected):
    files = {"validation": "val", "test": "test_2016_flickr"}
    root = real(*(f"multi30k/{stem}.{code}.gz" for stem in ("train", files[part]) for code in ("en", target)))
    train, held_out = (load_pairs("multi30k", "en", target, each, root) for each in ("train", part))
    assert leaks(train, held_out) == expected
