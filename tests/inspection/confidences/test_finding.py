"""Confidences in pieces and samples: the same numbers as of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from softtargets.calibration import measure_confidences
from softtargets.inspection.confidences import finding, words
from softtargets.inspection.confidences.page import confidences_page, summary_rows
from softtargets.predictions import confidences as reading
from softtargets.predictions import open_confidences
from softtargets.selection import risk_coverage


@pytest.fixture
def file(tmp_path):
    generator = np.random.default_rng(0)
    p = generator.beta(3, 1, 4000)
    right = generator.random(4000) < p**2
    np.savez(tmp_path / "a.npz", confidence=p, correct=right)
    return str(tmp_path / "a.npz"), p, right


def test_pieces_do_not_matter(file, monkeypatch):
    path, p, right = file
    monkeypatch.setattr(reading, "ROWS", 700)
    seen = []
    found = finding.inspect(
        open_confidences(path), told=lambda what, done, total: seen.append((what, done, total))
    )
    expected = measure_confidences(p, right)
    assert found.calibration.scalars() == pytest.approx(expected.scalars())
    assert found.selection.aurc == pytest.approx(risk_coverage(p, right).aurc)
    gap = p - right
    assert found.overconfidence.value == pytest.approx(gap.mean())
    assert found.overconfidence.high - found.overconfidence.low == pytest.approx(
        2 * 1.96 * gap.std(ddof=1) / np.sqrt(4000), rel=0.01
    )
    assert ("measuring", 700, 4000) in seen


def test_of_very_many_a_sample_is_ordered(file, monkeypatch):
    path, p, right = file
    monkeypatch.setattr(finding, "MOST_ORDERED", 1000)
    found = finding.inspect(open_confidences(path))
    assert 800 < found.selection.examples < 1200
    assert found.examples == 4000
    assert found.selection.aurc == pytest.approx(risk_coverage(p, right).aurc, rel=0.2)


def test_words_and_page(file):
    path, _, _ = file
    found = finding.inspect(open_confidences(path))
    verdict = words.verdict_on(found)
    assert verdict.headline == "Strongly overconfident"
    assert words.NO_CORRECTION in verdict.sentences
    page = confidences_page(found)
    assert [section.title for section in page.sections][:3] == [
        "Confidence against accuracy",
        "All metrics",
        "What to do",
    ]
    names = [name for name, _ in summary_rows(found)]
    assert {"ECE", "AURC", "accuracy"} <= set(names)
    assert not {"NLL", "Brier score", "top-5 accuracy"} & set(names)


def test_a_handful(tmp_path):
    np.savez(tmp_path / "a.npz", confidence=np.array([0.9, 0.8]), correct=np.array([1, 1]))
    found = finding.inspect(open_confidences(str(tmp_path / "a.npz")))
    assert found.examples == 2
    assert words.verdict_on(found).headline == "Too few examples to tell"
