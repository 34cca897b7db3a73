from __future__ import annotations

import importlib.metadata

import pytest

from softtargets.arrays import has_triton


@pytest.mark.parametrize(
    ("there", "known"),
    [
        ({"triton": "3.6.0"}, True),
        ({"triton": "3.3.0+git1234"}, True),
        ({"triton": "3.2.0"}, False),
        ({"triton": "2.9.9"}, False),
        ({"pytorch-triton": "3.4.0"}, True),
        ({"triton-windows": "3.3.1.post19"}, True),
        ({}, False),
    ],
)
def test_by_the_version_that_is_installed(there, known, monkeypatch):
    def version(name):
        if name not in there:
            raise importlib.metadata.PackageNotFoundError(name)
        return there[name]

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert has_triton() is known
