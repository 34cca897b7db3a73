from __future__ import annotations

from pathlib import Path

import pytest

from softtargets.data import data_directory
from softtargets.data import directory as module
from softtargets.data.directory import where


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for variable in ("SOFTTARGETS_DATA", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/ada")


def test_explicit_beats_environment_beats_cache(monkeypatch):
    monkeypatch.setenv("SOFTTARGETS_DATA", "/sets")
    assert data_directory("/mine") == Path("/mine")
    assert data_directory() == Path("/sets")
    assert "SOFTTARGETS_DATA" in where()[1]
    monkeypatch.setenv("SOFTTARGETS_DATA", "")
    assert data_directory() == Path("/home/ada/.cache/softtargets/data")


def test_the_home_directory_may_be_abbreviated(monkeypatch):
    assert data_directory("~/sets") == Path("/home/ada/sets")


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/cache"}, "/cache/softtargets/data"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/ada/.cache/softtargets/data"),
        ("darwin", {"XDG_CACHE_HOME": "/cache"}, "/home/ada/Library/Caches/softtargets/data"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/softtargets/data"),
        ("win32", {}, "/home/ada/AppData/Local/softtargets/data"),
    ],
)
def test_each_platform_has_its_own_cache(monkeypatch, platform, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(module.sys, "platform", platform)
    assert data_directory() == Path(expected)
