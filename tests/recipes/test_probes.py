from __future__ import annotations

import pytest

from softtargets.exceptions import RecipeError
from softtargets.recipes import BLEU, Calibration, Digits, Information, Recipe, Shift

from .making import plain_recipe


def watched(*probes, **changes):
    return plain_recipe(**({"augmentation": [Shift()], "probes": probes} | changes))


def test_defaults_are_those_of_the_paper_and_never_change():
    assert Information().to_dict() == {
        "name": "information", "every": 4000, "split": "train", "classes": [0, 5], "examples": 300, "draws": 5,
        "inner": "all",
    }  # fmt: skip
    assert watched("information") == watched(Information())
    assert watched(Information()).canonical()["probes"] == [{"name": "information"}]


def test_a_recipe_with_the_probe_survives_yaml():
    text = """
        data: digits
        model: mlp
        epochs: 1
        augmentation: [shift]
        probes: [{name: information, classes: [3, 8], examples: 40, every: 100}]
    """
    recipe = Recipe.from_yaml(text)
    assert recipe.probes == (Information(classes=(3, 8), examples=40, every=100),)
    assert Recipe.from_dict(recipe.to_dict()) == recipe


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": (4, 4)}, "classes: names class 4 twice"),
        ({"classes": (4,)}, r"classes: \[4\] has 1 items, not 2"),
        ({"classes": (-1, 4)}, r"classes\.0: -1 is out of range"),
        ({"draws": 1}, "draws: 1 is out of range: must be at least 2"),
        ({"examples": 0}, "examples: 0 is out of range: must be at least 1"),
        ({"split": "all"}, "split: 'all' is not known"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(RecipeError, match=message):
        Information(**options)


def test_information_without_augmentation_is_refused():
    with pytest.raises(
        RecipeError, match=r"probes\.1: the recipe has no augmentation, so the logit difference"
    ):
        watched(Calibration(), Information(), augmentation=[])
    assert watched(Calibration(), augmentation=[]).probes == (Calibration(),)


def test_information_on_a_split_that_is_not_there_is_refused():
    with pytest.raises(RecipeError, match=r"probes\.0\.split: there is no validation split"):
        watched(Information(split="validation"))
    assert watched(Information(split="validation"), data=Digits(validation=9)).probes[0].split == "validation"


def test_two_probes_that_would_write_the_same_names_are_refused():
    with pytest.raises(
        RecipeError, match=r"probes\.2\.classes: probes\.0 already measures \[0, 5\] on train"
    ):
        watched(Information(), Information(split="test"), Information(draws=9))
    several = [Information(), Information(classes=(5, 0)), Information(split="test")]
    assert watched(*several).probes == tuple(several)
    held_out = Digits(validation=9)
    with pytest.raises(
        RecipeError, match=r"probes\.1\.split: probes\.0 already measures translations of validation"
    ):
        watched(BLEU(every=10), BLEU(beam=5), data=held_out)
    several = [BLEU(every=10), BLEU(split="test")]
    assert watched(*several, data=held_out).probes == tuple(several)
