from __future__ import annotations

import json

import pytest

from softtargets.exceptions import RecipeError, StudyError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.report import Section
from softtargets.runs import Run, RunStore
from softtargets.studies import STUDIES, Findings, Outcome, Results, Study, Trial, find_study, run_study

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)


def outcome(seed: int, value: float, tmp_path, **labels) -> Outcome:
    return Outcome(Trial(BASE.replace({"seed": seed}), labels), Run(tmp_path), {"m": value})


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


def test_samples_come_in_the_order_of_the_seeds(tmp_path):
    results = Results(tuple(outcome(seed, 10.0 + seed, tmp_path, a=1) for seed in (2, 0, 1)))
    assert results.sample("m", a=1).values == (10.0, 11.0, 12.0)
    assert results.first(a=1).measures["m"] == 10.0


def test_differences_pair_the_seeds_that_both_sides_have(tmp_path):
    left = [outcome(seed, 5.0 + seed, tmp_path, side="l") for seed in (0, 1, 3)]
    right = [outcome(seed, 1.0 * seed, tmp_path, side="r") for seed in (3, 1, 2)]
    assert Results((*left, *right)).difference("m", {"side": "l"}, {"side": "r"}).values == (5.0, 5.0)


def test_asking_for_what_no_run_gave_is_an_error(tmp_path):
    with pytest.raises(StudyError, match="no finished run with"):
        Results((outcome(0, 1.0, tmp_path, a=1),)).first(a=2)


def test_settings_change_the_base_recipes_and_refuse_what_the_study_varies():
    settings = study().settings(changes={"optimiser.lr": 0.5})
    assert study().trials(settings)[0].recipe.optimiser.lr == 0.5
    with pytest.raises(StudyError, match="varies seed itself; use --seeds"):
        study().settings(changes={"seed": 1})
    with pytest.raises(StudyError, match="it is what the study compares"):
        study(axes=("seed", "model")).settings(changes={"model": "cnn"})
    with pytest.raises(StudyError, match="needs at least one seed"):
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


def test_a_study_without_runs_asks_no_engine_and_still_makes_its_page(tmp_path):
    def refuse(*recipes, **how):
        raise AssertionError("there is nothing to train")

    computing = study(
        trials=lambda settings: [],
        findings=lambda results: Findings((Section("Said", (f"{len(results.outcomes)} outcomes",)),), ()),
    )
    store, settings = RunStore(tmp_path / "runs"), computing.settings()
    page = run_study(computing, settings, store, tmp_path / "report", command="c", train=refuse)
    assert "0 outcomes" in page.read_text()
    results = json.loads((page.parent / "results.json").read_text())
    assert results["provenance"]["runs"] == 0
    assert "device" not in results["provenance"]
    assert not (page.parent / "tables" / "runs.csv").exists()


def test_studies_are_found_by_name_and_names_are_unique():
    assert len({s.name for s in STUDIES}) == len(STUDIES)
    with pytest.raises(StudyError, match=r"no study 'quickstrat' \(did you mean 'quickstart'\?\)"):
        find_study(STUDIES, "quickstrat")


@pytest.mark.parametrize("known", STUDIES, ids=lambda s: s.name)
def test_every_study_declares_distinct_runs_for_every_seed(known):
    trials = known.trials(known.settings(seeds=3))
    if not trials:
        return  # it only computes; tests of its own say what
    assert {trial.recipe.seed for trial in trials} == {0, 1, 2}
    assert len({trial.recipe.id for trial in trials}) == len(trials)
    one = {trial.recipe.id for trial in known.trials(known.settings(seeds=1))}
    assert one <= {trial.recipe.id for trial in trials}, "more seeds must reuse the runs of fewer"
