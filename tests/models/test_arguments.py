from __future__ import annotations

import pytest

from softtargets.models.arguments import check_size


@pytest.mark.parametrize(("height", "width"), [(7, 8), (8, 7), (1, 100)])
def test_the_message_has_both_sides_the_reason_and_the_limit(height, width):
    with pytest.raises(
        ValueError, match=f"^images of {height} x {width} are too small: pools need at least 8 x 8$"
    ):
        check_size((3, height, width), 8, "pools")


def test_the_limit_itself_is_allowed_and_channels_do_not_count():
    check_size((1, 8, 8), 8, "pools")
