from __future__ import annotations

import gzip

import pytest

from softtargets.data import load_pairs
from softtargets.data.text import Pairs, join_pairs, read_parallel, read_tsv
from softtargets.exceptions import DataError


def test_plain_and_gzipped_files_are_aligned_line_by_line(tmp_path):
    # U+2028 and a form feed end a line for str.splitlines, but not here.
    (tmp_path / "a").write_bytes("\ufeffone\u2028half\r\n\r\ntwo\x0cthree\n".encode())
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"eins\n\nzwei"))
    pairs = read_parallel(tmp_path / "a", tmp_path / "b.gz")
    assert list(pairs) == [("one\u2028half", "eins"), ("", ""), ("two\x0cthree", "zwei")]
    assert len(pairs) == 3


def test_unequal_files_are_refused_with_both_counts(tmp_path):
    (tmp_path / "a").write_text("1\n2\n3\n")
    (tmp_path / "b").write_text("1\n2\n")
    with pytest.raises(DataError, match=r"a has 3 lines but .*b has 2"):
        read_parallel(tmp_path / "a", tmp_path / "b")


def test_invalid_utf8_is_named_by_file_and_line(tmp_path):
    (tmp_path / "a").write_bytes(b"fine\nfine\nGr\xfc\xdf Gott\n")
    with pytest.raises(DataError, match=r"a line 3 is not valid UTF-8 \(byte 3"):
        read_parallel(tmp_path / "a", tmp_path / "a")


def test_an_empty_file_has_no_lines(tmp_path):
    (tmp_path / "a").write_bytes(b"")
    assert len(read_parallel(tmp_path / "a", tmp_path / "a")) == 0


def test_a_truncated_gzip_is_named(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"hello\n" * 100)[:-9])
    with pytest.raises(DataError, match=r"a\.gz is not a complete gzip"):
        read_parallel(tmp_path / "a.gz", tmp_path / "a.gz")


def test_tsv_needs_two_columns_everywhere(tmp_path):
    (tmp_path / "a.tsv").write_text("Hi.\tHallo!\nRun!\tLauf!\n")
    assert list(read_tsv(tmp_path / "a.tsv")) == [("Hi.", "Hallo!"), ("Run!", "Lauf!")]
    for bad, columns in (("Run!\n", 1), ("Run!\tLauf!\tCC BY\n", 3)):
        (tmp_path / "a.tsv").write_text("Hi.\tHallo!\n" + bad)
        with pytest.raises(DataError, match=f"line 2 has {columns} tab-separated columns"):
            read_tsv(tmp_path / "a.tsv")


def test_pairs_must_pair():
    with pytest.raises(DataError, match="2 sentences but 1 translations"):
        Pairs(("a", "b"), ("c",))


def test_joined_pairs_follow_each_other_and_need_a_tag_each_or_none():
    one, other = Pairs(("a", "b"), ("c", "d")), Pairs(("e",), ("f",))
    assert list(join_pairs(one, other)) == [*one, *other]
    assert join_pairs(one, other, tags=("1", "2")).sources == ("1 a", "1 b", "2 e")
    assert len(join_pairs()) == 0
    with pytest.raises(DataError, match="1 tags for 2 sets of pairs"):
        join_pairs(one, other, tags=("1",))


def test_own_files_are_found_in_each_form(tmp_path):
    (tmp_path / "train.en").write_text("Hi\n")
    (tmp_path / "train.de.gz").write_bytes(gzip.compress(b"Hallo\n"))
    (tmp_path / "test.de-en.tsv").write_text("Tag\tDay\n")
    assert list(load_pairs("parallel-text", "en", "de", "train", tmp_path)) == [("Hi", "Hallo")]
    assert list(load_pairs("parallel-text", "de", "en", "train", tmp_path)) == [("Hallo", "Hi")]
    assert list(load_pairs("parallel-text", "de", "en", "test", tmp_path)) == [("Tag", "Day")]
    assert list(load_pairs("parallel-text", "en", "de", "test", tmp_path)) == [("Day", "Tag")]
    with pytest.raises(DataError, match=r"neither val\.en and val\.de nor val\.en-de\.tsv"):
        load_pairs("parallel-text", "en", "de", "val", tmp_path)


def test_multi30k_errors_name_the_choices_and_the_command(tmp_path):
    with pytest.raises(DataError, match=r"no part 'test_2016'.*did you mean 'test_2016_flickr'"):
        load_pairs("multi30k", "en", "de", "test_2016", tmp_path)
    with pytest.raises(DataError, match=r"no language 'cs'.*en, de, fr"):
        load_pairs("multi30k", "en", "cs", "train", tmp_path)
    with pytest.raises(DataError, match=r"missing 'train\.en\.gz' in .*softtargets data fetch multi30k --to"):
        load_pairs("multi30k", "en", "de", "train", tmp_path)
    with pytest.raises(DataError, match=r"did you mean 'multi30k'"):
        load_pairs("multi30", "en", "de", "train", tmp_path)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("part", "count"),
    [
        ("train", 29_000),
        ("val", 1_014),
        ("validation", 1_014),
        ("test", 1_000),
        ("test_2016_flickr", 1_000),
        ("test_2017_flickr", 1_000),
        ("test_2017_mscoco", 461),
        ("test_2018_flickr", 1_071),
    ],
)
def test_real_multi30k_counts(real, part, count):
    stem = {"validation": "val", "test": "test_2016_flickr"}.get(part, part)
    root = real(*(f"multi30k/{stem}.{language}.gz" for language in ("en", "de", "fr")))
    for target in ("de", "fr"):
        pairs = load_pairs("multi30k", "en", target, part, root)
        assert len(pairs) == count
        assert all(source and target for source, target in pairs)


@pytest.mark.realdata
def test_real_tatoeba_tables(real):
    root = real("tatoeba/deu-eng.tsv", "tatoeba/fra-eng.tsv")
    assert len(read_tsv(root / "tatoeba/deu-eng.tsv")) == 169_813
    assert len(read_tsv(root / "tatoeba/fra-eng.tsv")) == 167_130


def test_damaged_captions_come_with_the_command_that_fetches_them(tmp_path):
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for language in ("en", "de"):
        (folder / f"val.{language}.gz").write_bytes(b"not gzip")
    with pytest.raises(DataError, match=r"val\.en\.gz.*softtargets data fetch multi30k --to "):
        load_pairs("multi30k", "en", "de", "val", tmp_path)
