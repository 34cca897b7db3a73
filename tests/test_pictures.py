"""The README's pictures: their words are kept beside them, and what the README says of them is so."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "pictures.py")
pictures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pictures)


@pytest.fixture(scope="module")
def kept():
    return json.loads(pictures.KEPT.read_text(encoding="utf-8"))


def test_every_picture_of_the_readme_is_one_that_the_command_makes(kept):
    readme = pictures.README.read_text(encoding="utf-8")
    assert set(kept) == set(pictures.SIZES)
    assert {path.stem for path in pictures.DOCS.glob("*.png")} == set(kept)
    for name, size in pictures.SIZES.items():
        assert f"docs/{name}.png" in readme
        with Image.open(pictures.DOCS / f"{name}.png") as picture:
            assert picture.size == size


def test_the_readme_counts_the_verdicts_of_the_quickstart(kept):
    assert pictures.sentence(kept) in " ".join(pictures.README.read_text(encoding="utf-8").split())


def test_claims_in_the_picture_are_those_of_the_study(kept):
    from softtargets.studies import STUDIES, Results, find_study

    claims = find_study(STUDIES, "quickstart").claims(Results(()))
    assert [one["statement"] for one in kept["quickstart"]["claims"]] == [one.statement for one in claims]


def test_a_page_is_compared_word_by_word_and_number_by_number(kept):
    page = kept["quickstart"]
    assert pictures.stale(page, page) == []
    other = copy.deepcopy(page)
    other["words"] = page["words"].replace("digits", "letters")
    assert pictures.stale(page, other) == ["other words: digits gone, letters new"]
    other = copy.deepcopy(page)
    other["claims"][0] |= {"verdict": "contradicted"}
    assert "was reproduced and is contradicted" in pictures.stale(page, other)[0]
    other = copy.deepcopy(page)
    other["claims"][0] |= {"shown": "3.04"}
    assert "is now '3.04'" in pictures.stale(page, other)[0]
    other["claims"].pop()
    assert pictures.stale(page, other)[-1] == "other claims"


def test_a_verdict_that_turns_with_the_processor_is_not_stale(kept):
    page = copy.deepcopy(kept["quickstart"])
    page["claims"][0] |= {"verdict": "inconclusive", "p": 0.06}
    other = copy.deepcopy(page)
    other["claims"][0] |= {"verdict": "reproduced", "p": 0.04}
    assert pictures.stale(page, other) == []
    page["claims"][0]["p"], other["claims"][0]["p"] = 0.6, 0.001
    assert pictures.stale(page, other) != []


def test_words_do_not_depend_on_when_and_where_a_page_was_made(tmp_path):
    def page(commit: str, seconds: str, share: str) -> dict:
        made = {"made": f"2026-01-{seconds}", "softtargets": f"0.1.0 ({commit})"}
        results = {
            "provenance": made,
            "claims": [],
            "verdict": {"headline": "Fine", "sentences": [f"ECE {share} %."]},
        }
        (tmp_path / "results.json").write_text(json.dumps(results))
        (tmp_path / "index.html").write_text(
            f"<title>no</title><style>p {{}}</style><p>ECE is {share} % in run {commit}aaaa</p><footer>{made}</footer>"
            f"<p>{made['made']} {made['softtargets']}</p><script>let x = {seconds}</script>"
        )
        return pictures.content(tmp_path)

    one, two = page("d31b08335d86", "10", "14.1"), page("0123456789ab", "11", "14.3")
    assert pictures.stale(one, two) == []
    assert pictures.stale(one, page("0123456789ab", "11", "20.3")) != []
