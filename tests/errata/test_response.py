"""The authors' response of 2019: what is printed does not hold, what ERRATA.md says instead does."""

from __future__ import annotations

import math

import pytest
import torch

from softtargets.calibration import expected_calibration_error
from softtargets.claims import published


def test_a1_perplexity_does_not_gain():
    rows = [
        (quantity, place, -1 if quantity == "bleu" else 1)
        for quantity, place in (
            ("top-1-error", "imagenet-inception-v2"),
            ("top-5-error", "imagenet-inception-v2"),
            ("bleu", "en-de-transformer"),
            ("perplexity", "en-de-transformer"),
            ("word-error", "wsj-bilstm"),
        )
    ]
    losing = [
        quantity
        for quantity, place, better in rows
        if better
        * (
            published(f"muller-2019/{quantity}/{place}/smoothed").value
            - published(f"muller-2019/{quantity}/{place}/hard").value
        )
        > 0
    ]
    assert losing == ["perplexity"]


def test_a2_a_temperature_may_help_a_network_with_a_small_error():
    logits = torch.tensor([[math.log(4), 0.0]] * 50, dtype=torch.float64)  # confidence 0.8
    labels = torch.tensor([0] * 39 + [1] * 11)
    temperature = math.log(4) / math.log(0.78 / 0.22)
    before = expected_calibration_error(logits.softmax(1), labels)
    assert before == pytest.approx(0.02)
    assert temperature == pytest.approx(1.095, abs=5e-4)
    assert expected_calibration_error((logits / temperature).softmax(1), labels) == pytest.approx(
        0, abs=1e-12
    )
    printed = [
        published(f"muller-2019/ece/{place}/smoothed").value for place in ("cifar100", "imagenet", "en-de")
    ]
    assert (min(printed), max(printed)) == (0.019, 0.035)


def test_not_an_error_the_share_of_fine_errors_is_one_of_rounded_numbers():
    def number(quantity, condition):
        return published(f"response-2019/{quantity}/cifar100/{condition}").value

    shares = [number("fine-errors", which) / number("errors", which) for which in ("hard", "smoothed")]
    assert [round(100 * share, 1) for share in shares] == [43.4, 44.5]
    assert number("fine-share", "smoothed") == 0.446
    fine, coarse = 1217.4, 1514.6  # means of five runs that are printed as 1217, 1515 and together 2732
    assert [round(mean) for mean in (fine, coarse, fine + coarse)] == [
        number(quantity, "smoothed") for quantity in ("fine-errors", "coarse-errors", "errors")
    ]
    assert round(100 * fine / (fine + coarse), 1) == 44.6
    for condition in ("hard", "smoothed"):
        accuracy = 1 - number("errors", condition) / 10_000
        assert round(accuracy, 3) == published(f"muller-2019/accuracy/cifar100/{condition}").value
