"""What the atlas gathers: of studies with and without results, whole, in part, or under other settings."""

from __future__ import annotations

import json

import pytest

from softtargets.atlas import OURS, SMALL, gather, tally
from softtargets.exceptions import StudyError
from softtargets.recipes import Digits

from .made_up import recorded, study


def test_a_study_without_results_is_not_run_yet(tmp_path):
    atlas = gather(tmp_path, [study()])
    assert [one.verdict for one in atlas.entries] == ["not run yet"] * 3
    assert [one.paper for one in atlas.entries] == ["muller-2019", "chen-2020", OURS]
    (origin,) = atlas.origins
    assert (origin.directory, origin.page, origin.made_of, origin.size) == ("", "", "0 of 3 runs", "full")
    assert {one.link for one in atlas.entries} == {""}


def test_claims_come_from_the_page_with_their_verdicts_numbers_and_places(tmp_path):
    chosen = study()
    recorded(tmp_path / "s", chosen)
    first, second, third = gather(tmp_path, [chosen]).entries
    assert (first.verdict, first.number, first.link) == ("reproduced", "inconclusive", "s/index.html#claim-1")
    assert (second.verdict, second.link) == ("contradicted", "s/index.html#claim-2")
    assert (third.verdict, third.number, third.id) == ("inconclusive", None, "s-claim-3")
    assert [item.printed for item in first.printed] == ["86.8 ± 0.2 %"]
    assert [item.printed for item in first.replication] == ["85.01 %"]
    assert first.judged.claim.deciding.mean == pytest.approx(0.5)
    assert first.judged.claim.interval == pytest.approx((0.2516, 0.7484), abs=1e-4)
    assert first.judged.claim.digits == 2  # as the study says
    assert 'id="claim-3"' in (tmp_path / "s" / "index.html").read_text()
    told = first.origin
    assert (told.size, told.made_of, told.device, told.small) == ("full", "3 runs", "NVIDIA H200", False)
    assert (told.code, told.answer) == ("0.1.0 (0123456789ab)", "Yes | it does.")


def test_part_of_the_runs_and_failed_ones(tmp_path):
    chosen = study()
    recorded(tmp_path / "s", chosen, (0.4, 0.5), failed=1, warnings=["Run x failed."])
    atlas = gather(tmp_path, [chosen])
    assert {one.verdict for one in atlas.entries} == {"not run yet"}
    assert {one.judged.reason for one in atlas.entries} == {"1 of the 3 seeds that decide"}
    assert (atlas.origins[0].made_of, atlas.origins[0].warnings) == ("1 of 3 runs", ("Run x failed.",))


def test_a_small_size_stands_apart(tmp_path):
    chosen = study()
    recorded(tmp_path / "s", chosen, size="small")
    atlas = gather(tmp_path, [chosen])
    assert {one.section for one in atlas.entries} == {SMALL}
    assert atlas.origins[0].size == "small"
    assert list(atlas.by_section()) == [SMALL]


def test_digits_are_of_no_paper(tmp_path):
    atlas = gather(tmp_path, [study(sizes=(), data=Digits())])
    assert {one.section for one in atlas.entries} == {SMALL}


def test_a_study_under_other_settings_is_another_row_of_the_same_study(tmp_path):
    chosen = study()
    wide = {"model.hidden": (16,)}
    recorded(tmp_path / "a-wide-one", chosen, changes=wide, command="softtargets study run s --set size=full")
    recorded(tmp_path / "s", chosen)
    recorded(tmp_path / "small-and-wide", chosen, changes=wide)
    atlas = gather(tmp_path, [chosen])
    own, other, last = atlas.origins
    assert (own.name, other.name, other.study, other.size) == ("s", "a-wide-one", "s", "other settings")
    assert (other.made_of, other.small) == ("3 runs", False)
    assert (last.size, last.small) == ("other settings", True)
    assert len(atlas.entries) == 9


def test_studies_without_claims_and_without_runs(tmp_path):
    silent = study("silent", claims=lambda found: ())
    computes = study("computes", sizes=(), trials=lambda settings: [], claims=lambda found: ())
    recorded(tmp_path / "computes", computes, ())
    atlas = gather(tmp_path, [silent, computes])
    assert (atlas.entries, [one.made_of for one in atlas.origins]) == (
        (),
        ["0 of 3 runs", "computed, no runs"],
    )
    assert sum(tally(atlas.entries).values()) == 0


def test_other_directories_are_left_alone(tmp_path):
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "results.json").write_text('{"kind": "calibrate"}')
    (tmp_path / "empty").mkdir()
    assert len(gather(tmp_path, [study()]).origins) == 1


def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(StudyError, match=r"there is no directory .*nowhere; give one .* --from"):
        gather(tmp_path / "nowhere")
    recorded(tmp_path / "s", study())
    with pytest.raises(
        StudyError, match=r"belongs to the study 's', which does not exist; remove that directory, or"
    ):
        gather(tmp_path, [study("other")])
    (tmp_path / "s" / "results.json").write_text("{")
    with pytest.raises(
        StudyError, match=r"results.json cannot be read: .*; write the page of its study again"
    ):
        gather(tmp_path, [study()])


def test_words_of_a_paper_that_have_changed_since_are_still_that_papers(tmp_path):
    chosen = study()
    path = recorded(tmp_path / "s", chosen) / "results.json"
    results = json.loads(path.read_text())
    results["claims"][1]["published"][0]["printed"] = "as it was once written"
    path.write_text(json.dumps(results))
    assert [one.paper for one in gather(tmp_path, [chosen]).entries] == ["muller-2019", "chen-2020", OURS]


def test_tables_and_figures_know_who_tests_them(tmp_path):
    named = study("muller-figure-2", claims=lambda found: ())
    chosen = study()
    recorded(tmp_path / "s", chosen)
    atlas = gather(tmp_path, [chosen, named])
    found = {(one.paper, one.name): one for one in atlas.exhibits}
    table = found["muller-2019", "table 2"]
    assert ([one.name for one in table.origins], table.verdicts, table.printed) == (["s"], ("reproduced",), 6)
    assert (table.beside, table.why) == (1, "")
    assert [one.name for one in found["muller-2019", "figure 2"].origins] == ["muller-figure-2"]
    assert found["muller-2019", "figure 3"].why == "no study yet"
    assert found["muller-2019", "table 1"].why == "quoted from other work"
    assert found["chen-2020", "figure 5"].verdicts == ("contradicted",)
    beside = {item for one in atlas.loose for item in one.items}
    assert not beside & {item for entry in atlas.entries for item in entry.judged.claim.published}
    assert any(one.source == "Müller et al. 2019, table 3" and "en-de" in one.setting for one in atlas.loose)
    assert not any("of other work" in item.setting or "quoted" in item.setting for item in beside)
