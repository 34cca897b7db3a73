"""Pages that are no studies: another kind, a verdict on top, code, and no runs."""

from __future__ import annotations

import json
import re

import pytest

from report import made_up
from softtargets.report import Code, Column, Section, Table, Verdict, write_page

EVIL = '<script>alert("x")</script>'


def written(tmp_path, **changes) -> str:
    return write_page(made_up.page(figures=(), **changes), tmp_path).read_text(encoding="utf-8")


def test_the_brand_line_says_which_command_made_the_page(tmp_path):
    html = written(tmp_path)
    assert '<p class="brand">softtargets <span>calibrate</span> predictions.npz</p>' in html
    assert "study" not in html.split("<style>")[0]


def test_without_claims_and_runs_nothing_speaks_of_them(tmp_path):
    html = written(tmp_path)
    assert "claims" not in re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    assert "<details>" not in html
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"index.html", "results.json"}
    results = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert results["kind"] == "calibrate"
    assert results["name"] == "predictions.npz"
    assert not {"study", "rule", "claims", "verdict", "widgets"} & set(results)


def test_the_long_table_is_folded_away_under_its_own_title(tmp_path):
    rows = tuple({"name": f"class {i}"} for i in range(1234))
    html = written(tmp_path, runs=Table("classes", "All classes", (Column("name", "class"),), rows))
    assert "<summary>All classes (1,234)</summary>" in html
    assert (tmp_path / "tables" / "classes.csv").read_text().count("\n") == 1235


@pytest.mark.parametrize("tone", ["good", "care", "bad"])
def test_a_verdict_stands_above_everything_else(tone, tmp_path):
    verdict = Verdict(tone, "Overconfident", ("First sentence.", "Second sentence."))
    html = written(tmp_path, verdict=verdict, warnings=["beware"])
    places = [
        html.index(text)
        for text in (f'class="verdict {tone}"', "Overconfident</h2>", "First", "Second", "beware", "Figures")
    ]
    assert places == sorted(places)
    assert json.loads((tmp_path / "results.json").read_text())["verdict"] == {
        "tone": tone,
        "headline": "Overconfident",
        "sentences": ["First sentence.", "Second sentence."],
    }


def test_a_tone_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="one of good, care, bad, plain; got 'ugly'"):
        Verdict("ugly", "It is so")


def test_code_is_shown_as_it_is_and_has_no_files(tmp_path):
    code = Code("if a < b:\n    x = '&'", title="What to change")
    html = written(tmp_path, sections=(Section("s", (), (code,)),))
    assert "<b>What to change</b>" in html
    assert '<pre><code class="language-python">if a &lt; b:\n    x = &#39;&amp;&#39;</code></pre>' in html
    assert not (tmp_path / "tables").exists()


def test_text_of_verdicts_code_and_kinds_is_escaped(tmp_path):
    html = written(
        tmp_path,
        kind=EVIL,
        verdict=Verdict("bad", EVIL, (EVIL,)),
        sections=(Section("s", (), (Code(EVIL, language=EVIL, title=EVIL),)),),
        runs=Table("runs", EVIL, (), ()),
    )
    assert "<script" not in html
    assert html.count("&lt;script&gt;") == 8  # the long table's title is also its caption
