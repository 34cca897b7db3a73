from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from inspection.view.penultimate import (
    CLASSES,
    SIZE,
    by_hand,
    class_means,
    examples,
    nc1_by_hand,
    nc4_by_hand,
    net,
    panel,
)
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.view import finding
from softtargets.inspection.view.finding import Held, Panel, look


def test_the_measures_of_a_panel_computed_by_hand():
    layer = net()
    found = examples(layer)
    (seen,) = look([panel(layer, found)], classes=[4, 0, 3]).panels
    expected = by_hand(*found, layer[0], [4, 0, 3])
    for name, value in expected.items():
        assert getattr(seen.view.measures, name) == pytest.approx(value, rel=1e-9), name
    assert seen.counts == (40, 40, 40)


def test_neural_collapse_is_that_of_all_classes():
    layer = net()
    found = examples(layer)
    (seen,) = look([panel(layer, found)], classes=[4, 0, 3]).panels
    assert seen.collapse.nc1 == pytest.approx(nc1_by_hand(*found), rel=1e-9)
    assert (seen.collapse.classes, seen.collapse.examples) == (CLASSES, 240)
    assert seen.nc4_examples == 240


def test_nc4_of_held_out_examples_is_measured_with_the_means_of_training():
    layer = net(3)
    train, test = examples(layer, noise=2.5), examples(layer, noise=2.5, seed=9)
    seen = look([panel(layer, test, split="test"), panel(layer, train)], classes=[0, 1, 2]).panels
    means = class_means(*train)
    assert [one.view.split for one in seen] == ["train", "test"]  # training first, whatever the order given
    assert [one.nc4_means for one in seen] == ["train", "train"]
    for one, (activations, _) in zip(seen, (train, test), strict=True):
        assert one.collapse.nc4 == pytest.approx(nc4_by_hand(activations, means, *layer[:2]))
    assert nc4_by_hand(test[0], means, *layer[:2]) != nc4_by_hand(test[0], class_means(*test), *layer[:2])


@settings(max_examples=15, deadline=None)
@given(rows=st.integers(1, 70))
def test_the_size_of_chunks_changes_nothing(rows):
    layer = net(5)
    found = examples(layer, count=66)
    whole = panel(layer, found)

    class Slowly(Held):
        def chunks(self, rows_=None):
            return super().chunks(rows)

    slow = Panel("net", "train", Slowly(*(vars(whole.source)[key] for key in vars(whole.source))))
    one, two = look([whole], most=4), look([slow], most=4)
    assert one.classes == two.classes
    assert torch.equal(one.panels[0].places, two.panels[0].places)
    assert torch.allclose(one.panels[0].view.points, two.panels[0].view.points)
    assert one.panels[0].collapse.nc1 == pytest.approx(two.panels[0].collapse.nc1, rel=1e-9)
    assert one.panels[0].collapse.nc4 == pytest.approx(two.panels[0].collapse.nc4)


def test_places_say_which_example_a_point_is():
    layer = net(2)
    activations, labels = examples(layer)
    (seen,) = look([panel(layer, (activations, labels))], classes=[5, 1, 2], most=7).panels
    assert len(seen.view.points) == 21
    chosen = layer[0][[5, 1, 2]]
    one = (chosen[0] - chosen[2]) / np.linalg.norm(chosen[0] - chosen[2])
    for point, label, place in zip(seen.view.points, seen.view.labels, seen.places, strict=True):
        assert labels[place] == label
        assert float(point[0]) == pytest.approx(float(activations[place] @ one))


def test_classes_are_picked_among_those_with_enough_examples_in_every_panel():
    layer = net(4)
    weights = layer[0]
    weights[1] = weights[0] + 1e-3  # the closest pair, but class 1 is rare in one panel
    train, test = examples(layer), examples(layer, seed=8)
    rare = test[1] != 1
    rare[np.flatnonzero(test[1] == 1)[:9]] = True
    test = (test[0][rare], test[1][rare])
    both = [panel(layer, train), panel(layer, test, split="test")]
    assert set(look(both[:1], pick="mixed").classes[:2]) == {0, 1}
    found = look(both, pick="mixed")
    assert 1 not in found.classes
    assert "1 classes with fewer than 10 examples in some panel were left out" in found.reason
    pairs = [(i, j) for i in range(CLASSES) for j in range(i) if 1 not in (i, j)]
    closest = min(pairs, key=lambda pair: float(np.linalg.norm(weights[pair[0]] - weights[pair[1]])))
    assert set(found.classes[:2]) == set(closest)


