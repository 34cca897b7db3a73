from __future__ import annotations

import pytest

from softtargets.recipes import CNN, MLP, Digits, Multi30k, PreActResNet, Recipe, Transformer
from softtargets.runs import ENGINE, ENGINES, engine_of, environment, mixed_engines

PLAIN = Recipe(data=Digits(), model=MLP(), epochs=1)


def test_versions_are_counted_and_each_says_what_it_is():
    assert list(ENGINES) == list(range(1, ENGINE + 1))
    assert all(text.endswith(".") and len(text) > 40 for text in ENGINES.values())


def test_new_runs_say_which_version_made_them():
    assert environment("cpu")["engine"] == ENGINE


def test_one_version_needs_no_words():
    assert mixed_engines([]) == mixed_engines([(PLAIN, {}), (PLAIN.replace({"model": CNN()}), {})]) == []
    assert mixed_engines([(PLAIN, {"engine": 3})] * 2) == []


def test_versions_that_compute_a_recipe_alike_are_one():
    versions = [{"engine": 4}, {"engine": 5}]
    blocks, clipped = PLAIN.replace({"model": PreActResNet(depth=8)}), PLAIN.replace({"clip": 1.0})
    assert mixed_engines((PLAIN, version) for version in versions) == []
    assert mixed_engines((blocks, version) for version in versions)
    versions = [{"engine": 5}, {"engine": 6}]
    low = blocks.replace({"precision": "bf16"})
    assert mixed_engines((low, version) for version in versions) == []
    assert mixed_engines((clipped, version) for version in versions)
    (said,) = mixed_engines((clipped, {"engine": number}) for number in (4, 5, 5, 6))
    assert "(4: 1 run, 5: 2 runs, 6: 1 run)" in said
    (said,) = mixed_engines([(PLAIN, {"engine": 3}), (PLAIN, {"engine": 6}), (PLAIN, {"engine": 6})])
    assert "(3: 1 run, 6: 2 runs)" in said


def test_recipes_that_versions_concern_differently_are_no_mixture_where_one_version_made_all():
    """A page of many recipes, some of them clipped: the last version computes the others as versions before it did."""
    clipped, blocks = PLAIN.replace({"clip": 1.0}), PLAIN.replace({"model": PreActResNet(depth=8)})
    for engine in range(1, ENGINE + 1):
        assert mixed_engines((recipe, {"engine": engine}) for recipe in (PLAIN, clipped, blocks)) == []
    # The clipped one is of version 6, which computes the plain one of version 4 alike, and the other clipped one not.
    assert mixed_engines([(PLAIN, {"engine": 4}), (clipped, {"engine": 6})]) == []
    (said,) = mixed_engines([(PLAIN, {"engine": 4}), (clipped, {"engine": 6}), (clipped, {"engine": 4})])
    assert "(4: 2 runs, 6: 1 run)" in said


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_gradients_of_tables_are_added_up_otherwise_since_version_9(precision):
    tokens = Recipe(data=Multi30k(), model=Transformer(), epochs=1, batch=4096, precision=precision)
    for device, mixture in (("cuda", True), ("cpu", False)):
        made = [{"engine": engine, "device": device} for engine in (8, 9)]
        assert bool(mixed_engines((tokens, one) for one in made)) is mixture
    assert mixed_engines((PLAIN, {"engine": engine, "device": "cuda"}) for engine in (7, 9)) == []


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_convolutions_of_a_gpu_in_single_precision_are_others_since_version_6(precision):
    """They are asked to repeat their bits, for which NVIDIA's library may compute them in another way."""
    nets = PLAIN.replace({"model": CNN(), "precision": precision})
    for device, mixture in (("cuda", True), ("cuda:1", True), ("cpu", False)):
        made = [{"engine": engine, "device": device} for engine in (5, 6)]
        assert bool(mixed_engines((nets, one) for one in made)) is mixture
        moved = {"engine": 6, "device": device, "parts": [{"engine": 5}, {"engine": 6}]}
        assert bool(mixed_engines([(nets, moved)])) is mixture


def test_several_versions_are_counted():
    made = [{}, {"engine": 3}, {"engine": 3}, {"engine": 4}]
    (said,) = mixed_engines((PLAIN, provenance) for provenance in made)
    assert "1 or 2: 1 run, 3: 2 runs, 4: 1 run" in said


def test_a_run_of_before_is_of_the_first_two():
    assert engine_of({}) == "1 or 2"


def test_a_training_gone_on_with_by_another_version_is_a_mixture_in_itself():
    clipped = PLAIN.replace({"clip": 1.0})
    made = {"engine": 6, "parts": [{"engine": 5}, {"engine": 6}]}
    assert mixed_engines([(PLAIN, made)]) == []
    (said,) = mixed_engines([(clipped, made), (clipped, {"engine": 6})])
    assert "(5, then 6: 1 run, 6: 1 run)" in said
    assert mixed_engines([(clipped, {"engine": 6, "parts": [{}, {"engine": 6}]})]) == []
