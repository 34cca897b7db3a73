from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softtargets.theory import agreement, uniform_matrix
from softtargets.theory.agreement import agreeing

RATES = st.floats(0.001, 0.999)


@given(a=RATES, b=RATES, classes=st.integers(2, 50))
def test_it_is_the_diagonal_of_one_noise_after_the_other(a, b, classes):
    both = uniform_matrix(a, classes) @ uniform_matrix(b, classes)
    assert agreement(a, b, classes) == pytest.approx(both[0, 0], rel=1e-12)
    assert agreement(b, a, classes) == pytest.approx(agreement(a, b, classes), rel=1e-15)
    same, other = agreeing(np.array(a), np.array(b), np.array(float(classes)))
    assert same + other == pytest.approx(1, rel=1e-14)


def test_limits():
    assert agreement(0.3, 1.0, 7, limits=True) == 0.3
    assert agreement(0.0, 0.0, 3, limits=True) == 0.5
    assert agreement([0.5, 0.9], 0.5, 2).tolist() == [0.5, 0.5]
    with pytest.raises(ValueError, match="b must lie strictly between 0 and 1, not 1"):
        agreement(0.3, 1.0, 7)
