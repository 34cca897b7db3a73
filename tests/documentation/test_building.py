"""Formulas, docstrings, targets and cards as the site shows them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml

from docs.building import cards, instruments
from docs.building.docstrings import as_markdown
from docs.building.formulas import with_formulas
from docs.building.hooks import _relinked, on_files, on_page_content, on_page_markdown, with_way_back
from docs.building.links import broken
from docs.building.targets import EXAMPLES, example, picture, pull
from documentation.blocks import ROOT
from softtargets.calibration import expected_calibration_error, measure_calibration, temperature_scaling
from softtargets.errors import error_overlap
from softtargets.geometry import cluster_spread
from softtargets.losses import REGULARISERS


def test_formulas_are_drawn_and_code_is_left_alone() -> None:
    page = "a $x^2$ and `$y$`\n\n```\n$z$\n```\n\n$$\\alpha$$\n"
    made = with_formulas(page)
    assert made.count("<math") == 2
    assert "`$y$`" in made
    assert "\n$z$\n" in made
    assert "5 $ or 6 $" in with_formulas("5 $ or 6 $")


def test_formulas_side_by_side_may_stand_below_each_other() -> None:
    made = with_formulas(r"$$t = q, \qquad L = \sum_k t_k, \quad \text{and } k$$")
    assert made.count("<math") == made.count("</math>") == 3
    assert made.count('<div class="formula">') == 1


@pytest.mark.parametrize(
    ("place", "links"),
    [
        ("results/index.html", ["../index.html"]),
        ("results/quickstart/index.html", ["../../index.html", "../index.html"]),
    ],
)
def test_pages_of_results_lead_back_to_the_site(place: str, links: list[str]) -> None:
    page = (ROOT / place).read_text(encoding="utf-8")
    made = with_way_back(page, place)
    brand = made.split('<p class="brand">')[1].split("</p>")[0]
    assert re.findall(r'href="([^"]+)"', brand) == links
    assert "href" not in page.split('<p class="brand">')[1].split("</p>")[0]
    with pytest.raises(ValueError, match="lead back"):
        with_way_back(made, place)


def test_links_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    """In pages that MkDocs takes as they are too: those of results have links to files of their own."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/table.csv").write_text("1")
    (tmp_path / "index.html").write_text(
        '<h2 id="here">x</h2><a href="#here">1</a><a href="a/page.html#there">2</a>'
    )
    page = (
        '<p id="there"><a href="../index.html#here">1</a><a href="table.csv">2</a><a href="https://a.b/c">3</a>'
        '<a href="#state=1">4</a><img src="data:,">'
    )
    (tmp_path / "a/page.html").write_text(page)
    assert broken(tmp_path) == []
    lost = '<a href="tables/x.csv">1</a><a href="..">2</a><a href="../index.html#gone">3</a><img src="y.svg">'
    (tmp_path / "a/page.html").write_text(page + lost)
    assert broken(tmp_path) == [
        "a/page.html: tables/x.csv is not there",
        "a/page.html: .. is not there",
        "a/page.html: ../index.html#gone has no such place",
        "a/page.html: y.svg is not there",
    ]


def test_files_that_pages_of_results_offer_are_in_the_site(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("docs.building.hooks.executed", lambda path: ("", {}))
    monkeypatch.setattr("docs.building.hooks.instruments.NAMES", ())
    config = pytest.importorskip("mkdocs.config", reason="needs mkdocs").load_config(str(ROOT / "mkdocs.yml"))
    monkeypatch.setattr(config.plugins, "_current_plugin", "hooks", raising=False)  # as while a site is built
    from mkdocs.structure.files import Files

    places = {file.src_uri for file in on_files(Files([]), config)}
    for page in sorted((ROOT / "results").rglob("*.html")):
        for to in re.findall(r'href="([^"#:]+)"', page.read_text(encoding="utf-8")):
            if (there := (page.parent / to).resolve()).is_file():
                assert there.relative_to(ROOT.resolve()).as_posix() in places, (page, to)


def test_on_a_phone_the_examples_of_a_card_stand_below_each_other() -> None:
    def shape(drawn: bytes) -> tuple[float, float]:
        width, height = re.findall(rb'(?:width|height)="([\d.]+)pt"', drawn)[:2]
        return float(width), float(height)

    (width, height), (wide, low) = shape(picture("labo", narrow=True)), shape(picture("labo"))
    assert width < 320 < height
    assert low < 200 < 500 < wide
    page = SimpleNamespace(meta={}, file=SimpleNamespace(src_uri="methods/labo.md"))
    made = on_page_markdown("{{ picture }}", page, None, None)
    assert 'srcset="labo-target-narrow.svg"' in made
    assert 'src="labo-target.svg"' in made


def test_a_prime_is_no_exponent() -> None:
    made = with_formulas("$p(T')$")
    assert "<msup>" not in made
    assert "&#x02032;" in made


def test_prose_in_broad_tables_keeps_some_width() -> None:
    broad, narrow = (
        "<tr>" + "<td>1</td>" * count + "<td>" + "words " * 20 + "</td></tr>\n" for count in (3, 1)
    )
    made = on_page_content(f"<table>{broad}</table><table>{narrow * 4}</table>", None, None, None)
    assert made.count('<td class="prose">words') == 1
    assert made.count("<td>1</td>") == 7
    assert made.endswith(f"{narrow * 4}</table>")  # rows of two cells, however many follow each other
    for cell in ("td", "th"):
        names = f"<{cell}><code>results.json</code> a.b</{cell}>"
        cut = f"<{cell}><code>results.<wbr>json</code> a.b</{cell}>"
        assert on_page_content(f"<thead>{names}</thead>", None, None, None) == f"<thead>{cut}</thead>"


def test_a_command_that_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="arg"):
        with_formulas(r"$\arg x$")


