from __future__ import annotations

from softtargets.runs import ENGINE, ENGINES, engine_of, environment, mixed_engines


def test_versions_are_counted_and_each_says_what_it_is():
    assert list(ENGINES) == list(range(1, ENGINE + 1))
    assert all(text.endswith(".") and len(text) > 40 for text in ENGINES.values())


def test_new_runs_say_which_version_made_them():
    assert environment("cpu")["engine"] == ENGINE


def test_one_version_needs_no_words():
    assert mixed_engines([]) == mixed_engines([("mlp", {}), ("cnn", {})]) == []
    assert mixed_engines([("mlp", {"engine": 3})] * 2) == []


def test_versions_that_compute_a_model_alike_are_one():
    versions = [{"engine": 4}, {"engine": 5}]
    assert mixed_engines(("cnn", version) for version in versions) == []
    assert mixed_engines(("preact_resnet", version) for version in versions)


def test_several_versions_are_counted():
    made = [{}, {"engine": 3}, {"engine": 3}, {"engine": 4}]
    (said,) = mixed_engines(("mlp", provenance) for provenance in made)
    assert "1 or 2: 1 run, 3: 2 runs, 4: 1 run" in said


def test_a_run_of_before_is_of_the_first_two():
    assert engine_of({}) == "1 or 2"
