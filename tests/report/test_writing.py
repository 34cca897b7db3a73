from __future__ import annotations

import csv
import html
import json
import math
import re

import pytest

from softtargets.claims import COMPUTED_RULE, RULE, Claim, ComputedClaim, Published, Region, Sample, zone
from softtargets.report import Column, Figure, Page, Section, Table, write_page

EVIL = '<script>alert("x")</script>'


def draw_with(title: str):
    def draw():
        from matplotlib.figure import Figure as Drawing

        from softtargets.report.drawing import plain

        drawing = Drawing(figsize=(2, 1))
        axes = drawing.subplots()
        axes.plot([0, 1], [0, 1], label=plain(title))
        axes.set_title(plain(title))
        return drawing

    return draw


def page(text: str = "plain", **changes) -> Page:
    table = Table(
        "numbers",
        text,
        (Column("name", text), Column("value", "value"), Column("share", "share", percent=True)),
        (
            {"name": text, "value": Sample.of([1.0, 2.0, 3.0]), "share": Sample.of([0.5, 0.25])},
            {"name": "alone", "value": Sample.of([4.0]), "share": 0.125},
        ),
        text,
    )
    figure = Figure("picture", text, draw_with(text), table, text, text)
    claim = Claim(
        text, (Published(text, text, text, 0.5),), text, Sample.of([0.1, 0.2, 0.3]), Region(low=0), text
    )
    parts = {
        "name": text,
        "title": text,
        "lead": text,
        "sections": (Section(text, (text,), (figure, table)),),
        "claims": (claim,),
        "command": text,
        "provenance": {text: text},
        "runs": Table("runs", text, (Column("run", text),), ({"run": text},)),
        "warnings": [text],
    }
    return Page(**(parts | changes))


def test_a_page_is_one_file_that_asks_the_network_for_nothing(tmp_path):
    html = write_page(page(), tmp_path).read_text()
    assert "http://" not in html.replace("http://www.w3.org", "")
    assert "https://" not in html
    assert re.findall(r'src="(?!data:)', html) == []
    assert {p.name for p in tmp_path.rglob("*") if p.is_file()} == {
        "index.html",
        "results.json",
        "picture.png",
        "picture.svg",
        "numbers.csv",
        "runs.csv",
    }


def test_text_from_runs_and_classes_is_escaped_everywhere(tmp_path):
    html = write_page(page(EVIL), tmp_path).read_text()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 15
    assert "<script" not in (tmp_path / "figures" / "picture.svg").read_text()


@pytest.mark.parametrize("name", ["$x$", "a$b", r"\frac", "50 % & more", "<b>", "字", "a_{1}^2"])
def test_names_that_look_like_formulas_are_drawn_as_they_are(name, tmp_path):
    write_page(page(name), tmp_path)
    assert (tmp_path / "figures" / "picture.png").stat().st_size > 1000


def test_the_same_numbers_give_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        write_page(page(), tmp_path / name)
    for path in sorted((tmp_path / "one").rglob("*.*")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path


def test_csv_spells_samples_out(tmp_path):
    write_page(page(), tmp_path)
    rows = list(csv.DictReader((tmp_path / "tables" / "numbers.csv").open()))
    assert rows[0]["value_mean"] == "2.0"
    assert rows[0]["value_sd"] == "1.0"
    assert rows[0]["value_n"] == "3"
    assert rows[1]["share"] == "0.125"


def test_json_is_strict_and_complete(tmp_path):
    claim = Claim("c", (), "q", Sample.of([1.0]), Region(low=0))
    write_page(page(claims=(claim,)), tmp_path)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    results = json.loads((tmp_path / "results.json").read_text(), parse_constant=refuse)
    assert results["claims"][0]["verdict"] == "not run yet"
    assert results["claims"][0]["reason"] == "1 of the 3 seeds that decide"
    assert results["claims"][0]["ends"] == [0, None]
    assert results["claims"][0]["measured"]["values"] == [1.0]
    assert results["claims"][0]["interval"] == [None, None]
    assert results["tables"]["numbers"][0]["value"]["mean"] == 2.0


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        (Column("x", "x"), 0.12345, "0.123"),
        (Column("x", "x", percent=True), 0.9123, "91.2 %"),
        (Column("x", "x", percent=True), Sample.of([0.91, 0.93]), "92.0 ± 1.4 %"),
        (Column("x", "x", digits=2), Sample.of([1.0]), "1.00"),
        (Column("x", "x"), 12345, "12,345"),
        (Column("x", "x"), None, "–"),
        (Column("x", "x"), math.nan, "–"),
        (Column("x", "x", percent=True), Sample.of([]), "–"),
        (Column("x", "x"), math.inf, "∞"),
        (Column("x", "x", percent=True), -math.inf, "−∞ %"),
        (Column("x", "x"), "text", "text"),
        (Column("x", "x"), True, "True"),
    ],
)
def test_cells_are_written_for_people(column, value, shown):
    assert column.show(value) == shown


