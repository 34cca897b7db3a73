"""The atlas on disk: its page, its picture, its data, and the documents that say what it says."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from softtargets.atlas import gather, headline, stale, write_atlas
from softtargets.atlas.documents import filled
from softtargets.atlas.picture import picture
from softtargets.exceptions import StudyError

from .made_up import EVIL, recorded, study

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def results(tmp_path, monkeypatch):
    """A directory with one study that was run, one that was not, and one at a small size."""
    studies = (study(), study("waits"), study("tiny"))
    monkeypatch.setattr("softtargets.atlas.entries.STUDIES", studies)
    monkeypatch.setattr("softtargets.atlas.writing.gather", lambda where, out: gather(where, studies, out))
    recorded(tmp_path / "results" / "s", studies[0])
    recorded(tmp_path / "results" / "tiny", studies[2], size="small")
    return tmp_path / "results"


@pytest.fixture
def atlas(results):
    return gather(results, (study(), study("waits"), study("tiny")))


def test_every_claim_is_on_the_page_once_with_its_verdict_and_link(results, atlas):
    page = write_atlas(results).read_text(encoding="utf-8")
    for entry in atlas.entries:
        assert page.count(f'<tr id="{entry.id}"') == 1
        assert entry.link in page
    assert page.count("<tr id=") == len(atlas.entries) == 9
    row = page[page.index('<tr id="s-claim-2"') :].partition("</tr>")[0]
    for said in (
        "It agrees.",
        "contradicted",
        "must be above 1",
        "no effect between −0.2 and 0.2",
        "figure 5",
    ):
        assert said in row
    assert "<details open>" in row  # a claim that fails shows what was tried
    row = page[page.index('<tr id="s-claim-1"') :].partition("</tr>")[0]
    assert "<details>" in row
    for said in (
        "86.8 ± 0.2",
        "85.01",
        "+0.50, 95\N{NO-BREAK SPACE}% interval +0.25 to +0.75, 3 seeds",
        "its number:",
    ):
        assert said in row
    assert "no study yet" in page
    assert "Transformer on WMT en-de" in page
    keys = page[page.index('<ul class="keys">') :].partition("</ul>")[0]  # of the charts beneath the numbers
    for said in ("counts as reproduced", "too small to count", "95 % interval", "printed by the paper"):
        assert said in keys


def test_what_is_small_is_not_counted_with_the_papers_claims(atlas):
    assert headline(atlas) == (
        "Of 3 claims that were tested, 1 is reproduced, 1 is contradicted and 1 is inconclusive. "
        "3 claims are not run yet."
    )


def test_what_others_wrote_is_never_markup_and_only_our_script_may_run(results):
    page = write_atlas(results).read_text(encoding="utf-8")
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)" in page
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    assert (
        policy
        == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    assert page.count("<script") == 1
    assert not re.search(r'<(img|link|iframe)[^>]*(src|href)="(?!data:)', page)
    assert " onclick" not in page


def test_the_same_results_give_the_same_bytes(results):
    write_atlas(results)
    first = {path.name: path.read_bytes() for path in results.iterdir() if path.is_file()}
    write_atlas(results)
    assert first == {path.name: path.read_bytes() for path in results.iterdir() if path.is_file()}
    assert set(first) == {"index.html", "atlas.svg", "atlas-dark.svg", "atlas.json"}


def test_stale_files_are_named(results):
    assert [Path(one.split(" ")[0]).name for one in stale(results)] == [
        "index.html",
        "atlas.svg",
        "atlas-dark.svg",
        "atlas.json",
    ]
    write_atlas(results)
    assert stale(results) == []
    recorded(results / "waits", study("waits"))
    assert len(stale(results)) == 4
    write_atlas(results)
    (results / "atlas.svg").write_text("another")
    assert stale(results) == [f"{results / 'atlas.svg'} is not what the results give"]


def test_the_picture_has_a_cell_for_each_claim_at_the_papers_size(atlas):
    light, dark = picture(atlas), picture(atlas, dark=True)
    for drawn in (light, dark):
        root = ElementTree.fromstring(drawn)
        assert root.find(f"{SVG}title").text == headline(atlas)
        told = [one.find(f"{SVG}title") for one in root.iter(f"{SVG}g")]
        cells = [one.text for one in told if one is not None]
        assert sorted(cells) == sorted(
            f"{one.verdict}: {one.judged.claim.statement}" for one in atlas.entries if not one.origin.small
        )
        width, height = float(root.get("width")), float(root.get("height"))
        for box in root.iter(f"{SVG}rect"):
            right = float(box.get("x", 0)) + float(box.get("width"))
            below = float(box.get("y", 0)) + float(box.get("height"))
            assert right <= width
            assert below <= height
    assert light != dark


def test_many_claims_go_on_in_the_next_line_of_a_bar(tmp_path):
    from .made_up import claims

    many = study(claims=lambda found: claims(found)[:1] * 100)
    root = ElementTree.fromstring(picture(gather(tmp_path, [many])))
    tops = {box.get("y") for box in root.iter(f"{SVG}rect") if box.get("y")}
    assert len(tops) == 1 + 3  # the legend, and three lines of cells
    assert max(float(box.get("x")) + 13 for box in root.iter(f"{SVG}rect") if box.get("x")) < 840


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((), "None of 3 claims has been run yet."),
        (
            (0.4, 0.5, 0.6),
            "Of 3 claims that were tested, 1 is reproduced, 1 is contradicted and 1 is inconclusive.",
        ),
        ((2.0, 2.1, 2.2), "Of 3 claims that were tested, 3 are reproduced."),
        (
            (0.0, 0.01, -0.01),
            "Of 3 claims that were tested, 1 is contradicted, 1 shows no effect and 1 is inconclusive.",
        ),
    ],
)
def test_the_headline_counts(tmp_path, values, said):
    chosen = study()
    if values:
        recorded(tmp_path / "s", chosen, values)
    assert headline(gather(tmp_path, [chosen])) == said


def test_data_has_all_that_the_page_has(results, atlas):
    write_atlas(results)
    data = json.loads((results / "atlas.json").read_text(encoding="utf-8"))
    assert [one["id"] for one in data["claims"]] == [one.id for one in atlas.entries]
    first = data["claims"][0]
    assert (first["ours"], first["n"], first["seeds"], first["verdict"]) == (
        pytest.approx(0.5),
        3,
        3,
        "reproduced",
    )
    assert first["interval"] == pytest.approx([0.2516, 0.7484], abs=1e-4)
    assert (first["results"], first["link"]) == ("s", "s/index.html#claim-1")
    studies = {one["study"]: one for one in data["studies"]}
    assert (studies["waits"]["runs"], studies["waits"]["wanted"], studies["tiny"]["small"]) == (0, 3, True)
    assert {"paper", "name", "why_not"} <= data["exhibits"][0].keys()
    assert data["without_a_claim"]


def test_documents_say_what_the_atlas_says_between_their_marks(results, atlas):
    above, below = results.parent / "README.md", results / "README.md"
    marks = "<!-- atlas {0}: written by make atlas --><!-- end of atlas {0} -->"
    above.write_text("# Mine\n\n" + marks.format("summary") + "\n\nthe rest\n")
    below.write_text(marks.format("studies") + "\n")
    assert {f"{above} is not what the results give", f"{below} is not what the results give"} <= set(
        stale(results)
    )
    write_atlas(results)
    said = above.read_text()
    assert said.startswith("# Mine\n\n<!-- atlas summary")
    assert said.endswith("<!-- end of atlas summary -->\n\nthe rest\n")
    assert headline(atlas) in said
    assert 'srcset="results/atlas-dark.svg"' in said
    assert 'src="results/atlas.svg"' in said
    table = below.read_text()
    assert "| [s](s/index.html) | full | 3 runs | NVIDIA H200 | of 3: 1 reproduced" in table
    assert "Yes \\| it does." in table
    assert "Not run yet: waits." in table
    assert stale(results) == []
    above.write_text("no marks")
    write_atlas(results)
    assert above.read_text() == "no marks"


def test_a_document_with_half_of_its_marks_is_refused():
    with pytest.raises(
        StudyError, match=r"README.md has only one of the two marks .*; put the other one back"
    ):
        filled("<!-- end of atlas summary -->", {"summary": "x"}, "README.md")


def test_it_may_be_written_elsewhere(results, tmp_path):
    page = write_atlas(results, tmp_path / "elsewhere" / "atlas")
    assert page == tmp_path / "elsewhere" / "atlas" / "index.html"
    assert not (results / "index.html").exists()
    assert 'href="../../results/s/index.html#claim-1"' in page.read_text(encoding="utf-8")
