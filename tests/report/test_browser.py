"""Widgets in a browser: what a reader sees, moves and reaches with the keyboard."""

from __future__ import annotations

import re
import shutil

import pytest

from report import made_up
from softtargets.report import Section, Widget, write_page
from watching import wait_until

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a Chromium; install Debian's `chromium` package"),
]

EVIL = "</script><img src=x onerror=alert(1)>"
VIOLATIONS = (
    "document.addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.blockedURI))"
)


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
def usual(tmp_path_factory):
    """The page with every widget, written once."""
    return write_page(made_up.page(), tmp_path_factory.mktemp("usual"))


@pytest.fixture
def opened(browser, usual, tmp_path):
    """Open a page; at the end nothing may have been complained of, and nothing asked of the network."""
    complaints: list[str] = []
    requests: list[str] = []
    contexts = []

    def show(what=None, width: int = 1200, scripts: bool = True, scheme: str = "light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, java_script_enabled=scripts, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append("a dialog"))
        page.on("request", lambda request: requests.append(request.url))
        if scripts:
            page.add_init_script(VIOLATIONS)
        page.goto((write_page(what, tmp_path) if what else usual).as_uri())
        return page

    yield show
    for context in contexts:
        context.close()
    assert complaints == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []


def figure(page, kind: str):
    return page.locator(f'figure[data-widget="{kind}"]')


def heights(reliability) -> list[float]:
    points = reliability.locator("circle.point")
    return points.evaluate_all("points => points.map(p => Number(p.getAttribute('cy')))")


def test_the_widget_stands_in_the_place_of_the_picture_and_the_picture_in_print(opened):
    page = opened()
    for kind in ("coverage", "plane", "reliability", "sweep"):
        assert figure(page, kind).locator(".widget svg").first.is_visible()
        assert not figure(page, kind).locator("img").is_visible()
    page.emulate_media(media="print")
    for kind in ("coverage", "plane", "reliability", "sweep"):
        assert figure(page, kind).locator("img").is_visible()
        assert not figure(page, kind).locator(".widget").is_visible()


def test_without_scripts_the_pictures_are_there(opened):
    page = opened(scripts=False)
    for kind in ("coverage", "plane", "reliability", "sweep"):
        assert figure(page, kind).locator("img").is_visible()
        assert not figure(page, kind).locator(".widget").is_visible()


@pytest.mark.parametrize("width", [1200, 360])
def test_nothing_runs_over_the_edge(opened, width):
    page = opened(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.locator(".widget svg text").evaluate_all(
        "all => all.map(t => t.getBoundingClientRect()).map(b => [b.left, b.right])"
    )
    assert min(left for left, _ in boxes) >= 0
    assert max(right for _, right in boxes) <= width


def test_the_slider_turns_numbers_and_points(opened):
    box = figure(opened(), "reliability")
    data = made_up.WIDGETS["reliability"].data
    slider = box.get_by_label("Temperature")
    before = heights(box)
    for key, at in (("ArrowRight", 2), ("End", 4), ("Home", 0)):
        slider.press(key)
        assert box.locator("output").inner_text() == f"T = {made_up.TEMPERATURES[at]:.2f}"
        assert slider.get_attribute("aria-valuetext") == f"T = {made_up.TEMPERATURES[at]:.2f}"
        for cell, curve in zip(box.locator("td.ece").all(), data["curves"], strict=True):
            assert cell.inner_text() == f"{100 * curve['ece'][at]:.2f} %"
        for cell, curve in zip(box.locator("td.nll").all(), data["curves"], strict=True):
            assert cell.inner_text() == f"{curve['nll'][at]:.3f}"
        assert heights(box) != before
    box.get_by_role("button", name="T = 1", exact=True).click()
    assert heights(box) == before


def test_points_stand_where_the_numbers_say(opened):
    box = figure(opened(), "reliability")
    guide = box.locator("line.guide").evaluate(
        "g => ['x1', 'y1', 'x2', 'y2'].map(k => Number(g.getAttribute(k)))"
    )
    x0, y0, x1, y1 = guide  # the diagonal goes from (0, 0) to (1, 1)
    drawn = box.locator("circle.point").evaluate_all(
        "all => all.map(p => [Number(p.getAttribute('cx')), Number(p.getAttribute('cy'))])"
    )
    expected = [
        (x0 + (x1 - x0) * sure, y0 + (y1 - y0) * right)
        for curve in made_up.WIDGETS["reliability"].data["curves"]
        for size, sure, right in zip(
            curve["counts"][1], curve["confidence"][1], curve["accuracy"][1], strict=True
        )
        if size
    ]
    assert len(drawn) == len(expected)
    for place, wanted in zip(drawn, expected, strict=True):
        assert place == pytest.approx(wanted, abs=0.01)


def test_buttons_go_to_one_and_to_the_fitted_temperature(opened):
    box = figure(opened(), "reliability")
    one = box.get_by_role("button", name="T = 1", exact=True)
    fitted = box.get_by_role("button", name="fitted T = 2.00")
    assert one.get_attribute("aria-pressed") == "true"
    fitted.click()
    assert box.get_by_label("Temperature").input_value() == "3"
    assert fitted.get_attribute("aria-pressed") == "true"
    assert one.get_attribute("aria-pressed") == "false"


def test_curves_with_fits_of_their_own_are_each_shown_at_theirs(opened):
    data = made_up.WIDGETS["reliability"].data
    first, second = data["curves"]
    own = {**data, "best": None, "curves": [{**first, "best": 3}, {**second, "best": 0}]}
    widgets = {"reliability": Widget("reliability", own)}
    box = figure(opened(made_up.page(figures=("reliability",), widgets=widgets)), "reliability")
    box.get_by_role("button", name="fitted T = 2.00 and 0.50").click()
    assert box.locator("td.ece").all_inner_texts() == [
        f"{100 * first['ece'][3]:.2f} %",
        f"{100 * second['ece'][0]:.2f} %",
    ]
    assert box.locator("output").inner_text() == "T = 2.00 and 0.50"


def test_with_one_temperature_there_is_no_slider(opened):
    data = made_up.WIDGETS["reliability"].data
    lists = ("counts", "confidence", "accuracy", "ece", "nll")
    curve = {
        **data["curves"][0],
        **{key: data["curves"][0][key][1:2] for key in lists},
        "low": None,
        "high": None,
    }
    alone = {**data, "temperatures": [1.0], "start": 0, "best": None, "curves": [curve]}
    widgets = {"reliability": Widget("reliability", alone)}
    box = figure(opened(made_up.page(figures=("reliability",), widgets=widgets)), "reliability")
    assert box.get_by_label("Temperature").count() == 0
    assert box.locator("td.ece").inner_text() == f"{100 * data['curves'][0]['ece'][1]:.2f} %"
    assert box.locator("path.interval").count() == 0


def test_a_bin_tells_its_numbers_under_the_pointer_and_to_the_keyboard(opened):
    page = opened()
    box = figure(page, "reliability")
    curve = made_up.WIDGETS["reliability"].data["curves"][0]
    said = f"{curve['counts'][1][8]} examples, mean confidence {100 * curve['confidence'][1][8]:.1f} %"
    bubble = box.get_by_role("tooltip")
    assert not bubble.is_visible()
    box.locator(".bin").nth(8).hover()
    assert said in bubble.inner_text()
    page.mouse.move(0, 0)
    assert not bubble.is_visible()

    assert box.locator('.bin[tabindex="0"]').count() == 1  # one stop for the tab key; arrows go on
    box.locator('.bin[tabindex="0"]').focus()
    assert "confidence 0.90 to 1.00" in bubble.inner_text()
    page.keyboard.press("ArrowLeft")
    assert "confidence 0.80 to 0.90" in bubble.inner_text()
    assert said in bubble.inner_text()
    assert said in page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Escape")
    assert not bubble.is_visible()


def test_the_legend_switches_curves(opened):
    box = figure(opened(), "reliability")
    button = box.get_by_role("button", name="label smoothing")
    assert box.locator("g.curve").count() == 2
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert box.locator("g.curve").count() == 1
    button.press("Space")
    assert box.locator("g.curve").count() == 2


def test_a_sweep_tells_the_numbers_at_a_temperature(opened):
    page = opened()
    box = figure(page, "sweep")
    curves = made_up.WIDGETS["sweep"].data["curves"]
    panels = box.locator("svg[tabindex]")
    assert panels.count() == 2
    assert box.locator("circle.best").count() == 4
    assert "hard targets: fitted T = 2.00" in box.locator(".readout").inner_text()
    page.keyboard.press("Tab")  # from here on focus is shown
    panels.nth(1).focus()
    bubble = box.get_by_role("tooltip")
    for key, at in (("", 1), ("ArrowRight", 2), ("End", 4), ("Home", 0)):
        if key:
            page.keyboard.press(key)
        assert bubble.inner_text().startswith(f"T = {made_up.TEMPERATURES[at]:.2f}")
        for curve in curves:
            told = f"{curve['name']}: ECE {100 * curve['ece'][at]:.2f} %, NLL {curve['nll'][at]:.3f}"
            assert told in re.sub(r"\s+", " ", bubble.inner_text())
    panels.nth(0).hover()
    assert box.locator("line.cursor[visibility=visible]").count() == 2
    box.get_by_role("button", name="hard targets").click()
    assert box.locator("path.curve").count() == 2


def test_a_curve_tells_what_is_wrong_at_a_coverage(opened):
    page = opened()
    box = figure(page, "coverage")
    data = made_up.WIDGETS["coverage"].data
    assert box.locator("path.curve").count() == 2
    assert (
        box.locator(".readout")
        .inner_text()
        .startswith("0.0 % handed over, 100.0 % used; hard targets: 10.00 % wrong")
    )
    page.keyboard.press("Tab")
    box.locator("svg[tabindex]").focus()
    bubble = box.get_by_role("tooltip")
    for key, at in (("", 3), ("ArrowLeft", 2), ("Home", 0), ("End", 3)):
        if key:
            page.keyboard.press(key)
        words = re.sub(r"\s+", " ", bubble.inner_text())
        assert words.startswith(f"{100 * (1 - data['coverages'][at]):.1f} % handed over")
        for curve in data["curves"]:
            assert f"{curve['name']}: {100 * curve['risk'][at]:.2f} % wrong (0.00 to 20.00 %)" in words
        assert f"best possible order: {100 * data['best'][at]:.2f} % wrong" in words
    page.keyboard.press("Escape")
    assert not bubble.is_visible()
    box.get_by_role("button", name="hard targets").click()
    assert box.locator("path.curve").count() == 1


def test_a_plane_names_the_example_and_switches_classes(opened):
    page = opened()
    box = figure(page, "plane")
    points = box.locator("circle.point")
    assert points.count() == 120
    points.nth(45).hover(force=True)
    bubble = box.get_by_role("tooltip")
    assert re.fullmatch(r"\w+[\w ]*\nexample \d+", bubble.inner_text())
    page.mouse.move(0, 0)
    assert not bubble.is_visible()
    page.keyboard.press("Tab")
    box.locator("svg[tabindex]").first.focus()
    assert bubble.inner_text() == "cat\nexample 0"
    page.keyboard.press("End")
    assert bubble.inner_text() == "hard targets\nexample 219"
    box.get_by_role("button", name="dog").click()
    assert box.locator("circle.point[visibility=visible]").count() == 80


def test_panels_of_a_plane_have_one_scale(opened):
    data = made_up.WIDGETS["plane"].data
    small = {**data["panels"][1], "limits": [[-0.5, 0.5], [-0.5, 0.5]]}
    widgets = {"plane": Widget("plane", {**data, "panels": [data["panels"][0], small]})}
    box = figure(opened(made_up.page(figures=("plane",), widgets=widgets)), "plane")
    sizes = box.locator("polygon.guide").evaluate_all("all => all.map(p => p.getBBox().width)")
    assert sizes[0] == pytest.approx(sizes[1])


def test_hostile_names_are_shown_and_do_nothing(opened):
    page = opened(made_up.page(name=EVIL))
    for kind in ("coverage", "plane", "reliability", "sweep"):
        assert figure(page, kind).get_by_role("button", name=EVIL).is_visible()
    assert page.locator('img[src="x"]').count() == 0
    figure(page, "reliability").locator(".bin").last.hover()
    assert EVIL in figure(page, "reliability").get_by_role("tooltip").inner_text()


def test_a_script_that_is_not_ours_does_not_run(browser, usual, tmp_path):
    path = tmp_path / "index.html"
    theirs = "<script>document.title = 'taken over'</script></body>"
    path.write_text(usual.read_text(encoding="utf-8").replace("</body>", theirs), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.title() == "How sure may this model be? – softtargets"
    page.close()


def test_a_verdict_and_code_are_there_to_read(opened):
    parts = {"verdict": made_up.VERDICT, "sections": (Section("s", (), (made_up.CODE,)),)}
    page = opened(made_up.page(**parts), width=360)
    assert page.get_by_role("heading", name=made_up.VERDICT.headline).is_visible()
    assert page.locator("figure pre").inner_text() == made_up.CODE.text
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("width", [1440, 1280, 390])
def test_a_study_page_fits_and_its_contents_lead_somewhere(opened, width):
    page = opened(made_up.study_page(), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    links = page.locator("nav.contents a, a.strip, a.here")
    targets = links.evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert {"#claims", "#numbers", "#figure-curves", "#table-wide", "#what-differs", "#claim-1"} <= set(
        targets
    )
    for target in targets:
        assert page.locator(f'[id="{target[1:]}"]').count() == 1, target
    page.locator('nav.contents a[href="#what-differs"]').click()
    assert page.evaluate("location.hash") == "#what-differs"


def test_contents_stay_in_sight_on_wide_screens(opened):
    page = opened(made_up.study_page(), width=1500)
    page.mouse.wheel(0, 900)
    wait_until(page, "window.scrollY > 300")
    box = page.locator("nav.contents").bounding_box()
    assert 0 <= box["y"] < 60
    assert box["x"] + box["width"] <= page.locator("main").bounding_box()["x"] + 1


def test_papers_are_linked(opened):
    page = opened(made_up.study_page())
    assert page.locator("header .papers a").get_attribute("href") == "https://arxiv.org/abs/2010.12648"
    assert page.locator("#claim-1 dd a").get_attribute("href") == "https://arxiv.org/abs/2010.12648"


@pytest.mark.parametrize("width", [390, 1280])
def test_text_in_figures_is_never_small(opened, width):
    page = opened(made_up.study_page(), width=width)
    sizes = page.locator(".widget svg text, .strip svg text").evaluate_all(
        "all => all.map(t => parseFloat(getComputedStyle(t).fontSize)"
        " * t.getBoundingClientRect().height / t.getBBox().height)"
    )
    assert len(sizes) > 20
    assert min(sizes) >= 10.9


def test_a_strip_tells_its_numbers_and_leads_to_its_details(opened):
    page = opened(made_up.study_page())
    strips = page.locator("a.strip")
    assert strips.count() == 3
    more = strips.nth(0).locator(".more")
    assert not more.is_visible()
    strips.nth(0).hover()
    assert "gain: +1.00 points, 95 % interval +0.75 to +1.25 points, 3 seeds." in more.inner_text()
    assert "The paper printed +1.50 points; within 0.30 points of it: inconclusive." in more.inner_text()
    page.mouse.move(0, 0)
    assert not more.is_visible()
    page.locator("nav.contents a").first.focus()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.classList.contains('strip')"):
            break
    assert more.is_visible()
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#claim-1"


def test_a_strip_shows_the_printed_number_the_interval_and_the_region_in_their_places(opened):
    page = opened(made_up.study_page())
    row = page.locator("a.strip").first

    def middle(selector: str) -> float:
        box = row.locator(selector).bounding_box()
        return box["x"] + box["width"] / 2

    edge, mean, printed = middle("line.edge"), middle("circle.mean"), middle("path.paper")
    assert edge < mean < printed  # 0, 1 and 1.5
    assert (mean - edge) / (printed - edge) == pytest.approx(1 / 1.5, abs=0.02)
    interval = row.locator("line.range").bounding_box()
    assert interval["width"] / (printed - edge) == pytest.approx(0.4968 / 1.5, abs=0.05)
    assert page.locator("a.strip").nth(2).locator("circle.mean").count() == 0  # not run yet
    verdicts = page.locator("a.strip .chip").all_inner_texts()
    assert verdicts == ["✓reproduced", "✕contradicted", "…not run yet"]
    assert page.locator("#claims h2").inner_text().startswith("Unfinished: 1 of 3 claims is not run yet.")


def test_strips_need_no_script(opened):
    page = opened(made_up.study_page(), width=390, scripts=False)
    assert page.locator("a.strip circle.mean").first.is_visible()
    for kind in ("lines", "maps"):
        assert figure(page, kind).locator("img").is_visible()
    # Pictures scroll in their own box on a phone, and captions stand outside it.
    assert figure(page, "lines").locator("img").bounding_box()["width"] >= 600
    assert figure(page, "lines").locator("figcaption").bounding_box()["width"] <= 390


def test_lines_tell_the_numbers_under_the_pointer_and_to_the_keyboard(opened):
    page = opened(made_up.study_page())
    box = figure(page, "lines")
    bubble = box.get_by_role("tooltip")
    pictures = box.locator("svg[tabindex]")
    assert pictures.count() == 2
    page.keyboard.press("Tab")
    pictures.first.focus()
    assert (
        re.sub(r"\s+", " ", bubble.inner_text())
        == "p: 0.5 measured: 2.000 ± 1.414 predicted: 3.000 other: 2.500"
    )
    page.keyboard.press("End")
    assert "p: 0.9" in bubble.inner_text()
    assert "measured: 4.000" in bubble.inner_text()
    page.keyboard.press("Escape")
    assert not bubble.is_visible()
    pictures.first.hover()
    assert bubble.is_visible()
    assert pictures.first.locator("g.curve").count() == 3
    box.get_by_role("button", name="a = 0.5").click()
    assert pictures.first.locator("g.curve").count() == 1


def test_on_a_phone_the_numbers_do_not_cover_the_curves(opened):
    page = opened(made_up.study_page(), width=390)
    box = figure(page, "lines")
    picture = box.locator("svg[tabindex]").first
    picture.hover()
    told = box.get_by_role("tooltip").bounding_box()
    around = picture.bounding_box()
    assert told["y"] >= around["y"] + around["height"] - 1
    assert told["x"] >= 0
    assert told["x"] + told["width"] <= 390


def test_points_of_lines_stand_where_the_numbers_say(opened):
    picture = figure(opened(made_up.study_page()), "lines").locator("svg[tabindex]").first
    spots = picture.locator("circle.point").evaluate_all(
        "all => all.map(p => [Number(p.getAttribute('cx')), Number(p.getAttribute('cy'))])"
    )
    (x0, y0), (x1, y1) = spots  # (0.5, 2) and (0.9, 4)
    assert x1 > x0
    assert y1 < y0
    bars = picture.locator("path.interval").first.get_attribute("d")
    low, high = (float(re.search(rf"{at}([\d.]+)", bars)[1]) for at in (r"M[\d.]+ ", "V"))
    assert low - high == pytest.approx(
        (y0 - y1) * 2**0.5, abs=0.01
    )  # one deviation of 1 and 3 is the root of 2


def test_a_map_tells_the_value_of_a_cell(opened):
    page = opened(made_up.study_page())
    box = figure(page, "maps")
    bubble = box.get_by_role("tooltip")
    assert box.locator("rect.cell").count() == 5
    page.keyboard.press("Tab")
    box.locator("svg[tabindex]").focus()
    assert bubble.inner_text() == "rate 0.1, p 0.5\n0.00 nats"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    assert bubble.inner_text() == "rate 0.2, p 0.6\n3.00 nats"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert bubble.inner_text() == "rate 0.3, p 0.5\n–"
    page.mouse.move(0, 0)
    box.locator("rect.cell").last.hover(force=True)
    assert "4.00 nats" in bubble.inner_text()


def test_a_page_is_dark_where_the_reader_wants_it_so(opened):
    page = opened(made_up.study_page(), scheme="dark")

    def light(selector: str, what: str) -> float:
        colour = page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{what}")
        return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3]) / 3

    assert light("body", "backgroundColor") < 40
    assert light("section", "backgroundColor") < 60
    assert light("section p", "color") > 180
    assert light(".widget svg text", "fill") > 140
    assert light(".widget svg .frame", "fill") < 60
    # Pictures of files are drawn on white.
    assert light(".picture img", "backgroundColor") == 255


def test_the_tooltip_leaves_the_slider_free_on_a_phone(opened):
    page = opened(width=390)
    box = figure(page, "reliability")
    box.locator(".bin").nth(8).hover()
    bubble, slider = box.get_by_role("tooltip").bounding_box(), box.get_by_label("Temperature").bounding_box()
    assert bubble["y"] + bubble["height"] <= slider["y"]
