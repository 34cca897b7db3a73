from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softtargets.losses import alpha_from_p, convert_alpha, p_from_alpha

from .making import smoothed_target

CLASSES = st.integers(2, 100_000)
SPREADS = st.sampled_from(["all", "others"])


def mass(alpha, classes, spread):
    """What is on the label, and on each other class, by the table in the paper."""
    if spread == "all":
        return 1 - alpha + alpha / classes, alpha / classes
    return 1 - alpha, alpha / (classes - 1)


@given(alpha=st.floats(0, 1), classes=CLASSES, source=SPREADS, target=SPREADS)
def test_a_converted_alpha_puts_the_same_mass_everywhere(alpha, classes, source, target):
    converted = convert_alpha(alpha, classes, source, target)
    assert mass(converted, classes, target) == pytest.approx(
        mass(alpha, classes, source), rel=1e-9, abs=1e-12
    )
    assert convert_alpha(converted, classes, target, source) == pytest.approx(alpha, rel=1e-12)


@given(alpha=st.floats(0, 1), classes=CLASSES, spread=SPREADS)
def test_p_is_the_mass_on_the_label(alpha, classes, spread):
    p = p_from_alpha(alpha, classes, spread)
    assert p == pytest.approx(mass(alpha, classes, spread)[0], rel=1e-9, abs=1e-12)
    assert alpha_from_p(p, classes, spread) == pytest.approx(alpha, rel=1e-9, abs=1e-9)


def test_numbers_by_hand():
    assert convert_alpha(0.1, 2, "others", "all") == pytest.approx(0.2)
    assert convert_alpha(0.1, 2, "all", "others") == pytest.approx(0.05)
    assert convert_alpha(0.9, 10, "others", "all") == pytest.approx(1.0)
    assert alpha_from_p(0.8, 5) == pytest.approx(0.25)  # (1 - p) M / (M - 1)
    assert alpha_from_p(0.8, 5, "others") == pytest.approx(0.2)
    assert p_from_alpha(1.0, 4) == pytest.approx(0.25)
    assert p_from_alpha(1.0, 4, "others") == 0.0
    assert smoothed_target(0, 5, alpha_from_p(0.8, 5), "all") == pytest.approx([0.8, 0.05, 0.05, 0.05, 0.05])


@pytest.mark.parametrize("source", ["all", "others"])
@pytest.mark.parametrize("target", ["all", "others"])
def test_arrays_and_tensors_are_converted_number_by_number(source, target):
    values = [0.0, 0.1, 0.5, 1.0]
    array, tensor = np.array(values), torch.tensor(values, dtype=torch.float64)
    for function in (
        lambda x: convert_alpha(x, 10, source, target),
        lambda x: alpha_from_p(x, 10, target),
        lambda x: p_from_alpha(x, 10, source),
    ):
        expected = [function(value) for value in values]
        assert isinstance(function(array), np.ndarray)
        assert function(array).tolist() == pytest.approx(expected, rel=1e-15)
        assert isinstance(function(tensor), torch.Tensor)
        assert function(tensor).tolist() == pytest.approx(expected, rel=1e-15)


def test_gradients_flow_through_a_conversion():
    alpha = torch.tensor(0.1, requires_grad=True)
    convert_alpha(alpha, 5, "others", "all").backward()
    assert alpha.grad.item() == pytest.approx(1.25)


@pytest.mark.parametrize("classes", [1, 0, -3])
def test_one_class_has_no_others(classes):
    for call in (
        lambda: convert_alpha(0.1, classes, "all", "others"),
        lambda: alpha_from_p(0.9, classes),
        lambda: p_from_alpha(0.1, classes),
    ):
        with pytest.raises(ValueError, match=f"classes must be at least 2, not {classes}"):
            call()


def test_unknown_conventions_are_refused():
    with pytest.raises(ValueError, match="source must be 'all' or 'others', not 'K'"):
        convert_alpha(0.1, 10, "K", "all")
    with pytest.raises(ValueError, match="target must be 'all' or 'others', not 'K'"):
        convert_alpha(0.1, 10, "all", "K")
    with pytest.raises(ValueError, match="must be 'all' or 'others'"):
        alpha_from_p(0.1, 10, "some")
    with pytest.raises(ValueError, match="must be 'all' or 'others'"):
        p_from_alpha(0.1, 10, "some")


@pytest.mark.parametrize("alpha", [2, -0.1, torch.tensor([0.1, 1.5]), np.array([0.1, np.nan]), float("nan")])
@pytest.mark.parametrize(("source", "target"), [("others", "all"), ("all", "others"), ("all", "all")])
def test_what_is_no_share_of_the_mass_is_refused(alpha, source, target):
    with pytest.raises(ValueError, match="alpha must be between 0 and 1"):
        convert_alpha(alpha, 10, source, target)


@pytest.mark.parametrize("p", [1.2, -1])
def test_a_p_out_of_range_is_refused(p):
    with pytest.raises(ValueError, match="p must be between 0 and 1, not"):
        alpha_from_p(p, 10)


def test_all_mass_taken_from_the_label_comes_back_the_same_way():
    """Over all classes that is more than 1."""
    over_all = convert_alpha(1.0, 10, "others", "all")
    assert over_all > 1
    assert convert_alpha(over_all, 10, "all", "others") == pytest.approx(1.0)


def test_under_vmap_nothing_is_looked_at():
    found = torch.vmap(lambda a: convert_alpha(a, 10, "all", "others"))(torch.tensor([0.1, 0.2]))
    torch.testing.assert_close(found, torch.tensor([0.09, 0.18]))
