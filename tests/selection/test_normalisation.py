from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.calibration import fold_of
from softtargets.selection import (
    NORMALISATION_FOLDS,
    POWERS,
    fit_normalisation,
    less_than_certain,
    normalised_logits,
    risk_coverage,
)


def made(n=1500, spread=1.0, seed=0, classes=10):
    """Logits whose lengths mean nothing, the more the larger the spread."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (n,), generator=random)
    clear = torch.rand(n, 1, generator=random, dtype=torch.float64)
    logits = (
        torch.randn(n, classes, generator=random, dtype=torch.float64)
        + 6 * clear * torch.eye(classes)[labels]
    )
    return logits * torch.exp(spread * torch.randn(n, 1, generator=random, dtype=torch.float64)), labels


def areas(logits, labels, rows):
    right = (logits.argmax(1) == labels)[rows]
    found = {None: risk_coverage(less_than_certain(logits, from_logits=True)[rows], right).aurc}
    return found | {p: risk_coverage(normalised_logits(logits, p)[rows], right).aurc for p in POWERS}


def test_p_is_chosen_by_a_plain_search_and_on_other_parts():
    logits, labels = made()
    found = fit_normalisation(logits, labels)
    everywhere = areas(logits, labels, slice(None))
    assert found.p == min(everywhere, key=everywhere.get)
    fold = fold_of(0, len(labels), NORMALISATION_FOLDS)
    for part, p in enumerate(found.held_out):
        others = areas(logits, labels, fold != part)
        assert p == min(others, key=others.get)
    assert found.is_better
    assert found.numbers()["aurc"] == pytest.approx(found.curve.aurc)


def test_where_one_p_is_chosen_for_all_the_difference_is_that_of_its_areas():
    logits, labels = made(5000)
    found = fit_normalisation(logits, labels)
    assert len(set(found.held_out)) == 1
    both = areas(logits, labels, slice(None))
    assert found.difference[0] == pytest.approx(both[found.held_out[0]] - both[None])


def test_where_parts_choose_differently_ranks_within_them_are_compared():
    for seed in range(20):
        logits, labels = made(300, spread=0.5, seed=seed)
        found = fit_normalisation(logits, labels)
        if len(set(found.held_out)) > 1:
            break
    assert len(set(found.held_out)) > 1
    fold = fold_of(0, 300, NORMALISATION_FOLDS).numpy()
    right = (logits.argmax(1) == labels).numpy()
    ranks = np.empty(300)
    for part, p in enumerate(found.held_out):
        score = less_than_certain(logits, from_logits=True) if p is None else normalised_logits(logits, p)
        score = score.numpy()[fold == part]
        ranks[fold == part] = [np.mean(score < s) + np.mean(score == s) / 2 for s in score]
    assert found.curve.aurc == pytest.approx(risk_coverage(ranks.round(12), right).aurc, rel=1e-9)


def test_where_probabilities_are_as_good_as_can_be_nothing_is_recommended():
    better = 0
    for seed in range(20):
        random = torch.Generator().manual_seed(seed)
        logits = 2 * torch.randn(800, 10, generator=random)
        labels = torch.multinomial(logits.softmax(1), 1, generator=random).squeeze(1)
        better += fit_normalisation(logits, labels).is_better
    assert better <= 1


def test_probabilities_serve_as_their_logarithms():
    logits, labels = made(classes=6)
    a = fit_normalisation(logits, labels)
    b = fit_normalisation(logits.softmax(1), labels, from_logits=False)
    assert (a.p, a.held_out) == (b.p, b.held_out)
    assert a.difference == pytest.approx(b.difference, abs=1e-3)


def test_zeros_of_a_forest_are_floored_and_do_not_break_anything():
    random = np.random.default_rng(0)
    votes = random.multinomial(20, [0.7, 0.1, 0.1, 0.1], size=500) / 20
    found = fit_normalisation(votes, (random.random(500) < 0.2).astype(int), from_logits=False)
    assert all(np.isfinite(found.difference))
    assert not found.is_better


@pytest.mark.parametrize(
    ("logits", "labels", "said"),
    [
        (torch.randn(200, 2), torch.zeros(200, dtype=torch.int64), "two classes"),
        (torch.randn(20, 5), torch.zeros(20, dtype=torch.int64), "20 examples are too few"),
        (torch.eye(3).repeat(50, 1), torch.arange(3).repeat(50), "all predictions are right"),
        (torch.eye(3).repeat(50, 1), torch.arange(1, 4).repeat(50) % 3, "all predictions are wrong"),
    ],
)
def test_where_there_is_nothing_to_choose_by_it_says_so(logits, labels, said):
    found = fit_normalisation(logits, labels)
    assert said in found.why_not
    assert not found.is_better
    assert found.numbers()["aurc_difference"] is None


def test_two_classes_have_no_order():
    assert len(normalised_logits(torch.tensor([[1.0, 0.0], [4.0, 1.0], [0.0, 9.0]]), 3).unique()) == 1
