"""Commands that train many runs, in several processes: the first does all that they do alone, once."""

from __future__ import annotations

from softtargets.runs import RunStore

from .launching import commanded, said, together

CAMPAIGN = "studies:\n  - {study: quickstart, seeds: 1, set: {epochs: 1, data.limit: 60}}\n"


def test_a_study_is_trained_by_all_and_its_page_written_by_one(tmp_path):
    where = ("--runs-dir", tmp_path / "runs", "--out", tmp_path / "page", "--device", "cpu")
    words = (
        "study",
        "run",
        "quickstart",
        "--seeds",
        "1",
        "--set",
        "epochs=1",
        "--set",
        "data.limit=60",
        *where,
    )
    assert together(2, commanded, *words, folder=tmp_path) == [0, 0]
    assert said(tmp_path, 0).endswith(f"report: {tmp_path}/page/index.html\n")
    assert said(tmp_path, 1) == ""
    found = RunStore(tmp_path / "runs").entries()
    assert {entry.status for entry in found} == {"finished"}
    runs = [RunStore(tmp_path / "runs").get(entry.id) for entry in found]
    assert all(run.provenance["ranks"] == [2] for run in runs)
    assert any(run.recipe.teacher is not None for run in runs)


def test_a_campaign_of_several_calls_of_the_engine_is_followed_to_its_end(tmp_path):
    (tmp_path / "campaign.yaml").write_text(CAMPAIGN)
    words = (
        "campaign",
        "run",
        tmp_path / "campaign.yaml",
        "--runs-dir",
        tmp_path / "runs",
        "--device",
        "cpu",
    )
    assert together(2, commanded, *words, folder=tmp_path) == [0, 0]
    assert "Nothing is left to train" in said(tmp_path, 0)
    assert said(tmp_path, 1) == ""
