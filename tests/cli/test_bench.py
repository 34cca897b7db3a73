from __future__ import annotations

import pytest

import softtargets
from cli.command import ran


def test_words_go_to_the_benchmarks_as_they_are(capsys):
    code, _, err = ran(capsys, "bench", "losses", "--losses", "lobo")
    assert code == 2
    assert err == (
        "error: --losses: no 'lobo' (did you mean 'labo'?); allowed: cross_entropy, label_smoothing, labo, "
        "confidence_penalty, focal, anti_focal, distillation, prior, matrix, all\n"
    )


@pytest.mark.parametrize("words", [(), ("losses", "--help")])
def test_without_a_checkout_it_says_where_they_are(words, capsys, monkeypatch, tmp_path):
    package = tmp_path / "lib" / "site-packages" / "softtargets"
    monkeypatch.setattr(softtargets, "__file__", str(package / "__init__.py"))
    code, out, err = ran(capsys, "bench", *words)
    assert (code, out) == (2, "")
    assert err == (
        "error: the installed package has no benchmarks: run python -m benchmarks in a checkout of the "
        "source repository\n"
    )
