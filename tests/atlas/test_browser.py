"""The atlas in a browser: filters, addresses that carry them, and what is there without scripts."""

from __future__ import annotations

import shutil

import pytest

from softtargets.atlas import gather, write_atlas
from watching import wait_until

from .made_up import recorded, study

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium; install Debian's `chromium` package"),
]


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def atlas(tmp_path_factory):
    """Of three studies: one with results, one that waits, one at a small size."""
    results = tmp_path_factory.mktemp("results")
    studies = (study(), study("waits"), study("tiny"))
    recorded(results / "s", studies[0])
    recorded(results / "tiny", studies[2], size="small")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("softtargets.atlas.writing.gather", lambda where, out: gather(where, studies, out))
        return write_atlas(results)


@pytest.fixture
def opened(browser, atlas):
    """Open the page; at the end nothing may have been complained of, and nothing asked of the network."""
    complaints, contexts = [], []

    def show(address: str = "", width: int = 1200, scripts: bool = True, scheme: str = "light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=scripts, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append("a dialog"))
        page.on("request", lambda request: request.url.startswith("file:") or complaints.append(request.url))
        page.goto(atlas.as_uri() + address)
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []


def shown(page) -> list[str]:
    return [row.get_attribute("id") for row in page.locator("tr[data-verdict]:visible").all()]


def counts(page) -> dict[str, int]:
    return {
        chip.get_attribute("data-only"): int(chip.locator("b").inner_text())
        for chip in page.locator("[data-only]").all()
    }


def test_without_scripts_everything_is_shown_and_no_control_is(opened):
    page = opened(scripts=False)
    assert len(shown(page)) == 9
    assert not page.locator("#filter").is_visible()
    assert counts(page) == {
        "reproduced": 1,
        "contradicted": 1,
        "no-effect": 0,
        "inconclusive": 1,
        "not-run-yet": 3,
    }


def test_an_address_carries_a_filter_and_counts_follow_it(opened):
    page = opened("#paper=chen-2020&verdict=contradicted")
    assert shown(page) == ["s-claim-2"]
    assert counts(page) == {
        "reproduced": 0,
        "contradicted": 1,
        "no-effect": 0,
        "inconclusive": 0,
        "not-run-yet": 1,
    }
    assert page.locator("output").inner_text() == "1 of 6 claims are shown."
    assert page.locator("#filter select[name=paper]").input_value() == "chen-2020"
    assert [one.inner_text() for one in page.locator("section.paper:visible h2").all()] == [
        "Chen et al. 2020#"
    ]
    page.locator("button[type=reset]").click()
    assert len(shown(page)) == 9
    assert "#" not in page.url


def test_what_is_shown_is_counted_as_in_the_headline(opened):
    """A demonstration at a small size is no claim of the headline: it is told apart."""
    page = opened()
    assert sum(counts(page).values()) == 6
    told = page.locator("output")
    assert told.inner_text() == "All 6 claims are shown, and 3 of a demonstration at a small size."
    page.locator("[data-only=contradicted]").click()
    assert told.inner_text() == "1 of 6 claims are shown, and 1 of a demonstration at a small size."


def test_chips_papers_and_words_filter_together(opened):
    page = opened()
    page.locator("[data-only=not-run-yet]").click()
    assert shown(page) == ["waits-claim-1", "waits-claim-2", "waits-claim-3"]
    assert page.url.endswith("#verdict=not-run-yet")
    assert page.locator(".cell.dim").count() == 6
    page.locator("input[name=search]").fill("AGREES it")
    assert shown(page) == ["waits-claim-2"]
    page.locator("[data-only=not-run-yet]").click()  # once more takes it back
    assert shown(page) == ["s-claim-2", "waits-claim-2", "tiny-claim-2"]
    page.locator("input[name=search]").fill("")
    page.locator("#filter select[name=number]").select_option("inconclusive")
    assert shown(page) == ["s-claim-1", "tiny-claim-1"]
    page.locator("#filter select[name=number]").select_option("")
    page.locator("[data-to=small]").click()
    assert shown(page) == ["tiny-claim-1", "tiny-claim-2", "tiny-claim-3"]
    assert sum(counts(page).values()) == 3


@pytest.mark.parametrize(
    "address", ["#paper=nobody&verdict=%3Cb%3E", "#verdict=", "#no-such-place", "#%E0%A4%A"]
)
def test_an_address_that_makes_no_sense_shows_everything(opened, address):
    assert len(shown(opened(address))) == 9


def test_a_link_to_a_claim_shows_it_whatever_the_filter(opened):
    page = opened("#verdict=contradicted")
    page.evaluate("location.hash = 's-claim-1'")
    wait_until(page, "document.getElementById('s-claim-1').checkVisibility()")
    assert len(shown(page)) == 9


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 700, 1200])
def test_nothing_is_wider_than_the_window(opened, width, scheme):
    page = opened(width=width, scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_claim_is_readable_on_a_phone(opened):
    page = opened(width=360)
    row = page.locator("#s-claim-1")
    assert row.locator("td").first.bounding_box()["width"] > 250
    for cell in row.locator("td").all():
        assert cell.bounding_box()["x"] + cell.bounding_box()["width"] <= 360
