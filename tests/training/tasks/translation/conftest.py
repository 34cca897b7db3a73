from __future__ import annotations

import pytest

from .counting import write_corpus


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """A data directory with a small corpus in it."""
    return write_corpus(tmp_path_factory.mktemp("data"))