def test_examples_in_docstrings_become_code_and_options_lists() -> None:
    made = as_markdown("What it does.\n\nfirst:  one\nsecond: two\n\n.. math:: a = b\n\n>>> f(1)\n2")
    assert "- `first`: one\n- `second`: two" in made
    assert "```pycon\n>>> f(1)\n2\n```" in made
    assert "$$a = b$$" in made


@pytest.mark.parametrize(
    ("place", "link", "there"),
    [
        ("campaign.md", "[x](../results/index.html)", "[x](results/index.html)"),
        ("methods/labo.md", "[x](../noise.md#a)", "[x](../noise.md#a)"),
        ("noise.md", "[x](../ERRATA.md)", "[x](project/errata.md)"),
        ("noise.md", "[`f`](../results/campaign.yaml)", "`f`"),
        ("noise.md", "[x](https://a.b/c)", "[x](https://a.b/c)"),
    ],
)
def test_links_into_the_repository_become_links_of_the_site(place: str, link: str, there: str) -> None:
    assert _relinked(link, place) == there


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_the_picture_of_a_method_is_the_same_each_time(name: str) -> None:
    assert picture(name) == picture(name)


def test_targets_are_what_the_formulas_say() -> None:
    logits = EXAMPLES["uncertain"]
    p = torch.tensor(logits).softmax(-1)
    onehot = torch.eye(5)[0]
    entropy = -(p * p.log()).sum()
    expected = {
        "cross_entropy": onehot,
        "label_smoothing": 0.9 * onehot + 0.02,
        # d(-H)/dz = p (log p + H), times beta
        "confidence_penalty": onehot - 0.1 * p * (p.log() + entropy),
        "max_sup": onehot - 0.1 * (onehot - 0.2),
    }
    for name, target in expected.items():
        torch.testing.assert_close(pull(example(name), logits).target, target, atol=1e-6, rtol=0)


def test_what_studies_found_is_that_of_the_atlas() -> None:
    said = cards.findings({"found_by": "^quickstart"})
    assert said.count("- **") == 8
    assert said.count("](../results/quickstart/index.html#claim-1), a small demonstration; ours ") == 1
    assert cards.findings({}) == "No study asks about it yet."


def test_claims_that_went_badly_are_not_cut_off() -> None:
    said = cards.findings({"found_by": "(?i)smooth"})
    assert said.count("- **") == 8
    assert said.count("- **contradicted**") >= 2
    assert said.count("- **inconclusive**") >= 2
    assert (
        "quickstart" not in said
    )  # where there are claims of whole studies, those of the demonstration wait
    assert re.search(r"^\d+ claims about it were tested: \d+ reproduced, \d+ contradicted", said)
    assert "ours )" not in cards.findings({"found_by": "^chen-theory"})


def test_the_page_on_translation_says_what_the_study_found() -> None:
    """The table of docs/translation.md, computed again from the tables that the study wrote."""
    results = ROOT / "results"
    files = {
        "bleu": "muller-figure-4/tables/trained_multi30k.csv",
        "ece": "muller-figure-3/tables/temperatures_multi30k.csv",
    }
    read = {
        name: list(csv.DictReader((results / path).open(encoding="utf-8"))) for name, path in files.items()
    }
    page = (ROOT / "docs/translation.md").read_text(encoding="utf-8")
    card = (ROOT / "docs/methods/label_smoothing.md").read_text(encoding="utf-8")
    for plain, scaled in zip(read["bleu"], read["ece"], strict=True):
        assert plain["targets"] == scaled["targets"]
        bleu, nll, ece = (float(plain[f"{name}_mean"]) for name in ("bleu", "nll", "ece"))
        least, at = float(scaled["scaled_ece_mean"]), float(scaled["temperature_mean"])
        row = f"| {plain['targets']} | {bleu:.1f} | {nll:.2f} | {ece:.1%} | {least:.1%} at T = {at:.2f} |"
        assert row.replace("%", " %") in page
        assert f"{bleu:.1f}" in card
        assert {plain["bleu_n"], scaled["scaled_ece_n"]} == {"3"}