def test_a_page_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = write_page(page("old"), tmp_path)
    before = path.read_text()

    def broken():
        raise RuntimeError("cannot draw")

    figure = Figure("picture", "t", broken, Table("numbers", "t", (), ()))
    with pytest.raises(RuntimeError, match="cannot draw"):
        write_page(page("new", sections=(Section("s", (), (figure,)),)), tmp_path)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("region", "signed"),
    [
        (Region(low=0), True),
        (Region(high=0), True),
        (Region(low=-0.01), True),
        (Region(low=-1, high=1), True),
        (Region(high=0.68), False),  # an error that must be small is no difference
        (Region(low=1), False),
        (Region(low=0.5, high=2), False),
    ],
    ids=str,
)
def test_differences_carry_their_sign(region, signed, tmp_path):
    claim = Claim("it is so", (), "something", Sample.of([0.25, 0.25, 0.25]), region, "shown")
    text = write_page(page(claims=(claim,)), tmp_path).read_text(encoding="utf-8")
    assert ("+0.250" in text) == signed
    assert "0.250" in text


def exact(*values: float) -> Claim:
    return ComputedClaim("it is so", (), "a distance", Sample.of(values), Region(high=1), digits=4)


def said_of_claims(path) -> tuple[str, dict]:
    table = path.read_text(encoding="utf-8").split('<section id="claim-details">')[1].split("</section>")[0]
    results = json.loads((path.parent / "results.json").read_text(encoding="utf-8"))
    return re.sub(r"\s+", " ", html.unescape(re.sub("<.*?>", "", table))), results


def test_what_is_computed_speaks_of_no_seeds_and_no_interval(tmp_path):
    text, results = said_of_claims(write_page(page(claims=(exact(0.25),)), tmp_path))
    assert "a distance: 0.25, computed exactly" in text
    assert "% interval" not in text.replace("Intervals", "")
    assert "±" not in text
    assert RULE not in text
    assert COMPUTED_RULE in text
    assert results["rule"] == COMPUTED_RULE
    assert (results["claims"][0]["computed"], results["claims"][0]["interval"]) == (True, None)


def test_of_several_computed_values_the_ends_are_shown(tmp_path):
    text, _ = said_of_claims(write_page(page(claims=(exact(0.25, 0.125, 0.5),)), tmp_path))
    assert "a distance: 0.125 to 0.5, computed exactly" in text


def test_both_rules_are_stated_where_both_kinds_of_claims_are(tmp_path):
    measured = Claim("it is so", (), "an accuracy", Sample.of([0.5, 0.5, 0.5]), Region(high=1))
    text, results = said_of_claims(write_page(page(claims=(measured, exact(0.25))), tmp_path / "both"))
    assert f"{RULE} {COMPUTED_RULE}" in text
    assert "an accuracy: 0.500, standard deviation 0.000 over 3 seeds, 95 % interval 0.500 to 0.500" in text
    assert [claim["computed"] for claim in results["claims"]] == [False, True]
    text, results = said_of_claims(write_page(page(claims=(measured,)), tmp_path / "one"))
    assert RULE in text
    assert COMPUTED_RULE not in text
    assert results["rule"] == RULE


def test_one_seed_is_one_seed(tmp_path):
    alone = Claim("it is so", (), "an accuracy", Sample.of([0.5]), Region(high=1))
    text, _ = said_of_claims(write_page(page(claims=(alone,)), tmp_path))
    assert "an accuracy: 0.500 (1 seed, so no interval)" in text


