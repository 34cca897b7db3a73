"""Which code a number is from, also where the code is a copy without its history."""

from __future__ import annotations

import pytest

import softtargets
from softtargets.exceptions import RunError
from softtargets.runs import provenance
from softtargets.runs.provenance import COMMIT, code_version, is_untraceable_copy

SOME = "0123456789abcdef" * 2 + "01234567"


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """The package as if it lay in a copy of its checkout that git knows nothing of."""
    package = tmp_path / "src" / "softtargets"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.setattr(softtargets, "__file__", str(package / "__init__.py"))
    monkeypatch.delenv(COMMIT, raising=False)
    code_version.cache_clear()
    yield tmp_path
    code_version.cache_clear()


def test_a_copy_without_git_has_no_commit_unless_one_is_stated(copy, monkeypatch):
    assert (code_version()["commit"], is_untraceable_copy()) == (None, True)
    monkeypatch.setenv(COMMIT, f" {SOME.upper()}\n")
    code_version.cache_clear()
    found = code_version()
    assert (found["commit"], found["uncommitted_changes"], is_untraceable_copy()) == (SOME, None, False)


@pytest.mark.parametrize("stated", ["main", SOME[:12], SOME + "0", "g" * 40])
def test_what_is_no_commit_is_refused_before_anything_is_trained(copy, monkeypatch, stated):
    monkeypatch.setenv(COMMIT, stated)
    with pytest.raises(RunError, match=f"SOFTTARGETS_COMMIT is '{stated}'.*git rev-parse HEAD"):
        code_version()


def test_an_installed_release_is_known_by_its_version(copy):
    (copy / "pyproject.toml").unlink()
    assert not is_untraceable_copy()


def test_git_knows_better_than_what_is_stated(copy, monkeypatch):
    answers = {"ls-files": "__init__.py", "rev-parse": "f" * 40, "status": " M losses.py"}
    monkeypatch.setattr(provenance, "_git", lambda directory, command, *rest: answers[command])
    monkeypatch.setenv(COMMIT, SOME)
    found = code_version()
    assert (found["commit"], found["uncommitted_changes"]) == ("f" * 40, True)
