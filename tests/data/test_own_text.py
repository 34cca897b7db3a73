"""Text of one's own: what is held out of it, and how it is kept."""

from __future__ import annotations

import pytest

from softtargets.data import Pairs, hold_out, keep_text, load_pairs, text_name
from softtargets.exceptions import DataError


def numbered(count, different=None):
    """So many pairs, with fewer different sources if asked."""
    sources = tuple(f"sentence {place % (different or count)}" for place in range(count))
    return Pairs(sources, tuple(f"Satz {place}" for place in range(count)))


@pytest.mark.parametrize(("count", "held_out"), [(20, 1), (400, 20), (50_000, 2000)])
def test_so_many_are_held_out_and_nothing_is_lost(count, held_out):
    pairs = numbered(count)
    splits = hold_out(pairs, ("validation", "test"))
    assert {name: len(split) for name, split in splits.items()} == {
        "train": count - 2 * held_out,
        "validation": held_out,
        "test": held_out,
    }
    assert sorted(pair for split in splits.values() for pair in split) == sorted(pairs)


def test_pairs_with_one_source_stay_together():
    splits = hold_out(numbered(300, different=40), ("validation", "test"))
    sources = [set(split.sources) for split in splits.values()]
    assert not any(one & other for one in sources for other in sources if one is not other)
    assert sum(map(len, sources)) == 40


def test_what_is_held_out_depends_on_the_text_and_not_on_its_order():
    pairs = numbered(200)
    turned = Pairs(pairs.sources[::-1], pairs.targets[::-1])
    once, again = (set(hold_out(text, ("test",))["test"]) for text in (pairs, turned))
    assert once == again
    assert once != set(list(pairs)[-10:])


def test_nothing_empty_is_held_out_and_it_stays_in_the_training_text():
    pairs = Pairs(("", "  ", *numbered(58).sources), ("x", "y", *numbered(58).targets))
    splits = hold_out(pairs, ("validation", "test"))
    assert {"", "  "} <= set(splits["train"].sources)


def test_nothing_longer_than_a_model_takes_is_held_out():
    """Nobody chose it; in the training text cleaning drops it."""
    long = dict.fromkeys(range(0, 400, 2), "many words " * 100)
    sources = [long.get(place, "") + one for place, one in enumerate(numbered(400).sources)]
    targets = ["x" * 1001 if place % 4 == 1 else "x" for place in range(400)]
    splits = hold_out(Pairs(tuple(sources), tuple(targets)), ("validation", "test"))
    assert [len(splits[name]) for name in ("validation", "test")] == [20, 20]
    assert max(len(text) for name in ("validation", "test") for pair in splits[name] for text in pair) < 1000


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (
            numbered(19),
            "19 sentence pairs are too few to hold some out for validation and test: there must be",
        ),
        (
            numbered(40, different=2),
            "the 40 pairs have 2 different source sentences; give validation and test",
        ),
    ],
)
def test_too_little_text_is_refused(pairs, says):
    with pytest.raises(DataError, match=says):
        hold_out(pairs, ("validation", "test"))


def test_nothing_is_held_out_where_nothing_is_wanted():
    assert hold_out(numbered(3), ()) == {"train": numbered(3)}


# --- what is kept ---


def test_text_is_read_as_it_was_written(tmp_path):
    odd = Pairs(("a\u2028b", "", "\ufeffc\r", " d\te "), ("ä", "ß\r", "", "x\rx"))
    splits = {"train": odd, "test": Pairs(("",), ("",))}
    folder = keep_text(splits, tmp_path)
    name, digest = text_name(splits)
    assert folder == tmp_path / name
    read = {part: load_pairs("parallel-text", "source", "target", part, folder) for part in splits}
    assert list(read["train"]) == [("a\u2028b", "ä"), ("", "ß"), ("c", ""), (" d\te ", "x\rx")]
    assert text_name(read) == (name, digest)


def test_the_same_text_is_kept_once_and_other_text_elsewhere(tmp_path):
    first = keep_text({"train": numbered(5)}, tmp_path)
    before = (first / "train.source").stat().st_mtime_ns
    assert keep_text({"train": numbered(5)}, tmp_path) == first
    assert (first / "train.source").stat().st_mtime_ns == before
    assert keep_text({"train": numbered(6)}, tmp_path) != first
    assert keep_text({"test": numbered(5)}, tmp_path) != first


def test_what_a_crash_left_is_completed_and_what_was_changed_is_refused(tmp_path):
    folder = keep_text({"train": numbered(5)}, tmp_path)
    (folder / "train.target").unlink()
    keep_text({"train": numbered(5)}, tmp_path)
    assert (folder / "train.target").read_text() == "".join(f"Satz {n}\n" for n in range(5))
    (folder / "train.target").write_text("mine\n")
    with pytest.raises(DataError, match=r"train\.target has changed since it was written; delete the direc"):
        keep_text({"train": numbered(5)}, tmp_path)
    assert (folder / "train.target").read_text() == "mine\n"