def test_numbers_of_claims_read_well(tmp_path):
    none = Claim("a", (), "a gain", Sample(()), Region(low=-1.0), unit="points")
    zero = Claim(
        "b", (), "a loss", Sample.of([-0.001, 0.001, -0.001]), Region(low=0.0), unit="points", digits=2
    )
    ends = Claim("c", (), "an error", Sample.of([1.0, 1.0, 1.0]), Region(0.72, 1.1), unit="%", digits=2)
    text, _ = said_of_claims(write_page(page(claims=(none, zero, ends)), tmp_path))
    for said in ("a gain: not run yet", "above −1 point", "0.00 points, standard deviation"):
        assert said in text
    for unsaid in ("1 points", "−0.00"):
        assert unsaid not in text
    assert "between 0.72 and 1.10 %" in text


def test_both_axes_of_a_claim_are_shown_with_what_was_fixed_beforehand(tmp_path):
    claim = Claim(
        "it gains",
        (),
        "gain",
        Sample.of([0.9, 1.0, 1.1, 5.0], examples=0.0004),
        Region(low=0),
        seeds=3,
        zone=zone(0.25),
        printed=2.0,
        margin=0.5,
    )
    text, results = said_of_claims(write_page(page(claims=(claim,)), tmp_path))
    assert "gain: +1.000, standard deviation 0.100 over 3 seeds" in text
    assert "95 % interval +0.749 to +1.251 over seeds and test examples" in text
    assert "mean of the other seeds (1), which decide nothing: +5.000" in text
    for said in ("above 0", "no effect: between −0.25 and 0.25", "printed: +2.000 ± 0.500"):
        assert said in text
    assert "printed: +2.000 ± 0.500; its number: contradicted" in text
    (found,) = results["claims"]
    assert (found["verdict"], found["printed"]) == (
        "reproduced",
        {"value": 2.0, "margin": 0.5, "verdict": "contradicted", "whole_claim": False},
    )
    assert (found["ends"], found["zone"], found["seeds"]) == ([0, None], [-0.25, 0.25], 3)
    assert found["measured"]["n"] == 3
    assert found["other_seeds"]["values"] == [5.0]
    assert found["over_examples"] is True
    assert found["p"]["reproduced"]["alone"] < 0.01


def test_of_a_claim_about_every_cell_the_worst_is_named_and_all_are_in_the_file(tmp_path):
    cells = {"T = 1": Sample.of([1.0, 1.1, 1.2]), "T = 4": Sample.of([-0.5, -0.6, -0.7])}
    claim = Claim.every("all gain", (), "gain", cells, Region(low=0))
    text, results = said_of_claims(write_page(page(claims=(claim,)), tmp_path))
    assert "gain; of 2, T = 4 speaks most against it: −0.600" in text
    (found,) = results["claims"]
    assert (found["verdict"], found["worst"]) == ("contradicted", "T = 4")
    assert found["cells"]["T = 1"]["n"] == 3


def test_verdicts_of_a_page_are_those_of_all_its_claims_together(tmp_path):
    slight = Claim("slight", (), "gain", Sample.of([0.5, 1.0, 1.5]), Region(low=0))
    nothing = Claim("nothing", (), "gain", Sample.of([-1.0, 0.1, 1.0]), Region(low=0))
    path = write_page(page(claims=(slight, nothing, nothing)), tmp_path)
    text, results = said_of_claims(path)
    assert slight.verdict == "reproduced"
    assert [one["verdict"] for one in results["claims"]] == ["inconclusive"] * 3
    assert "but not among all claims of this page" in text
    assert "All 3 claims are inconclusive." in path.read_text(encoding="utf-8")


def test_a_claim_about_a_number_alone_says_it_once(tmp_path):
    claim = Claim("it is 1", (), "x", Sample.of([0.9, 1.0, 1.1]), Region(0.5, 1.5), printed=1.0, margin=0.5)
    text, results = said_of_claims(write_page(page(claims=(claim,)), tmp_path))
    assert "between 0.5 and 1.5" in text
    assert "its number" not in text
    assert results["claims"][0]["printed"]["whole_claim"] is True
