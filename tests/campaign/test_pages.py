"""Pages of a campaign: what is there of each study, and what lies beside it."""

from __future__ import annotations

import gzip
import json

import pytest

from softtargets.campaign import cells_of, choose_pages, write_pages
from softtargets.exceptions import CampaignError
from softtargets.runs import RunStore, merge_runs, recomputed
from softtargets.training import train

from .making import BASE, PARTS, STUDIES, Study, campaign_of, session_of


def pages_of(campaign, root, out):
    said = []
    written, failed = write_pages(campaign.pages, RunStore(root), out, said.append, device="cpu")
    return written, failed, said


def results(path):
    return json.loads((path.parent / "results.json").read_text())


def test_a_page_has_all_that_is_there_at_the_campaigns_seeds(tmp_path):
    campaign = campaign_of(
        tmp_path, {"study": "tiny", "seeds": 1}, {"study": "tiny", "seeds": 2}, {"study": "curious"}
    )
    cells = list(cells_of(campaign).values())
    train(
        [cell.recipe for cell in cells[:4]], RunStore(tmp_path / "runs"), device="cpu", keep=("train", "test")
    )
    (tiny, curious), failed, said = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    assert failed == []
    found = results(tiny)
    assert found["command"] == "softtargets study run tiny --seeds 2 --set size=short"
    assert any("3 of 6 runs have not been trained" in warning for warning in found["warnings"])
    lines = gzip.decompress((tiny.parent / "logs.jsonl.gz").read_bytes()).splitlines()
    logged = [json.loads(line)["id"] for line in lines]
    assert sorted(logged) == sorted(cell.recipe.id for cell in cells[:4] if cell.studies)
    assert set(recomputed(tiny.parent / "predictions.npz")) == set(logged)
    assert curious.parent.name == "curious"
    assert said[0].startswith("tiny: 3 runs, ")


def test_light_runs_make_the_same_page(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny", "seeds": 2})
    session_of(campaign, tmp_path / "runs", pack=tmp_path / "p.zip").run()
    merge_runs(tmp_path / "p.zip", RunStore(tmp_path / "light"))
    (whole,), _, _ = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    (light,), failed, _ = pages_of(campaign, tmp_path / "light", tmp_path / "out-light")
    assert failed == []
    assert results(whole)["claims"] == results(light)["claims"]
    assert (whole.parent / "logs.jsonl.gz").read_bytes() == (light.parent / "logs.jsonl.gz").read_bytes()
    assert recomputed(whole.parent / "predictions.npz") == recomputed(light.parent / "predictions.npz")


def test_what_goes_wrong_with_one_is_named_and_the_others_are_written(tmp_path):
    def broken(results):
        raise KeyError("oops")

    studies = (Study(**{**PARTS, "name": "broken", "findings": broken}), *STUDIES)
    entries = ({"study": "broken"}, {"study": "tiny"}, {"study": "curious", "seeds": 1, "set": {"epochs": 1}})
    campaign = campaign_of(tmp_path, *entries, studies=studies)
    session_of(campaign_of(tmp_path, {"study": "tiny"}), tmp_path / "runs").run()
    written, failed, said = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    assert [path.parent.name for path in written] == ["tiny"]
    assert failed == ["broken: KeyError('oops')"]
    assert "curious: no run is finished yet." in said


def test_a_page_never_loses_runs_that_it_has(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny"})
    session_of(campaign, tmp_path / "runs").run()
    (page,), _, _ = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    before = page.read_bytes()
    first = BASE.replace({"regulariser": {"name": "label_smoothing", "alpha": 0.1}})
    RunStore(tmp_path / "runs").delete(first.id)
    written, failed, _ = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    assert written == []
    assert "has 1 run that the store lacks" in failed[0]
    assert f"softtargets runs merge {tmp_path / 'out' / 'tiny'}" in failed[0]
    assert page.read_bytes() == before
    merge_runs(tmp_path / "out" / "tiny", RunStore(tmp_path / "runs"))
    assert pages_of(campaign, tmp_path / "runs", tmp_path / "out")[1] == []


def forget(root, *runs):
    """As if these light runs had been made for another study."""
    for run in runs:
        (root / run / "measures" / "tiny.json").unlink()


def test_a_page_never_loses_numbers_that_it_has(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny"})
    session_of(campaign, tmp_path / "runs", pack=tmp_path / "p.zip").run()
    (page,), _, _ = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    before = page.read_bytes()
    merge_runs(tmp_path / "p.zip", RunStore(tmp_path / "light"))
    forget(tmp_path / "light", BASE.replace({"regulariser": {"name": "label_smoothing", "alpha": 0.1}}).id)
    written, failed, _ = pages_of(campaign, tmp_path / "light", tmp_path / "out")
    assert written == []
    assert "has numbers of 1 run that have since been trained again" in failed[0]
    assert page.read_bytes() == before
    # Elsewhere there is nothing to lose, and the others make a page.
    (other,), failed, _ = pages_of(campaign, tmp_path / "light", tmp_path / "elsewhere")
    assert failed == []
    assert any("never measured by this study" in warning for warning in results(other)["warnings"])


def test_runs_of_another_study_make_no_page(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny"})
    session_of(campaign, tmp_path / "runs", pack=tmp_path / "p.zip").run()
    merge_runs(tmp_path / "p.zip", RunStore(tmp_path / "light"))
    forget(tmp_path / "light", *(cell.recipe.id for cell in cells_of(campaign).values() if cell.studies))
    written, failed, said = pages_of(campaign, tmp_path / "light", tmp_path / "out")
    assert (written, failed) == ([], [])
    assert said == ["tiny: no run has been measured yet."]
    assert not (tmp_path / "out" / "tiny").exists()


def test_a_study_that_only_computes_has_its_page_without_runs(tmp_path):
    study = Study(**{**PARTS, "name": "thinks", "trials": lambda settings: [], "sizes": ()})
    campaign = campaign_of(tmp_path, {"study": "thinks"}, studies=(study,))
    (page,), failed, _ = pages_of(campaign, tmp_path / "runs", tmp_path / "out")
    assert (page.exists(), failed) == (True, [])
    assert not (page.parent / "logs.jsonl.gz").exists()


def test_one_study_may_be_chosen(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny"}, {"study": "tiny", "size": "long", "page": "slow"})
    assert [page.name for page in choose_pages(campaign, "tiny")] == ["tiny", "slow"]
    assert [page.name for page in choose_pages(campaign, "slow")] == ["slow"]
    with pytest.raises(CampaignError, match=r"no study 'tini' \(did you mean 'tiny'\?\); it has: tiny, slow"):
        choose_pages(campaign, "tini")
