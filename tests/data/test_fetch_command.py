"""``softtargets data fetch`` and ``verify`` from the command line, against a server that misbehaves."""

from __future__ import annotations

import sys

import pytest

from data.test_fetch import CONTENT, kept
from softtargets.cli import main
from softtargets.data import CATALOGUE


@pytest.fixture
def toy(server, monkeypatch):
    """A dataset of one file in the catalogue; call it with what the server is to do."""

    def serve(content: bytes = CONTENT, **behaviour):
        monkeypatch.setitem(CATALOGUE, "toy", kept(server.serve("toy", content, **behaviour)))

    return serve


@pytest.fixture
def run(capsys):
    def run(*words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as leaving:
            main(words)
        out, err = capsys.readouterr()
        return int(leaving.value.code or 0), out, err

    return run


def test_piped_fetching_prints_plain_percentages_and_the_result_verifies(toy, run, tmp_path):
    toy()
    code, out, err = run("data", "fetch", "toy", "--to", str(tmp_path))
    assert code == 0
    assert out == f"toy is ready in {tmp_path} (1 file)\n"
    assert "toy/raw/file: 100 % of 0.3 MB" in err
    assert "\x1b" not in err
    assert run("data", "verify", "toy", "--data-dir", str(tmp_path))[0] == 0


def test_a_terminal_gets_a_bar(toy, run, tmp_path, monkeypatch):
    toy()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    code, out, _ = run("data", "fetch", "toy", "--to", str(tmp_path))
    assert code == 0
    assert "toy is ready" in out


def test_corrupt_bytes_are_refused_in_one_line_and_never_used(toy, run, tmp_path):
    toy(b"x" * len(CONTENT))
    code, out, err = run("data", "fetch", "toy", "--to", str(tmp_path))
    assert code == 2
    assert out == ""
    assert err.splitlines()[-1].startswith("error: ")
    assert "md5" in err
    assert not (tmp_path / "toy/raw/file").exists()
