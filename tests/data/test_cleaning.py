from __future__ import annotations

import random

import pytest

from softtargets.data import Pairs, clean_pairs, load_pairs
from softtargets.data.cleaning import CleaningReport
from softtargets.exceptions import DataError, SofttargetsError


def moses(pairs, low, high, ratio):
    """clean-corpus-n, line by line."""
    kept = []
    for source, target in pairs:
        source, target = " ".join(source.split()), " ".join(target.split())
        one, other = len(source.split()), len(target.split())
        if source == "" or target == "":
            continue
        if one > high or other > high or one < low or other < low:
            continue
        if one / other > ratio or other / one > ratio:
            continue
        kept.append((source, target))
    return kept


def test_the_same_pairs_survive_as_in_moses():
    draw = random.Random(1)
    pairs = Pairs(
        *(tuple(" ".join("w" * draw.choice([0, 1, 2, 3, 4, 6, 9])) for _ in range(3000)) for _ in range(2))
    )
    for low, high, ratio in ((1, 175, 1.5), (2, 6, 1.5), (1, 4, 3.0), (1, 9, 1.0)):
        cleaned = clean_pairs(pairs, low, high, ratio)
        assert list(cleaned.pairs) == moses(pairs, low, high, ratio)
        report = cleaned.report
        assert report.kept + report.empty + report.short + report.long + report.ratio == report.read == 3000
        assert report.duplicates == report.kept - len(set(cleaned.pairs))


def test_every_reason_is_counted_once_and_said():
    pairs = Pairs(
        ("fine one", " ", "a", "a b c d e", "a b c d", "fine\x00one", "fine one"),
        ("gut  so", "leer", "b", "a b c d e", "a b", "gut\u200b so", "gut so"),
    )
    cleaned = clean_pairs(pairs, shortest=2, longest=4)
    assert list(cleaned.pairs) == [("fine one", "gut so")] * 3
    assert cleaned.report == CleaningReport(
        read=7, kept=3, empty=1, short=1, long=1, ratio=1, altered=1, duplicates=2
    )
    assert str(cleaned.report) == (
        "3 of 7 sentence pairs were kept; dropped: 1 empty on one side, 1 too short, 1 too long, 1 too different in "
        "length; invisible characters were removed from 1; 2 of those kept are repetitions."
    )
    assert str(clean_pairs(Pairs(("a",), ("b",))).report) == "1 of 1 sentence pairs were kept."


def test_characters_are_tidied_and_joiners_left_alone():
    emoji = "\U0001f469\u200d\U0001f4bb"
    sources = ("cafe\u0301\tbar", f"{emoji} \xadx\ufeff", "A\r\u2028B", "İ")
    cleaned = clean_pairs(Pairs(sources, ("x y",) * 4), ratio=None, lowercase=True)
    assert cleaned.pairs.sources == ("café bar", f"{emoji} x", "a b", "i̇")
    assert clean_pairs(Pairs(("É ",), ("X",))).pairs.sources == ("É",)


def test_the_caller_may_count_otherwise():
    def characters(sentences):
        return [len(sentence) for sentence in sentences]

    pairs = Pairs(("abcd", "a", "abcdefg"), ("abcdef", "ab", "abcdefg"))
    assert list(clean_pairs(pairs, longest=6, count=characters).pairs) == [("abcd", "abcdef")]
    assert len(clean_pairs(pairs, longest=None, ratio=None, count=characters).pairs) == 3


def test_nothing_in_nothing_out():
    cleaned = clean_pairs(Pairs((), ()))
    assert len(cleaned.pairs) == 0
    assert cleaned.report.read == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"shortest": -1}, "shortest must be at least 0, not -1"),
        ({"shortest": 3, "longest": 2}, "longest must be at least as much as shortest"),
        ({"ratio": 0.5}, "ratio must be at least 1, not 0.5"),
        ({"ratio": float("nan")}, "ratio must be at least 1, not nan"),
    ],
)
def test_impossible_bounds_are_refused(options, said):
    with pytest.raises(SofttargetsError, match=said):
        clean_pairs(Pairs((), ()), **options)


def test_own_validation_files_have_several_names_and_directions_join(tmp_path):
    for stem in ("validation", "val", "valid", "dev"):
        folder = tmp_path / stem
        folder.mkdir()
        (folder / f"{stem}.en").write_bytes(b"one\r\ntwo\r\n")
        (folder / f"{stem}.de").write_bytes(b"eins\nzwei")
        assert list(load_pairs("parallel-text", "en", "de", "validation", folder)) == [
            ("one", "eins"),
            ("two", "zwei"),
        ]
    (folder / "dev.fr").write_text("un\ndeux\n")
    several = load_pairs("parallel-text", "en", "de+fr", "validation", folder)
    assert list(several)[1:3] == [("<2de> two", "zwei"), ("<2fr> one", "un")]
    assert list(load_pairs("parallel-text", "de+fr", "en", "dev", folder))[1:3] == [
        ("zwei", "two"),
        ("un", "one"),
    ]
    with pytest.raises(DataError, match=r"neither validation\.en .*\(or val, valid, dev for validation\)"):
        load_pairs("parallel-text", "en", "es", "validation", folder)
    for source, target in (("en", "en"), ("", "de"), ("en+de", "de")):
        with pytest.raises(DataError, match="cannot pair the languages"):
            load_pairs("parallel-text", source, target, "dev", folder)
    with pytest.raises(DataError, match="named twice"):
        load_pairs("parallel-text", "de+de", "en", "dev", folder)
