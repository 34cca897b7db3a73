from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from inspection.view.penultimate import examples, net, panel
from softtargets.geometry import fair_panels
from softtargets.inspection.view import finding
from softtargets.inspection.view.figures import plane_data
from softtargets.inspection.view.finding import look
from softtargets.inspection.view.page import collapse_table, measures_table, view_page
from softtargets.inspection.view.words import between_nets, between_splits, headline, warnings, why
from softtargets.report import write_page

NAMES = dict(enumerate("abcdef"))


def four(most: int = 300):
    """Two nets on two splits; the second has clusters exactly half as wide, and activations ten times as large."""
    layer = net(0)
    larger = (layer[0], layer[1], 10 * layer[2])
    panels = []
    for split, seed in (("train", 1), ("test", 2)):
        activations, labels = examples(layer, seed=seed)
        means = np.stack([activations[labels == c].mean(0) for c in range(len(layer[2]))])
        tight = 10 * (means[labels] + (activations - means[labels]) / 2)
        panels += [
            panel(layer, (activations, labels), "hard", split),
            panel(larger, (tight, labels), "smooth", split),
        ]
    return look(panels, names=NAMES, most=most)


def page_of(found, **options):
    return view_page(found, "a.npz", **options)


def test_a_net_with_clusters_half_as_wide_is_said_to_have_them():
    found = four()
    assert (
        headline(found)
        == "The clusters of smooth, train are 50 % tighter than those of hard, train on the plane"
    )
    train, test = between_nets(found)
    assert train.startswith("smooth against hard on train: the spread is ")
    assert test.startswith("smooth against hard on test: the spread is ")
    hard, _, smooth, _ = (one.view.measures for one in found.panels)
    assert f"{smooth.spread:.3f} against {hard.spread:.3f} on the plane" in train
    assert "about as equilateral" in train
    assert len(between_splits(found)) == 2
    assert between_splits(found)[0].startswith("hard: the clusters of test are ")


def test_nets_without_a_common_split_are_compared_with_a_caution():
    layer, other = net(0), net(1)
    found = look([panel(layer, examples(layer), "hard"), panel(other, examples(other), "smooth", "test")])
    (sentence,) = between_nets(found)
    assert sentence.startswith("smooth, test against hard, train, which have different examples: ")


def test_one_net_has_nothing_to_be_compared_with():
    found = look([panel(net(), examples(net()))])
    assert headline(found) == ""
    assert between_nets(found) == between_splits(found) == ()
    page = page_of(found)
    spread = round(100 * found.panels[0].view.measures.spread)
    assert page.verdict.headline == f"Clusters are {spread} % as wide as classes are far apart"
    assert page.sections[-1].title == "What these numbers do not say"


def test_points_of_the_widget_are_those_of_fair_panels():
    found = four(most=5)
    panels = fair_panels([one.view for one in found.panels])
    data = plane_data(found, panels)
    assert [entry["name"] for entry in data["classes"]] == list(found.names)
    for drawn, fair, seen in zip(data["panels"], panels, found.panels, strict=True):
        assert drawn["title"] == seen.view.title
        assert len(drawn["points"]) == 15
        assert [point[3] for point in drawn["points"]] == seen.places.tolist()
        for (x, y, k, _), label, point in zip(
            drawn["points"], seen.view.labels, fair.view.points, strict=True
        ):
            assert found.classes[k] == int(label)
            assert [x, y] == point.tolist()
        assert drawn["notes"][0].startswith(f"spread {seen.view.measures.spread:.2f}")


def test_tables_have_one_row_for_each_panel():
    found = four()
    assert [row["spread"] for row in measures_table(found).rows] == [
        one.view.measures.spread for one in found.panels
    ]
    assert [row["nc1"] for row in collapse_table(found).rows] == [one.collapse.nc1 for one in found.panels]
    assert [row["nc4_means"] for row in collapse_table(found).rows] == ["train"] * 4


def test_the_page_says_why_these_classes():
    found = four()
    assert found.reason in why(found)
    assert f"{found.classes[0]} is {found.names[0]}" in why(found)
    assert "templates of hard" in why(found)
    asked = look([panel(net(), examples(net()))], classes=[2, 4, 1])
    assert why(asked) == "Why these classes: they were asked for."


def test_few_examples_and_a_sample_for_nc4_are_said(monkeypatch):
    monkeypatch.setattr(finding, "NC4_PRODUCTS", 300)
    layer = net()
    found = look([panel(layer, examples(layer, count=36))], classes=[0, 1, 2])
    few, sample = warnings(found)
    assert few == "net, train has fewer than 10 examples of 0, 1 and 2: too few to judge its clusters."
    assert "is measured on 10 of 36 examples" in sample
    assert page_of(found).warnings == (few, sample)


@pytest.mark.parametrize("units", ["centres", "templates", "activations"])
def test_the_picture_and_the_widget_show_the_same_points(units):
    found = four(most=4)
    (figure,) = page_of(found, units=units).sections[0].exhibits
    drawing = figure.draw()
    for axes, shown in zip(drawing.axes, figure.widget.data["panels"], strict=True):
        drawn = np.concatenate([part.get_offsets() for part in axes.collections])
        points = np.array([point[:2] for point in shown["points"]])
        assert np.allclose(np.sort(drawn, axis=0), np.sort(points, axis=0))
        assert np.allclose(axes.get_xlim(), shown["limits"][0])


def test_the_page_is_written_with_its_numbers(tmp_path):
    found = four(most=4)
    hostile = replace(found, names=("</script><b>$x$", "_b", "c"))
    path = write_page(page_of(hostile), tmp_path)
    text = path.read_text()
    assert "</script><b>" not in text
    assert "softtargets <span>view</span> a.npz" in text
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["kind"] == "view"
    assert results["verdict"]["headline"] == headline(found)
    assert [row["net"] for row in results["tables"]["sources"]] == ["hard", "hard", "smooth", "smooth"]
    with open(tmp_path / "tables" / "points.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 4 * 12
    assert rows[0]["name"] in hostile.names
    widget = results["widgets"]["plane"]["panels"]
    assert float(rows[-1]["x"]) == pytest.approx(widget[-1]["points"][-1][0])
    assert (tmp_path / "figures" / "plane.png").stat().st_size > 10_000
