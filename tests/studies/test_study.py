from __future__ import annotations

import pytest

from softtargets.exceptions import RecipeError, StudyError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.studies import STUDIES, Study, Trial, find_study

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)


def study(**changes) -> Study:
    parts = {
        "name": "s",
        "title": "t",
        "lead": "l",
        "papers": (),
        "trials": lambda settings: [Trial(settings.base(BASE), {})],
        "keep": ("test",),
        "measure": lambda trial, run: {},
        "findings": lambda results: None,
    }
    return Study(**(parts | changes))


def test_settings_change_the_base_recipes_and_refuse_what_the_study_varies():
    settings = study().settings(changes={"optimiser.lr": 0.5})
    assert study().trials(settings)[0].recipe.optimiser.lr == 0.5
    with pytest.raises(StudyError, match="varies seed itself; use --seeds"):
        study().settings(changes={"seed": 1})
    with pytest.raises(StudyError, match="it is what the study compares"):
        study(axes=("seed", "model")).settings(changes={"model": "cnn"})
    with pytest.raises(StudyError, match="--seeds must be at least 1, not 0"):
        study().settings(seeds=0)
    with pytest.raises(RecipeError, match=r"optimiser\.lrr: no such field"):
        study().trials(study().settings(changes={"optimiser.lrr": 0.5}))


def test_a_study_of_several_sizes_has_the_first_unless_told():
    sized = study(sizes=("small", "full"))
    assert sized.settings().size == "small"
    chosen = sized.settings(changes={"size": "full", "epochs": 3})
    assert (chosen.size, dict(chosen.changes)) == ("full", {"epochs": 3})
    with pytest.raises(StudyError, match=r"no such size \(did you mean 'full'\?\); it has: small, full"):
        sized.settings(changes={"size": "ful"})
    with pytest.raises(RecipeError, match="size: no such field"):
        study().trials(study().settings(changes={"size": "full"}))


def test_studies_are_found_by_name_and_names_are_unique():
    assert len({s.name for s in STUDIES}) == len(STUDIES)
    with pytest.raises(StudyError, match=r"no study 'quickstrat' \(did you mean 'quickstart'\?\)"):
        find_study(STUDIES, "quickstrat")


@pytest.mark.parametrize(
    ("short", "whole"),
    [
        ("muller-fig1", "muller-figure-1"),
        ("muller-fig-6", "muller-figure-6"),
        ("Muller-Tab2", "muller-table-2"),
        ("re-fig3", "wagner-figure-3"),
        ("re-tab3", "wagner-table-3"),
        ("labo-tab5", "labo-table-5"),
        ("cifar10-resnet56", "cifar10-resnet56"),
    ],
)
def test_studies_have_short_names(short, whole):
    assert find_study(STUDIES, short).name == whole


def test_a_short_name_of_nothing_is_refused_as_it_was_written():
    with pytest.raises(StudyError, match=r"no study 're-fig99'"):
        find_study(STUDIES, "re-fig99")
    there = [study(name="fig1"), study(name="figure-1")]
    assert find_study(there, "fig1").name == "fig1", "a study's own name comes first"


@pytest.mark.parametrize("known", STUDIES, ids=lambda s: s.name)
def test_every_study_declares_distinct_runs_for_every_seed(known):
    trials = known.trials(known.settings(seeds=3))
    if not trials:
        return  # it only computes; tests of its own say what
    # A pilot that chooses beforehand has seeds of its own.
    judging = [trial for trial in trials if trial.labels.get("role") != "pilot"]
    assert {trial.recipe.seed for trial in judging} == {0, 1, 2}
    # Parts of a page may share runs.
    assert len({(trial.labels.get("part"), trial.recipe.id) for trial in trials}) == len(trials)
    one = {trial.recipe.id for trial in known.trials(known.settings(seeds=1))}
    assert one <= {trial.recipe.id for trial in trials}, "more seeds must reuse the runs of fewer"
