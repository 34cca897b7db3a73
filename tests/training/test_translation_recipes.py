"""What is chosen for somebody who says nothing but where the text is."""

from __future__ import annotations

import pytest

from softtargets.data import Pairs
from softtargets.exceptions import SofttargetsError
from softtargets.recipes import LABO, CrossEntropy, LabelSmoothing, Multi30k
from softtargets.training import TRANSLATION_SIZES, translation_recipe, vocabulary_for

ORDINARY = "A man in a blue shirt is standing on a ladder."


def pairs(count):
    return Pairs((ORDINARY,) * count, (ORDINARY,) * count)


@pytest.mark.parametrize(
    ("count", "gpu", "size", "precision"),
    [
        (29_000, True, "small", "bf16"),
        (160_000, True, "iwslt", "bf16"),
        (1_200_000, True, "base", "bf16"),
        (29_000, False, "tiny", "fp32"),
        (160_000, False, "tiny", "fp32"),
    ],
)
def test_the_size_is_chosen_by_text_and_device_and_said(count, gpu, size, precision):
    choice = translation_recipe(Multi30k(), pairs(count), LabelSmoothing(), gpu=gpu)
    assert choice.size == size
    assert choice.recipe.precision == precision
    assert choice.recipe.model.width == TRANSLATION_SIZES[size][0]["width"]
    device = "GPU" if gpu else "CPU"
    assert f"Model: {size}, chosen for {count:,} training pairs on a {device}" in choice.reasons[0]
    assert f"{choice.recipe.epochs} epochs in batches of {choice.recipe.batch:,} tokens" in choice.reasons[1]


def test_published_sizes_are_as_published():
    base, iwslt = (TRANSLATION_SIZES[name][0] for name in ("base", "iwslt"))
    assert (base["width"], base["inner"], base["heads"], base["encoder_layers"]) == (512, 2048, 8, 6)
    assert (iwslt["width"], iwslt["inner"], iwslt["heads"], iwslt["dropout"]) == (512, 1024, 4, 0.3)


def test_what_is_given_is_taken():
    choice = translation_recipe(
        Multi30k(), pairs(500), CrossEntropy(), gpu=False, size="small", epochs=7, batch=900, seed=3
    )
    assert (choice.recipe.epochs, choice.recipe.batch, choice.recipe.seed) == (7, 900, 3)
    assert choice.reasons[0].startswith("Model: small, as asked: 4 + 4 layers of width 256")


@pytest.mark.parametrize("count", [30, 3000, 29_000, 500_000])
@pytest.mark.parametrize("gpu", [False, True])
def test_lengths_are_within_bounds(count, gpu):
    recipe = translation_recipe(Multi30k(), pairs(count), LABO(), gpu=gpu).recipe
    assert 3 <= recipe.epochs <= 100
    assert 512 <= recipe.batch <= 4096
    assert 10 <= recipe.schedule.warmup <= 4000
    assert 10 <= recipe.regulariser.warmup_steps <= 5000


def test_a_warm_up_of_labo_that_is_given_stays():
    recipe = translation_recipe(Multi30k(), pairs(300), LABO(warmup_steps=77, tau=1.15), gpu=False).recipe
    assert (recipe.regulariser.warmup_steps, recipe.regulariser.tau) == (77, 1.15)


def test_hours_on_a_cpu_are_announced():
    long = translation_recipe(Multi30k(), pairs(160_000), LabelSmoothing(), gpu=False, size="base", epochs=20)
    assert "There is no GPU here: we estimate that this takes" in long.reasons[-1]
    assert "hours on a CPU. --size tiny" in long.reasons[-1]
    short = translation_recipe(Multi30k(), pairs(300), LabelSmoothing(), gpu=False)
    on_gpu = translation_recipe(
        Multi30k(), pairs(160_000), LabelSmoothing(), gpu=True, size="base", epochs=20
    )
    assert not any("hour" in reason for reason in (*short.reasons, *on_gpu.reasons))


def test_an_unknown_size_is_refused():
    says = r"size must be one of tiny, small, iwslt, base, not bas \(did you mean 'base'\?\)"
    with pytest.raises(SofttargetsError, match=says):
        translation_recipe(Multi30k(), pairs(30), LabelSmoothing(), gpu=False, size="bas")


def test_a_vocabulary_holds_all_characters_and_more():
    assert vocabulary_for(pairs(100)) == 2000
    assert vocabulary_for(pairs(29_000)) == 8000
    many = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
    assert vocabulary_for(Pairs((many,), ("x",))) == 7000
