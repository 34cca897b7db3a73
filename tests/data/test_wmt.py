from __future__ import annotations

import pytest

from softtargets.data import load_pairs, status, verify
from softtargets.exceptions import DataError


@pytest.mark.parametrize("folder", ["wmt14", "wmt"])
def test_each_part_goes_by_its_file(tmp_path, folder):
    (tmp_path / folder).mkdir()
    for stem in ("train", "newstest2012", "newstest2013", "newstest2014"):
        for language in ("en", "de"):
            (tmp_path / folder / f"{stem}.{language}").write_text(f"{stem} {language}\n")
    for part, stem in (("train", "train"), ("validation", "newstest2013"), ("test", "newstest2014")):
        assert list(load_pairs("wmt14", "en", "de", part, tmp_path)) == [(f"{stem} en", f"{stem} de")]
    assert list(load_pairs("wmt14", "de", "en", "newstest2012", tmp_path)) == [
        ("newstest2012 de", "newstest2012 en")
    ]
    assert status("wmt14", tmp_path) == "ready"


def test_a_newstest_of_one_direction_is_not_turned(tmp_path):
    (tmp_path / "wmt").mkdir()
    (tmp_path / "wmt/newstest2021.en-de.src.en").write_text("a\n")
    (tmp_path / "wmt/newstest2021.en-de.ref.A.de").write_text("b\n")
    assert list(load_pairs("wmt14", "en", "de", "newstest2021", tmp_path)) == [("a", "b")]
    with pytest.raises(DataError, match=r"missing 'newstest2021\.de' and 'newstest2021\.en'"):
        load_pairs("wmt14", "de", "en", "newstest2021", tmp_path)


def test_what_is_not_there_is_said(tmp_path):
    with pytest.raises(DataError, match=r"no part 'newstest14' \(did you mean 'newstest2014'\?\)"):
        load_pairs("wmt14", "en", "de", "newstest14", tmp_path)
    with pytest.raises(DataError, match=r"no language 'fr'"):
        load_pairs("wmt14", "en", "fr", "train", tmp_path)


@pytest.mark.realdata
def test_the_real_newstests_serve_without_training_text(real):
    root = real("wmt/newstest2014.en", "wmt/newstest2021.de-en.src.de")
    assert len(load_pairs("wmt14", "en", "de", "test", root)) == 3_003
    assert len(load_pairs("wmt14", "en", "de", "newstest2021", root)) == 1_002
    assert len(load_pairs("wmt14", "de", "en", "newstest2021", root)) == 1_000
    checked = {check.file.name: check.ok for check in verify("wmt14", root)}
    assert checked["newstest2014.en"]
    assert checked["newstest2014.de"]
