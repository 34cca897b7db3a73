"""Table 5 of LABO: ImageNet's recipes, and claims on numbers that were never measured."""

from __future__ import annotations

import pytest

from softtargets.claims import judge, published
from softtargets.recipes import LABO, SGD, Flip, ImageNet, ResizedCrop, ResNet, Step
from softtargets.studies import STUDIES, Results, find_study

from .labo import made_up

STUDY = find_study(STUDIES, "labo-table-5")
METHODS = ["hard", "ls", "tf-reg", "beta-ls", "kr-ls", "labo"]


def test_recipes_are_those_of_the_paper():
    trials = STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full"}))
    assert [trial.labels["method"] for trial in trials] == METHODS * 2
    assert [trial.recipe.model for trial in trials] == [ResNet(depth=50)] * 6 + [ResNet(depth=152)] * 6
    for trial in trials:
        recipe = trial.recipe
        assert recipe.data == ImageNet(size=512, keep="picture", standardise="channel")
        assert recipe.augmentation == (ResizedCrop(size=224), Flip())
        assert recipe.optimiser == SGD(lr=0.1, momentum=0.9, weight_decay=1e-4)
        assert recipe.schedule == Step(milestones=(30, 60, 80), factor=0.1, unit="epoch")
        assert (recipe.epochs, recipe.batch, recipe.precision) == (90, 256, "bf16")
    assert trials[5].recipe.regulariser == LABO(warmup_steps=5000)


def test_without_runs_it_says_so():
    found = STUDY.findings(Results(()))
    assert found.answer.startswith("Not known yet")
    assert {one.verdict for one in judge(found.claims)} == {"not run yet"}
    table = found.sections[0].exhibits[0]
    assert [table.columns[1].show(row["printed"]) for row in table.rows][-1] == "76.55 %"
    assert {table.columns[2].show(row["accuracy"]) for row in table.rows} == {"–"}


@pytest.mark.parametrize(
    ("gain", "verdicts", "value"),
    [
        (0.74, ["reproduced", "reproduced"], "reproduced"),
        (3.0, ["reproduced", "reproduced"], "contradicted"),
        (-1.0, ["reproduced", "contradicted"], "contradicted"),
    ],
)
def test_claims_stand_and_fall(gain, verdicts, value):
    def numbers(labels, seed):
        hard = 100 * published(f"lu-2023/accuracy/imagenet-{labels['model']}/hard").value
        return {"accuracy": (hard + (gain if labels["method"] == "labo" else 0) + 0.01 * seed) / 100}

    judged = judge(STUDY.claims(made_up(STUDY, numbers)))
    assert [one.verdict for one in judged] == verdicts * 2
    assert judged[1].value == value