def test_the_card_of_translations_has_all_claims_about_their_calibration() -> None:
    text = (ROOT / "docs/instruments/token-calibration.md").read_text(encoding="utf-8")
    wanted = re.compile(yaml.safe_load(text.split("---")[1])["found_by"])
    claims = json.loads((ROOT / "results/atlas.json").read_text(encoding="utf-8"))["claims"]
    found = {claim["study"] for claim in claims if wanted.search(f"{claim['study']}: {claim['statement']}")}
    assert {"muller-figure-3", "muller-figure-4", "beyond-token-labo"} <= found
    assert "muller-figure-7" not in found  # of clusters, not of calibration


@pytest.mark.parametrize("name", sorted(REGULARISERS))
def test_a_card_says_when_it_hurts_and_where_its_default_comes_from(name: str) -> None:
    text = (ROOT / f"docs/methods/{name}.md").read_text(encoding="utf-8")
    headings = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert headings == [
        "When it helps",
        "When it hurts",
        "Default, and where it comes from",
        "Code",
        "Cost",
        "What our studies found",
    ]
    meta = yaml.safe_load(text.split("---")[1])
    assert cards.cost(meta)


@pytest.mark.parametrize("name", instruments.NAMES)
def test_the_picture_of_an_instrument_is_the_same_each_time(name: str) -> None:
    first = instruments.picture(name)
    for kept in (instruments.trained, instruments.digits, instruments.letters):
        kept.cache_clear()
    assert instruments.picture(name) == first
    assert first.count(b"<path") > 20


def test_every_card_of_an_instrument_has_its_picture_and_says_what_to_look_for() -> None:
    cards_of = {path.stem: path for path in (ROOT / "docs/instruments").glob("*.md") if path.stem != "index"}
    assert set(cards_of) == set(instruments.NAMES)
    for name, path in cards_of.items():
        text = path.read_text(encoding="utf-8")
        assert text.count("\n{{ picture }}\n") == 1
        made = cards.picture(name, yaml.safe_load(text.split("---")[1]))
        assert f"]({name}-picture.svg)" in made
        assert made.count("<figcaption>") == 1


def test_what_captions_say_of_the_networks_is_so() -> None:
    images, labels = instruments.held_out()
    known, learnt = (part[: instruments.KNOWN] for part in instruments.digits())
    hard, smooth = instruments.both().values()
    found = [
        measure_calibration(one.logits(images), labels, from_logits=True, level=None)
        for one in (hard, smooth)
    ]
    assert found[0].mean_confidence > found[0].accuracy  # overconfident
    assert found[1].mean_confidence < found[1].accuracy
    best = [temperature_scaling(one.logits(images), labels).temperature for one in (hard, smooth)]
    assert best[0] > 1 > best[1]
    parts = [one.brier_decomposition for one in found]
    assert parts[1].reliability > parts[0].reliability
    assert parts[1].score < parts[0].score
    spread = [cluster_spread(one.activations(known), learnt) for one in (hard, smooth)]
    assert spread[1] < spread[0]
    assert all(smooth.collapse[epoch].nc1 < hard.collapse[epoch].nc1 for epoch in hard.collapse)
    assert smooth.collapse[instruments.EPOCHS].nc3 > smooth.collapse[30].nc3
    shared = error_overlap(hard.logits(images), instruments.trained(seed=1).logits(images), labels)
    assert shared.both_wrong > shared.only_first_wrong + shared.only_second_wrong


def test_padding_makes_letters_look_less_calibrated() -> None:
    probabilities, labels, padding = instruments.letters()
    assert 0.1 < padding.mean() < 0.9
    assert probabilities.sum(1) == pytest.approx(1)
    errors = [
        expected_calibration_error(probabilities[counted], labels[counted])
        for counted in (~padding, padding | True)
    ]
    assert errors[1] > errors[0]


def test_views_are_moved_by_a_pixel() -> None:
    image = torch.arange(64.0).reshape(1, 64)
    views = instruments.shifted(image)[0].reshape(9, 8, 8)
    assert torch.equal(views[4], image.reshape(8, 8))
    assert torch.equal(views[0][1:, 1:], views[4][:-1, :-1])
    assert views[0][0].sum() == 0
