from __future__ import annotations

import hashlib

import pytest

from softtargets.data import Pairs, leaks, load_pairs, tatoeba
from softtargets.data.sentences import plain_form
from softtargets.data.tatoeba import split_by_sentence
from softtargets.exceptions import DataError

PARTS = ("train", "validation", "test")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Tables of 500 sentences, every other one with two translations, in files like the real ones."""
    (tmp_path / "tatoeba").mkdir()
    for language, name in (("de", "deu"), ("fr", "fra")):
        rows = [(f"Sentence {i}.", f"{language} {i}") for i in range(500)]
        rows += [(f"sentence {i}!", f"{language} {i} again") for i in range(0, 500, 2)]
        text = "".join(f"{one}\t{other}\n" for one, other in rows)
        (tmp_path / "tatoeba" / f"{name}-eng.tsv").write_text(text, encoding="utf-8")
        monkeypatch.setitem(
            tatoeba.TABLES,
            language,
            (f"{name}-eng.tsv", len(rows)),
        )
    return tmp_path


def place(sentence):
    digest = hashlib.sha256(b"softtargets tatoeba split\n" + plain_form(sentence).encode()).hexdigest()
    return int(digest[:12], 16) / 16**12


def test_a_sentence_and_its_translations_are_in_the_part_that_its_hash_says(small):
    found = {part: load_pairs("tatoeba", "en", "de", part, small) for part in PARTS}
    assert sum(map(len, found.values())) == 750
    bounds = {"test": (0, 0.018), "validation": (0.018, 0.036), "train": (0.036, 1)}
    for part, pairs in found.items():
        places = [place(sentence) for sentence in pairs.sources]
        assert places == sorted(places)
        assert all(bounds[part][0] <= x < bounds[part][1] for x in places)
    assert len(found["test"]) + len(found["validation"]) > 10


def test_languages_agree_on_what_is_held_out_and_may_be_turned(small):
    for part in PARTS:
        german, french = (load_pairs("tatoeba", "en", language, part, small) for language in ("de", "fr"))
        assert german.sources == french.sources
        assert list(load_pairs("tatoeba", "de", "en", part, small)) == [(b, a) for a, b in german]
        joined = load_pairs("tatoeba", "de+fr", "en", part, small)
        assert joined == Pairs(german.targets + french.targets, german.sources + french.sources)


def test_a_translation_that_is_held_out_is_in_no_training_pair():
    held = next(i for i in range(10_000) if place(f"number {i}") < 0.018)
    learnt = next(i for i in range(10_000) if place(f"number {i}") > 0.5)
    pairs = Pairs((f"number {held}", f"number {learnt}", f"number {learnt}"), ("Gleich.", "gleich", "anders"))
    parts = split_by_sentence(pairs)
    assert list(parts["test"]) == [(f"number {held}", "Gleich.")]
    assert list(parts["train"]) == [(f"number {learnt}", "anders")]


def test_what_is_not_there_is_said(small, tmp_path):
    with pytest.raises(DataError, match=r"no de-fr pairs; one of the two languages must be en$"):
        load_pairs("tatoeba", "de", "fr", "train", small)
    with pytest.raises(DataError, match=r"no language 'es'.*en, de, fr$"):
        load_pairs("tatoeba", "en", "es", "train", small)
    with pytest.raises(DataError, match=r"no part 'dev'.*train, validation, test$"):
        load_pairs("tatoeba", "en", "de", "dev", small)
    with pytest.raises(DataError, match=r"missing 'deu-eng\.tsv' in .*export deu-eng\.zip of 2018-05-13"):
        load_pairs("tatoeba", "en", "de", "train", tmp_path / "nowhere")


def test_another_export_is_not_this_corpus(small):
    table = small / "tatoeba" / "deu-eng.tsv"
    table.write_text(table.read_text() + "One more.\tNoch einer.\n")
    with pytest.raises(DataError, match=r"has 751 pairs, but this corpus has 750; .*parallel-text"):
        load_pairs("tatoeba", "en", "de", "train", small)


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("language", "counts"), [("de", (162_800, 2_993, 3_055)), ("fr", (160_234, 3_017, 3_068))]
)
def test_the_real_split_has_these_sizes_and_leaks_nothing(real, language, counts):
    root = real("tatoeba/deu-eng.tsv", "tatoeba/fra-eng.tsv")
    train, validation, test = (load_pairs("tatoeba", "en", language, part, root) for part in PARTS)
    assert (len(train), len(validation), len(test)) == counts
    for held_out in (validation, test):
        report = leaks(train, held_out)
        assert (report.sources_alike, report.targets_alike, report.pairs_alike) == (0, 0, 0)
    assert leaks(validation, test).sources_alike == 0


@pytest.mark.realdata
def test_several_real_languages_together_leak_nothing(real):
    root = real("tatoeba/deu-eng.tsv", "tatoeba/fra-eng.tsv")
    train, held_out = (load_pairs("tatoeba", "de+fr", "en", part, root) for part in ("train", "test"))
    report = leaks(train, held_out)
    assert (report.held_out, report.sources_alike, report.targets_alike) == (6_123, 0, 0)
