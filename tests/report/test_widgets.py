"""Widgets as they are written into a page; what they do in a browser is in test_browser.py."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from report import made_up
from softtargets.report import Widget, write_page
from softtargets.report.widgets import POLICY, check_widget, embedded, plain_data, policy_for, scripts_for

EVIL = "</script><img src=x onerror=alert(1)>&amp;<!--"
KINDS = ("coverage", "plane", "reliability", "sweep")


def policy_in(html: str) -> str:
    return re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', html)[1]


def test_the_policy_allows_exactly_the_scripts_that_are_in_the_page(tmp_path):
    html = write_page(made_up.page(), tmp_path).read_text(encoding="utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert len(scripts) == 5
    assert policy_in(html) == f"{POLICY}; script-src " + " ".join(f"'sha256-{d}'" for d in digests)


def test_a_page_carries_only_the_scripts_it_needs_and_each_once(tmp_path):
    html = write_page(made_up.page(figures=("sweep", "sweep_again")), tmp_path).read_text(encoding="utf-8")
    assert len(re.findall(r"<script>", html)) == 2
    assert html.count('softtargets.widget("sweep"') == 1
    assert 'softtargets.widget("plane"' not in html


def test_a_page_without_widgets_has_no_script_and_the_old_policy(tmp_path):
    html = write_page(made_up.page(figures=()), tmp_path).read_text(encoding="utf-8")
    assert "<script" not in html
    assert policy_in(html) == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    assert ".widget" not in html


def test_hostile_names_cannot_leave_the_data(tmp_path):
    html = write_page(made_up.page(name=EVIL), tmp_path).read_text(encoding="utf-8")
    assert "<img src=x" not in html
    blocks = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert len(blocks) == 4
    assert not any(sign in block for block in blocks for sign in "<>&")
    found = {figure: json.loads(block) for figure, block in zip(KINDS, blocks, strict=True)}
    assert found["reliability"]["curves"][0]["name"] == EVIL
    assert found["sweep"]["curves"][0]["name"] == EVIL
    assert found["coverage"]["curves"][0]["name"] == EVIL
    assert found["plane"]["classes"][2]["name"] == EVIL


@given(st.text())
def test_embedded_text_comes_back_as_it_was_and_holds_no_markup(text):
    found = embedded({text: [text]})
    assert not set(found) & set("<>&")
    assert found.isascii()  # U+2028 ends a line of a script
    assert json.loads(found) == {text: [text]}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_embedded_numbers_are_right_to_six_digits(value):
    assert json.loads(embedded(value)) == pytest.approx(value, rel=5.01e-6, abs=1e-300)


def test_numbers_that_json_has_not_become_null():
    data = {
        "a": [math.nan, math.inf, -math.inf, 1.0],
        "b": np.array([[np.nan, 2.0]]),
        "c": torch.tensor([1, 2]),
    }
    assert json.loads(embedded(data)) == {"a": [None, None, None, 1.0], "b": [[None, 2.0]], "c": [1, 2]}
    assert plain_data(np.float32(0.5)) == 0.5
    assert plain_data(np.bool_(True)) is True


def test_results_hold_every_number_of_a_widget(tmp_path):
    page = made_up.page()
    write_page(page, tmp_path)
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["widgets"]
    assert found == {
        figure.name: plain_data(figure.widget.data)
        for section in page.sections
        for figure in section.exhibits
    }


@pytest.mark.parametrize("kind", KINDS)
def test_the_picture_stands_beside_the_widget(kind, tmp_path):
    html = write_page(made_up.page(figures=(kind,)), tmp_path).read_text(encoding="utf-8")
    figure = re.search(
        rf'<figure id="figure-{kind}" class="answers" data-widget="{kind}">(.*?)</figure>', html, re.DOTALL
    )[1]
    assert '<img src="data:image/svg+xml;base64,' in figure
    assert re.search(r'<div class="widget"[^>]* hidden></div>', figure)
    assert (tmp_path / "figures" / f"{kind}.png").is_file()


def test_an_unknown_kind_is_refused_before_anything_is_written(tmp_path):
    page = made_up.page(widgets={"sweep": Widget("../page", {})}, figures=("sweep",))
    with pytest.raises(
        ValueError,
        match=r"no widget of the kind '\.\./page'; there are coverage, lines, maps, plane, reliability, sweep",
    ):
        write_page(page, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def changed(kind: str, path: list, value) -> Widget:
    data = copy.deepcopy(plain_data(made_up.WIDGETS[kind].data))
    part = data
    for step in path[:-1]:
        part = part[step]
    if value is KeyError:
        del part[path[-1]]
    else:
        part[path[-1]] = value
    return Widget(kind, data)


@pytest.mark.parametrize(
    ("kind", "path", "value", "complaint"),
    [
        ("reliability", ["edges"], [0.0], "at least 2 edges"),
        ("reliability", ["temperatures"], [], "a list that is not empty for 'temperatures'; got one of 0"),
        ("reliability", ["temperatures", 0], 0.0, "temperatures above 0; got 0.0"),
        ("reliability", ["temperatures", 0], 9.0, "from the lowest to the highest"),
        ("reliability", ["start"], 99, "a whole number from 0 to 4 for 'start'; got 99"),
        ("reliability", ["best"], -1, "a whole number from 0 to 4 for 'best'; got -1"),
        ("reliability", ["unit"], KeyError, "needs 'unit' in its data"),
        ("reliability", ["curves", 0, "colour"], KeyError, r"curves\[0\], needs 'colour'"),
        (
            "reliability",
            ["curves", 1, "counts", 2],
            [1],
            r"curves\[1\], needs a list of 10 for 'counts'; got one of 1",
        ),
        ("reliability", ["curves", 0, "high"], 3.0, "a list of 5 for 'high'; got 3.0"),
        ("reliability", ["curves", 0, "ece"], [0.1], "a list of 5 for 'ece'; got one of 1"),
        ("sweep", ["curves", 0, "nll"], [], "a list of 5 for 'nll'"),
        ("sweep", ["best"], [1.0], "a list of 2 for 'best'; got one of 1"),
        ("sweep", ["best", 0], 0, "a temperature above 0 or None in 'best'; got 0"),
        ("coverage", ["coverages", 0], 0.0, "rising coverages above 0"),
        ("coverage", ["coverages", 3], 1.1, "up to 1"),
        ("coverage", ["coverages", 0], 0.9, "rising coverages"),
        ("coverage", ["curves", 1, "high"], [0.1], "a list of 4 for 'high'; got one of 1"),
        ("coverage", ["best"], [0.0], "a list of 4 for 'best'; got one of 1"),
        ("plane", ["classes"], [], "not empty for 'classes'"),
        ("plane", ["panels", 1, "limits"], [[0, 1]], r"panels\[1\], needs a list of 2 for 'limits'"),
        ("plane", ["panels", 0, "templates", 2], [0.0], "a list of 2 for 'templates'"),
        ("plane", ["panels", 0, "centres"], [[0.0, 0.0]], "a list of 3 for 'centres'"),
        ("plane", ["panels", 0, "points", 0], [0.0, 0.0, 3, 1], r"class from 0 to 2.*got \[0.0, 0.0, 3, 1\]"),
    ],
)
def test_data_a_script_could_not_draw_is_refused_with_its_place(kind, path, value, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_widget(changed(kind, path, value))


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("reliability", ["curves", 0, "low"], None),
        ("reliability", ["best"], None),
        ("reliability", ["curves", 0, "best"], 2),
        ("coverage", ["best"], None),
        ("sweep", ["best", 1], None),
        ("plane", ["panels", 0, "points"], []),
        ("plane", ["panels", 0, "centres"], KeyError),
    ],
)
def test_what_may_be_missing_may_be_missing(kind, path, value):
    check_widget(changed(kind, path, value))


def test_scripts_are_strict_and_never_make_markup_of_data():
    scripts = scripts_for(made_up.WIDGETS.values())
    assert len(scripts) == 5
    for script in scripts:
        assert script.startswith('"use strict";\n')
        assert "</" not in script
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|import\(|fetch",
            script,
        )


def test_a_policy_without_scripts_allows_none():
    assert policy_for([]) == POLICY
    assert scripts_for([]) == ()
