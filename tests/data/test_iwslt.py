"""IWSLT's text is not here: these are small files in its two layouts."""

from __future__ import annotations

import gzip

import pytest

from softtargets.data import load_pairs, status
from softtargets.exceptions import DataError


def tags(language, lines, *, new=False):
    head = ["<url>http://talk</url>", "<keywords>a, b</keywords>", "<talkid>1</talkid>"]
    if new:
        head = ['<doc docid="1">', "<speaker>S</speaker>", *head, '<reviewer href="x">R</reviewer>']
        head += ['<translator href="y">T</translator>']
    body = [f"<title>{language} title</title>", f"<description>{language}: on it</description>"]
    return (
        "\n".join(
            [*head, *body, *(f" {language} line {i} " for i in range(lines)), *(["</doc>"] if new else [])]
        )
        + "\n"
    )


def xml(language, name, segments):
    segs = "".join(f'<seg id="{i + 1}"> {name} {language} {i} &amp; more </seg>\n' for i in range(segments))
    return f'<?xml version="1.0"?>\n<mteval>\n<doc docid="1">\n<title>no</title>\n{segs}</doc>\n</mteval>\n'


def publish(root, year, direction, sets, lines=44):
    folder = root / f"iwslt{year}" / direction
    folder.mkdir(parents=True)
    for language in direction.split("-"):
        text = tags(language, lines, new=year == "17")
        (folder / f"train.tags.{direction}.{language}").write_text(text, encoding="utf-8")
        for name in sets:
            path = folder / f"IWSLT{year}.{name}.{direction}.{language}.xml"
            path.write_text(xml(language, name, 2), encoding="utf-8")
    return folder


SETS_14 = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
SETS_17 = ("TED.dev2010", *(f"TED.tst{year}" for year in range(2010, 2016)))


def test_published_2014_files_are_split_as_fairseq_does(tmp_path):
    publish(tmp_path, "14", "de-en", SETS_14)
    lines = [("de title", "en title"), ("de: on it", "en: on it")]
    lines += [(f"de line {i}", f"en line {i}") for i in range(44)]
    assert list(load_pairs("iwslt14", "de", "en", "validation", tmp_path)) == [lines[22], lines[45]]
    rest = [line for i, line in enumerate(lines) if i not in (22, 45)]
    assert list(load_pairs("iwslt14", "de", "en", "train", tmp_path)) == rest
    assert list(load_pairs("iwslt14", "en", "de", "train", tmp_path)) == [(b, a) for a, b in rest]
    test = [(f"{name} de {i} & more", f"{name} en {i} & more") for name in SETS_14 for i in range(2)]
    assert list(load_pairs("iwslt14", "de", "en", "test", tmp_path)) == test
    assert list(load_pairs("iwslt14", "de", "en", "tst2011", tmp_path)) == test[6:8]
    assert status("iwslt14", tmp_path) == "ready"


def test_a_direction_of_its_own_is_preferred_and_french_has_no_dev2012(tmp_path):
    publish(tmp_path, "14", "fr-en", [name for name in SETS_14 if "X" not in name])
    own = publish(tmp_path, "14", "en-fr", [name for name in SETS_14 if "X" not in name], lines=1)
    assert len(load_pairs("iwslt14", "fr", "en", "train", tmp_path)) == 44
    assert len(load_pairs("iwslt14", "en", "fr", "train", tmp_path)) == 3
    assert len(load_pairs("iwslt14", "en", "fr", "test", tmp_path)) == 8
    # Sides of different directions are never put together where one direction has both.
    (own / "IWSLT14.TED.tst2010.en-fr.en.xml").write_text(xml("en", "own", 3))
    with pytest.raises(DataError, match=r"en-fr\.en\.xml has 3 sentences but .*en-fr\.fr\.xml has 2"):
        load_pairs("iwslt14", "en", "fr", "tst2010", tmp_path)


@pytest.mark.parametrize("folder", ["iwslt14", "iwslt14.tokenized.de-en", "iwslt14/iwslt14.tokenized.de-en"])
def test_files_that_fairseq_prepared_are_taken_as_they_are_without_bpe(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    for part in ("train", "valid", "test"):
        (tmp_path / folder / f"{part}.de").write_text(f"{part} sch@@ ön , nicht ?\nzwei@@\n")
        (tmp_path / folder / f"{part}.en.gz").write_bytes(
            gzip.compress(f"{part} nice\nan e@@ mail a@b\n".encode())
        )
    for part, stem in (("train", "train"), ("validation", "valid"), ("test", "test")):
        expected = [(f"{stem} schön , nicht ?", f"{stem} nice"), ("zwei", "an email a@b")]
        assert list(load_pairs("iwslt14", "de", "en", part, tmp_path)) == expected
        assert list(load_pairs("iwslt14", "en", "de", part, tmp_path)) == [(b, a) for a, b in expected]


def test_the_plain_english_text_in_the_archive_is_not_taken_for_prepared_files(tmp_path):
    folder = publish(tmp_path, "14", "de-en", SETS_14)
    (folder / "train.en").write_text("monolingual\n")
    assert len(load_pairs("iwslt14", "de", "en", "train", tmp_path)) == 44


def test_2017_in_several_languages(tmp_path):
    for direction in ("de-en", "fr-en"):
        publish(tmp_path, "17", direction, SETS_17, lines=5)
    for part, count in (("train", 7), ("validation", 14), ("tst2012", 2)):
        one, other = (load_pairs("iwslt17", language, "en", part, tmp_path) for language in ("de", "fr"))
        assert len(one) == len(other) == count
        assert load_pairs("iwslt17", "de+fr", "en", part, tmp_path).sources == one.sources + other.sources
    train = load_pairs("iwslt17", "de", "en", "train", tmp_path)
    assert list(train)[:3] == [
        ("de title", "en title"),
        ("de: on it", "en: on it"),
        ("de line 0", "en line 0"),
    ]
    # tst2017 is published as the source side of each direction.
    (tmp_path / "iwslt17" / "en-de").mkdir()
    for direction, language in (("de-en", "de"), ("en-de", "en")):
        path = tmp_path / "iwslt17" / direction / f"IWSLT17.TED.tst2017.{direction}.{language}.xml"
        path.write_text(xml(language, "new", 3))
    assert next(iter(load_pairs("iwslt17", "de", "en", "test", tmp_path))) == (
        "new de 0 & more",
        "new en 0 & more",
    )
    assert len(load_pairs("iwslt17", "en", "de", "test", tmp_path)) == 3


def test_what_is_missing_or_misaligned_is_named(tmp_path):
    with pytest.raises(DataError, match=r"IWSLT'14 is missing 'train\.tags\.de-en\.de' and .*wit3\.fbk\.eu"):
        load_pairs("iwslt14", "de", "en", "train", tmp_path)
    with pytest.raises(DataError, match=r"no de-fr pairs"):
        load_pairs("iwslt17", "de", "fr", "train", tmp_path)
    with pytest.raises(
        DataError, match=r"no part 'tst2015'.*; there are train, validation, test, dev2010, dev2012"
    ):
        load_pairs("iwslt14", "de", "en", "tst2015", tmp_path)
    folder = publish(tmp_path, "14", "de-en", SETS_14)
    with open(folder / "train.tags.de-en.en", "a") as file:
        file.write("one more\n")
    with pytest.raises(DataError, match=r"de-en\.de has 46 sentences but .*de-en\.en has 47; aligned"):
        load_pairs("iwslt14", "de", "en", "train", tmp_path)
