"""The plane through the templates of three tokens, by numpy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.translation import TokenStates, choose_tokens


@pytest.fixture(scope="module")
def model():
    generator = torch.Generator().manual_seed(8)
    templates = torch.randn(50, 16, generator=generator)
    labels = torch.randint(4, 30, (40, 12), generator=generator)
    states = 3 * templates[labels] + torch.randn(40, 12, 16, generator=generator)
    labels[:, 10:] = -100
    states[:, 10:] = float("nan")
    return templates, states, labels


def test_points_are_projections_by_numpy(model):
    templates, states, labels = model
    tokens = (7, 21, 12)
    kept = TokenStates(tokens)
    for start in range(0, 40, 16):
        kept.add(states[start : start + 16], labels[start : start + 16])
    names = {7: "▁the", 21: "▁a", 12: "dog"}
    view = kept.view(templates, names=names, most=None, net="LS", split="test")
    w = templates.double().numpy()[list(tokens)]
    basis, _ = np.linalg.qr(np.stack([w[0] - w[2], w[1] - w[2]], 1))
    flat, y = states.double().numpy().reshape(-1, 16), labels.numpy().reshape(-1)
    rows = flat[np.isin(y, tokens)]
    mine = rows @ basis
    assert view.classes == tokens
    assert view.names == ("▁the", "▁a", "dog")
    assert view.labels.tolist() == y[np.isin(y, tokens)].tolist()
    assert view.measures.examples == len(rows)
    # Axes may point the other way: distances and the share of the plane stay.
    assert np.abs(view.points.numpy()) == pytest.approx(np.abs(mine), abs=1e-4)
    assert kept.counts == {token: int((y == token).sum()) for token in tokens}


def test_the_choice_is_by_rule(model):
    templates, _, _ = model
    counts = np.zeros(50, dtype=int)
    counts[:4] = 10_000  # symbols
    counts[[10, 11, 12, 13, 14]] = [500, 400, 300, 200, 150]
    counts[40] = 99
    found = choose_tokens(templates, counts)
    frequent = [10, 11, 12, 13, 14]
    d = torch.cdist(templates, templates).numpy()
    pair = min(((a, b) for a in frequent for b in frequent if a < b), key=lambda p: d[p])
    third = max((c for c in frequent if c not in pair), key=lambda c: min(d[c, pair[0]], d[c, pair[1]]))
    assert found.classes == (*pair, third)
    assert choose_tokens(templates, counts, candidates=3, kind="far").kind == "far"
    assert set(choose_tokens(templates, counts, candidates=3).classes) == {10, 11, 12}
    assert set(choose_tokens(templates, torch.tensor(counts), candidates=3).classes) == {10, 11, 12}


def test_refusals(model):
    templates, states, labels = model
    with pytest.raises(SofttargetsError, match="only 0 have as many"):
        choose_tokens(templates, np.full(50, 99))
    with pytest.raises(SofttargetsError, match="kind must be close"):
        choose_tokens(templates, np.full(50, 99), "near")
    with pytest.raises(SofttargetsError, match=r"each of the 50 tokens, not \(3,\)"):
        choose_tokens(templates, np.ones(3))
    with pytest.raises(SofttargetsError, match="three different tokens"):
        TokenStates([4, 4, 5])
    kept = TokenStates([4, 5, 45])
    kept.add(states, labels)
    with pytest.raises(SofttargetsError, match="'x' does not occur"):
        kept.view(templates, names=["x"] * 50)
    with pytest.raises(ValueError, match="need states"):
        kept.add(states, labels[:, :3])
