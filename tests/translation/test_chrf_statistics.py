"""Intervals of chrF, against sacreBLEU on resampled texts."""

from __future__ import annotations

import numpy as np
import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.translation import chrf, chrf_interval

HYPOTHESES = ["the cat sat on the mat", "A dog", "", "birds fly high", "two men"] * 4
REFERENCES = ["the cat sat on a mat", "a dog barks", "nothing", "the bird flies", "two men"] * 4


@pytest.mark.parametrize("lowercase", [False, True])
def test_each_resample_is_the_score_of_its_sentences(lowercase):
    found = chrf_interval(HYPOTHESES, REFERENCES, resamples=50, seed=7, level=0.8, lowercase=lowercase)
    draw, scores = np.random.default_rng(7), []
    for _ in range(50):
        chosen = draw.integers(20, size=20)
        texts = ([side[place] for place in chosen] for side in (HYPOTHESES, REFERENCES))
        scores.append(chrf(*texts, lowercase=lowercase).value)
    assert found.value == pytest.approx(chrf(HYPOTHESES, REFERENCES, lowercase=lowercase).value)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(scores, [0.1, 0.9])))
    assert found.resamples == 50


@pytest.mark.parametrize(
    ("options", "says"),
    [({"resamples": 1}, "resamples must be at least 2"), ({"level": 1.0}, "level must lie")],
)
def test_refused(options, says):
    with pytest.raises(SofttargetsError, match=says):
        chrf_interval(HYPOTHESES, REFERENCES, **options)
