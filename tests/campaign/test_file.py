"""The file of a campaign, and what is said of one that cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from softtargets.campaign import load_campaign
from softtargets.exceptions import CampaignError, RecipeError

from .making import campaign_of

TINY = {"study": "tiny"}


def test_entries_are_ranked_and_complete(tmp_path):
    campaign = campaign_of(
        tmp_path,
        {"study": "tiny", "seeds": 1, "why": "first\nof all"},
        {"study": "tiny", "seeds": 3, "only": {"role": "smoothed", "alpha": [0.2]}},
        {"study": "empty"},
        planned=["later"],
    )
    assert [entry.rank for entry in campaign.entries] == [1, 2, 3]
    assert [len(entry.trials) for entry in campaign.entries] == [3, 3, 0]
    assert {trial.labels["alpha"] for trial in campaign.entries[1].trials} == {0.2}
    assert (campaign.entries[0].why, campaign.entries[0].settings.size) == ("first of all", "short")
    assert campaign.planned == ("later",)


def test_entries_of_one_page_are_one_grid_with_the_most_seeds(tmp_path):
    own = {"study": "tiny", "size": "long", "page": "tiny-long", "set": {"batch": 16}}
    campaign = campaign_of(tmp_path, TINY, own, {**TINY, "seeds": 3})
    first, second = campaign.pages
    assert (first.name, first.settings.seeds, len(first.entries)) == ("tiny", 3, 2)
    assert (second.name, second.settings.size) == ("tiny-long", "long")
    assert second.command == "softtargets study run tiny --seeds 1 --set size=long --set batch=16"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"study": "tinny"}, r"entry 2 \(tinny\): there is no study 'tinny' \(did you mean 'tiny'\?\)"),
        ("tiny", "entry 2 names no study"),
        ({"seeds": 3}, "entry 2 names no study"),
        (
            {**TINY, "seed": 3},
            r"entry 2 \(tiny\) has no field 'seed' \(did you mean 'seeds'\?\); allowed: study, size",
        ),
        ({**TINY, "seeds": 0}, "seeds must be a whole number of at least 1, not 0"),
        ({**TINY, "seeds": True}, "seeds must be a whole number of at least 1, not True"),
        ({**TINY, "seeds": 1.5}, "seeds must be a whole number of at least 1, not 1.5"),
        ({**TINY, "size": "ful"}, "this study has no size 'ful'; it has: short, long"),
        ({"study": "empty", "size": "full"}, "it comes in one size"),
        ({**TINY, "set": {"size": "long"}}, "write the size beside the study"),
        ({**TINY, "set": ["epochs"]}, r"set must be a mapping, as in set: \{name: value\}, not \['epochs'\]"),
        ({**TINY, "set": {"epohcs": 3}}, r"entry 2 \(tiny\): epohcs: no such field .*did you mean 'epochs'"),
        ({**TINY, "set": {"seed": 3}}, r"\(tiny\): set seed: the study 'tiny' varies seed itself"),
        ({**TINY, "only": "smoothed"}, "only must be a mapping"),
        ({**TINY, "only": {"rule": "student"}}, r"no cell has the label 'rule' \(did you mean 'role'\?\)"),
        ({**TINY, "only": {"role": "students"}}, r"no cell has role: students \(did you mean 'student'\?\)"),
        ({**TINY, "only": {"role": "student", "alpha": 0.1}}, "no cell has all of"),
        ({**TINY, "why": 3}, "why must be text, not 3"),
        ({**TINY, "page": "../x"}, "must be the name of a directory, without slashes"),
        ({**TINY, "size": "long"}, "entry 1 has the page 'tiny' with another study, size or set"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path, entry, words):
    with pytest.raises(CampaignError, match=words):
        campaign_of(tmp_path, TINY, entry)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "needs a list of entries under 'studies:'"),
        ("studies: []", "has no entries"),
        ("studies: {study: tiny}", "needs a list of entries"),
        ("studies: [{study: tiny}]\nplaned: [x]", r"has no part 'planed' \(did you mean 'planned'\?\)"),
        ("studies: [{study: tiny}]\nplanned: x", "must be a list of names"),
    ],
)
def test_a_file_of_another_shape_is_refused(tmp_path, text, words):
    from .making import STUDIES

    path = tmp_path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(CampaignError, match=words):
        load_campaign(path, STUDIES)


def test_what_is_planned_must_not_exist(tmp_path):
    with pytest.raises(CampaignError, match="the study 'curious' exists now; move it from 'planned'"):
        campaign_of(tmp_path, TINY, planned=["curious"])


def test_a_file_that_is_not_there_or_no_yaml(tmp_path):
    with pytest.raises(CampaignError, match=r"campaign.yaml does not exist; give the file"):
        load_campaign(tmp_path / "campaign.yaml")
    (tmp_path / "campaign.yaml").write_text("studies: [")
    with pytest.raises(RecipeError, match="not readable YAML on line 1"):
        load_campaign(tmp_path / "campaign.yaml")


def test_the_campaign_of_this_repository_can_be_run():
    """Every study in it exists, in its size; and every study that was planned has got its entry."""
    campaign = load_campaign(Path(__file__).parents[2] / "results" / "campaign.yaml")
    assert len(campaign.entries) >= 10
    computing = {"chen-theory", "wagner-table-5"}
    assert all(entry.trials or entry.study.name in computing for entry in campaign.entries)


def test_no_entry_of_this_repository_has_more_seeds_than_its_study_decides_by():
    """Those that choose included: further seeds cost as much as the others and decide nothing."""
    campaign = load_campaign(Path(__file__).parents[2] / "results" / "campaign.yaml")
    more = {
        f"entry {entry.rank} ({entry.study.name}): {entry.settings.seeds} seeds, where {entry.study.seeds} decide"
        for entry in campaign.entries
        if entry.settings.seeds > entry.study.seeds
    }
    assert not more
