"""``softtargets results`` on the results that are committed, and on none."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from softtargets.claims import VERDICTS

from .command import ran

RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def listed(capsys, *words) -> dict:
    return json.loads(ran(capsys, "results", "--from", RESULTS, *words, "--json")[1])


def test_all_claims_are_listed_in_eighty_columns(capsys):
    code, out, err = ran(capsys, "results", "--from", RESULTS)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    assert "?" not in {line[3:4] for line in out.splitlines()}  # no sign that cannot be printed
    claims = listed(capsys)["claims"]
    assert sum(line.startswith("  ") and line[4:].startswith(VERDICTS) for line in out.splitlines()) == len(
        claims
    )
    assert out.startswith("Of ")
    assert "mnist-distillation (270 runs, NVIDIA H200)" in out


def test_filters_by_paper_and_verdict(capsys):
    everything = listed(capsys)["claims"]
    assert {one["verdict"] for one in listed(capsys, "--verdict", "contradicted")["claims"]} == {
        "contradicted"
    }
    assert listed(capsys, "--verdict", "not-run-yet") == listed(capsys, "--verdict", "not run yet")
    some = listed(capsys, "--paper", "muller-2019", "--verdict", "reproduced")["claims"]
    assert some == [
        one for one in everything if (one["paper"], one["verdict"]) == ("muller-2019", "reproduced")
    ]
    assert {one["results"] for one in listed(capsys, "--paper", "small")["claims"]} >= {"quickstart"}
    out = ran(capsys, "results", "--from", RESULTS, "--paper", "chen-2020", "--verdict", "contradicted")[1]
    assert "are listed." in out
    assert "✕ contradicted" in out
    assert "✓ reproduced" not in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--paper", "muler-2019"),
            "no paper or section has this name (did you mean 'muller-2019'?); there are:",
        ),
        (("--verdict", "proven"), "--verdict proven: there is no such verdict"),
        (("--check",), "--check needs --out"),
        (("--out", "x", "--paper", "ours"), "--out writes all claims"),
    ],
)
def test_refusals_say_what_there_is(capsys, words, said):
    code, out, err = ran(capsys, "results", "--from", RESULTS, *words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_directory_that_is_not_there(capsys, tmp_path):
    code, _, err = ran(capsys, "results", "--from", tmp_path / "none")
    assert code == 2
    assert "none; give one that has a directory for each study with --from" in err


def test_without_results_everything_waits(capsys, tmp_path):
    out = ran(capsys, "results", "--from", tmp_path)[1]
    assert "claims has been run yet." in out or "not run yet" in out
    assert "… not run yet" in out


def test_the_page_is_written_and_checked(capsys, tmp_path):
    there = tmp_path / "results"
    shutil.copytree(RESULTS / "quickstart", there / "quickstart")
    code, out, _ = ran(capsys, "results", "--from", there, "--out", there)
    assert (code, out) == (0, f"atlas: {there / 'index.html'}\n")
    assert {path.name for path in there.iterdir()} == {
        "quickstart",
        "index.html",
        "atlas.svg",
        "atlas-dark.svg",
        "atlas.json",
    }
    assert ran(capsys, "results", "--from", there, "--out", there, "--check") == (0, "", "")
    (there / "atlas.json").write_text("{}")
    code, _, err = ran(capsys, "results", "--from", there, "--out", there, "--check")
    assert code == 2
    assert (
        f"{there / 'atlas.json'} is not what the results give; write the atlas again with softtargets" in err
    )
    told = json.loads(ran(capsys, "results", "--from", there, "--out", there, "--json")[1])
    assert told == {"atlas": str(there / "index.html")}
