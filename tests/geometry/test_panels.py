from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import torch

from geometry.making import clustered
from softtargets.geometry import common_limits, fair_panels, plane_view


def four(scale=10.0):
    """A net, and the same net with all activations larger; training and held out."""
    values, labels, weights = clustered(examples=120)
    panels = []
    for net, factor in (("small", 1.0), ("large", scale)):
        for split, rows in (("training", slice(0, 60)), ("held out", slice(60, 120))):
            panels.append(
                plane_view(factor * values[rows], labels[rows], weights, [0, 1, 2], net=net, split=split)
            )
    return panels


def mean_side(corners):
    return statistics.fmean(
        math.dist(corners[a].tolist(), corners[b].tolist()) for a, b in ((0, 1), (0, 2), (1, 2))
    )


def test_in_units_of_class_means_a_larger_net_looks_the_same():
    small, held_out, large, large_held_out = fair_panels(four())
    assert large.unit == pytest.approx(10 * small.unit)
    torch.testing.assert_close(large.view.points, small.view.points)
    torch.testing.assert_close(large_held_out.view.points, held_out.view.points)
    assert len({panel.limits for panel in (small, held_out, large, large_held_out)}) == 1
    assert mean_side(small.view.centres) == pytest.approx(1)
    assert small.view.centres.mean(0).tolist() == pytest.approx([0, 0], abs=1e-12)


def test_the_held_out_panel_keeps_the_unit_and_origin_of_training():
    training, held_out, *_ = four()
    first, second, *_ = fair_panels([training, held_out])
    assert second.unit == first.unit == pytest.approx(mean_side(training.centres))
    expected = (held_out.points - training.centres.mean(0)) / first.unit
    torch.testing.assert_close(second.view.points, expected)
    assert mean_side(second.view.centres) != pytest.approx(1, rel=1e-3)


def test_templates_have_their_shape_and_the_side_of_the_class_means():
    for panel, given in zip(fair_panels(four()), four(), strict=True):
        assert mean_side(panel.view.templates) == pytest.approx(1)
        ratio = (panel.view.templates[0] - panel.view.templates[1]) / (
            given.templates[0] - given.templates[1]
        )
        np.testing.assert_allclose(ratio, 1 / mean_side(given.templates), rtol=1e-9)


def test_in_units_of_templates_scale_is_seen_and_limits_are_the_same():
    given = four()
    panels = fair_panels(given, units="templates")
    assert len({panel.limits for panel in panels}) == 1
    for panel, view in zip(panels, given, strict=True):
        assert panel.unit == pytest.approx(mean_side(view.templates))
        assert mean_side(panel.view.templates) == pytest.approx(1)
        assert mean_side(panel.view.centres) == pytest.approx(mean_side(view.centres) / panel.unit)


def test_activations_as_they_are_share_limits_within_a_net():
    given = four()
    panels = fair_panels(given, units="activations")
    assert [panel.view for panel in panels] == given
    assert panels[0].limits == panels[1].limits != panels[2].limits == panels[3].limits
    assert {panel.unit for panel in panels} == {1.0}


@pytest.mark.parametrize("units", ["centres", "templates", "activations"])
def test_every_point_is_inside_and_axes_have_one_scale(units):
    for panel in fair_panels(four(), units):
        (left, right), (bottom, top) = panel.limits
        assert right - left == pytest.approx(top - bottom)
        for part in (panel.view.points, panel.view.templates):
            assert bool(((part[:, 0] > left) & (part[:, 0] < right)).all())
            assert bool(((part[:, 1] > bottom) & (part[:, 1] < top)).all())


def test_other_classes_of_one_net_have_a_unit_of_their_own():
    values, labels, weights = clustered()
    panels = [plane_view(values, labels, weights, classes, net="a") for classes in ([0, 1, 2], [2, 3, 4])]
    first, second = fair_panels(panels)
    assert first.unit == pytest.approx(mean_side(panels[0].centres))
    assert second.unit == pytest.approx(mean_side(panels[1].centres))
    assert first.limits == second.limits


def test_what_cannot_be_scaled_is_refused():
    with pytest.raises(
        ValueError, match="units must be one of centres, templates, activations, not 'metres'"
    ):
        fair_panels(four(), units="metres")
    with pytest.raises(ValueError, match="need at least one panel"):
        fair_panels([])
    same = plane_view(torch.ones(6, 3), torch.arange(6) % 3, torch.eye(3), [0, 1, 2], net="dead")
    with pytest.raises(
        ValueError, match="the class means of 'dead' are a single point, so their distance cannot be the unit"
    ):
        fair_panels([same])
    fair_panels([same], units="activations")


def test_common_limits_are_a_square_around_all_panels():
    panels = [torch.tensor([[0.0, 0.0], [10.0, 1.0]]), torch.tensor([[4.0, -3.0]]), torch.zeros(0, 2)]
    x, y = common_limits(panels, margin=0.1)
    assert x == pytest.approx((-1, 11))
    assert y == pytest.approx((-7, 5))


@pytest.mark.parametrize("seed", range(5))
def test_no_point_lies_outside_the_common_limits(seed):
    generator = torch.Generator().manual_seed(seed)
    panels = [torch.randn(20, 2, generator=generator) * (1 + k) + k for k in range(3)]
    (left, right), (bottom, top) = common_limits(panels)
    every = torch.cat(panels)
    assert left < every[:, 0].min()
    assert every[:, 0].max() < right
    assert bottom < every[:, 1].min()
    assert every[:, 1].max() < top
    assert right - left == pytest.approx(top - bottom)


def test_one_point_has_limits_and_none_has_not():
    assert common_limits([torch.tensor([[2.0, 3.0]])]) == ((1, 3), (2, 4))
    with pytest.raises(ValueError, match="need at least one point to find limits for"):
        common_limits([torch.zeros(0, 2)])