def test_of_a_large_vocabulary_the_most_frequent_are_compared(monkeypatch):
    monkeypatch.setattr(finding, "CANDIDATES", 4)
    layer = net(6)
    labels = np.repeat(np.arange(CLASSES), [40, 12, 30, 11, 25, 20])
    activations = layer[2][labels] + np.random.default_rng(0).standard_normal((len(labels), SIZE))
    for pick in finding.PICKS:
        found = look([panel(layer, (activations, labels))], pick=pick)
        assert found.kind == pick
        assert set(found.classes) <= {0, 2, 4, 5}
        assert "2 classes" in found.reason
        assert "the 4 most frequent" in found.reason


def test_nc4_of_many_classes_takes_evenly_spaced_examples(monkeypatch):
    monkeypatch.setattr(finding, "NC4_PRODUCTS", 12 * CLASSES * SIZE)
    layer = net(7)
    activations, labels = examples(layer, noise=3.0)
    (seen,) = look([panel(layer, (activations, labels))]).panels
    chosen = [(2 * k + 1) * 240 // 24 for k in range(12)]
    assert seen.nc4_examples == 12
    means = class_means(activations, labels)
    assert seen.collapse.nc4 == pytest.approx(nc4_by_hand(activations[chosen], means, *layer[:2]))


def test_panels_are_arranged_by_net():
    hard, smooth = net(0), net(1)
    found = examples(hard)
    given = [
        panel(hard, found, "hard"),
        panel(smooth, found, "smooth", "test"),
        panel(hard, found, "hard", "test"),
        panel(smooth, found, "smooth"),
    ]
    titles = [one.view.title for one in look(given).panels]
    assert titles == ["hard, train", "hard, test", "smooth, train", "smooth, test"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda p, q: [], "at least one panel"),
        (lambda p, q: [p, p], "two panels are called 'net, train'"),
        (lambda p, q: [p, Panel("net", "test", q.source)], "different last layers"),
        (lambda p, q: [p, panel(net(0, 4), examples(net(0, 4)), "small")], "has 4 classes"),
    ],
)
def test_panels_that_do_not_belong_together_are_refused(change, words):
    one, two = (panel(net(seed), examples(net(seed))) for seed in (0, 1))
    with pytest.raises(ValueError, match=words):
        look(change(one, two))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"classes": [0, 1, 6]}, "three different classes from 0 to 5"),
        ({"classes": [0, 1, 1]}, "three different classes"),
    ],
)
def test_a_choice_that_cannot_be_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        look([panel(net(), examples(net()))], **options)


def test_a_pick_that_there_is_not_is_refused():
    with pytest.raises(SofttargetsError, match=r"^pick must be close, mixed or far, not near$"):
        look([panel(net(), examples(net()))], pick="near")


def test_an_error_says_which_panel_it_is_about():
    layer = net()
    activations, labels = examples(layer)
    with pytest.raises(ValueError, match=r"^net, test: there are no examples of class 2"):
        look(
            [
                panel(layer, (activations, labels)),
                panel(layer, (activations[labels != 2], labels[labels != 2]), split="test"),
            ],
            classes=[0, 1, 2],
        )


def test_two_classes_with_examples_are_too_few():
    layer = net()
    activations, labels = examples(layer)
    two = labels < 2
    with pytest.raises(ValueError, match="only 2 classes have examples"):
        look([panel(layer, (activations[two], labels[two]))])


def test_progress_goes_over_all_panels_twice():
    layer = net()
    heard: list[tuple[str, int, int]] = []
    panels = [panel(layer, examples(layer), split=split) for split in ("train", "test")]
    look(panels, told=lambda *words: heard.append(words))
    assert heard == [(what, done, 480) for what in ("class means", "three classes") for done in (240, 480)]
