"""Runs of other machines: nothing doubled, nothing made worse, conflicts named, damage refused."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zipfile import ZipFile

import pytest
import torch

from softtargets.exceptions import RunError, StorageError
from softtargets.runs import (
    Measured,
    NotStoredError,
    Run,
    RunStore,
    export_logs,
    export_predictions,
    keep_measures,
    measured_by,
    merge_runs,
    pack_runs,
    read_measures,
)
from softtargets.runs.run import sealed

from .made import ABOUT, failed, finished, recipe, unfinished

COMMITTED = Path(__file__).parents[2] / "results"


@pytest.fixture
def there(tmp_path):
    """The store of another machine."""
    return RunStore(tmp_path / "there")


@pytest.fixture
def here(tmp_path):
    return RunStore(tmp_path / "here")


def packed(runs, tmp_path, *include, name="p.zip"):
    pack_runs(runs, tmp_path / name, include)
    return tmp_path / name


def counts(merged):
    return {key: len(found) for key, found in vars(merged).items() if found}


def files(store):
    """All that is in a store, but for what only saves time."""
    found = (path for path in store.root.rglob("*") if path.is_file() and path.name != "index.json")
    return {path.relative_to(store.root): path.read_bytes() for path in found}


def test_a_light_run_has_all_but_weights_and_logits(here, there, tmp_path):
    run = finished(there, 0)
    keep_measures(run, "s", Measured({"error": 0.25}, {"bins": [0.5]}, "c", "t"))
    merged = merge_runs(packed([run, failed(there, 1)], tmp_path), here)
    assert counts(merged) == {"added": 2}
    assert merged.is_whole
    light = here.find(recipe(0))
    assert light.is_light
    assert light.left_out.keys() == {"weights.safetensors", "predictions/test.safetensors"}
    assert (light.recipe, light.summary, light.provenance) == (run.recipe, run.summary, run.provenance)
    assert light.history() == run.history()
    assert light.problems() == []
    assert light.compact("test").codes.tolist() == run.compact("test").codes.tolist()
    assert light.compact("test").labels.tolist() == run.predictions("test").labels.tolist()
    assert measured_by(light, "s") == measured_by(run, "s")
    assert not light.has_predictions("test")
    assert light.has_compact("test")
    for ask in (light.weights, lambda: light.predictions("test"), lambda: light.kept("test")):
        with pytest.raises(
            NotStoredError, match=rf"run {light.id} is light: .*`softtargets runs pack --with "
        ):
            ask()
    assert not here.find(recipe(1)).is_light, "a failed run has no weights to leave out"
    assert [entry.light for entry in here.entries()].count(True) == 1
    assert [entry.light for entry in here.entries()].count(True) == 1  # from the index


def test_merging_twice_changes_nothing(here, there, tmp_path):
    pack = packed([finished(there, seed) for seed in range(3)], tmp_path)
    merge_runs(pack, here)
    before = files(here)
    assert counts(merge_runs(pack, here)) == {"unchanged": 3}
    assert files(here) == before


def test_packs_that_overlap_give_every_run_once(here, there, tmp_path):
    runs = [finished(there, seed) for seed in range(4)]
    merge_runs(packed(runs[:3], tmp_path), here)
    assert counts(merge_runs(packed(runs[1:], tmp_path), here)) == {"added": 1, "unchanged": 2}
    assert {entry.id for entry in here.entries()} == {run.id for run in runs}


def test_a_whole_run_is_never_degraded(here, there, tmp_path):
    finished(here, 0)
    before = files(here)
    assert counts(merge_runs(packed([finished(there, 0)], tmp_path), here)) == {"unchanged": 1}
    assert files(here) == before


@pytest.mark.parametrize("include", [("weights",), ("predictions",), ("weights", "predictions")])
def test_a_light_run_is_upgraded_by_what_it_lacks(here, there, tmp_path, include):
    run = finished(there, 0)
    merge_runs(packed([run], tmp_path), here)
    assert counts(merge_runs(packed([run], tmp_path, *include), here)) == {"upgraded": 1}
    found = here.find(recipe(0))
    assert found.problems() == []
    assert found.is_light is ("weights" not in include)
    assert found.has_predictions("test") is ("predictions" in include)
    if not found.is_light:
        assert torch.equal(found.weights()["head.weight"], run.weights()["head.weight"])
    if len(include) == 2:
        assert found.left_out == {}
        assert torch.equal(found.predictions("test").logits, run.predictions("test").logits)
    assert counts(merge_runs(packed([run], tmp_path), here)) == {"unchanged": 1}


def test_measures_of_further_studies_are_added_and_later_ones_taken_for_light_runs(here, there, tmp_path):
    run = finished(there, 0)
    keep_measures(run, "one", Measured({"m": 1.0}, {}, "c", "2026-01-01"))
    merge_runs(packed([run], tmp_path), here)
    keep_measures(run, "two", Measured({"n": float("inf")}, {}, "c", "2026-01-02"))
    keep_measures(run, "one", Measured({"m": 2.0}, {}, "d", "2026-01-03"))
    later = packed([run], tmp_path, name="later.zip")
    assert counts(merge_runs(later, here)) == {"unchanged": 1, "measured": 1}
    light = here.find(recipe(0))
    assert measured_by(light, "one").measures == {"m": 2.0}
    assert measured_by(light, "two").measures == {"n": float("inf")}
    assert counts(merge_runs(tmp_path / "p.zip", here)) == {"unchanged": 1}, "older ones change nothing"
    assert measured_by(light, "one").code == "d"
    whole = finished(RunStore(tmp_path / "third"), 0)
    keep_measures(whole, "one", Measured({"m": 9.0}, {}, "c", "2020-01-01"))
    merge_runs(later, RunStore(tmp_path / "third"))
    assert measured_by(whole, "one").measures == {"m": 9.0}, "a whole run is measured where it is"
    assert measured_by(whole, "two") is not None


def test_other_numbers_of_one_recipe_are_a_conflict_that_changes_nothing(here, there, tmp_path):
    merge_runs(packed([finished(there, 0)], tmp_path), here)
    before = files(here)
    other = finished(
        RunStore(tmp_path / "third"), 0, shift=0.5, engine=3, commit="fedcba", device_name="NVIDIA A100"
    )
    merged = merge_runs(packed([other], tmp_path, name="q.zip"), here)
    (conflict,) = merged.conflicts
    assert not merged.is_whole
    assert conflict.run == other.id
    assert conflict.differing == ("metrics", "predictions")
    assert "Here: finished, engine 3, commit 0123456789ab, NVIDIA H200" in str(conflict)
    assert "Offered: finished, engine 3, commit fedcba, NVIDIA A100" in str(conflict)
    assert "with --replace the offered run is taken instead" in str(conflict)
    assert files(here) == before


def test_predictions_alone_can_be_the_conflict(here, there, tmp_path):
    """Metrics that agree to the last digit, and predictions that do not."""
    first = finished(there, 0)
    merge_runs(packed([first], tmp_path), here)
    third = RunStore(tmp_path / "third")
    with third.claim(recipe(0)) as writer:
        kept = {"logits": -first.predictions("test").logits, "labels": first.predictions("test").labels}
        other = writer.finish({}, {"test": kept}, first.history(), first.provenance)
    (conflict,) = merge_runs(packed([other], tmp_path, name="q.zip"), here).conflicts
    assert conflict.differing == ("predictions",)


def test_a_failed_and_a_finished_run_are_a_conflict(here, there, tmp_path):
    failed(here, 0)
    run = finished(there, 0)
    (conflict,) = merge_runs(packed([run], tmp_path), here).conflicts
    assert conflict.differing == ("status",)
    assert counts(merge_runs(tmp_path / "p.zip", here, replace=True)) == {"replaced": 1}
    assert here.find(recipe(0)).status == "finished"


@pytest.mark.parametrize(
    ("whole", "engine", "why"),
    [
        (False, 4, ""),
        (False, 3, ""),
        (True, 4, "the offered run has no weights"),
    ],
)
def test_replacing_takes_what_is_no_worse(here, there, tmp_path, whole, engine, why):
    run = finished(here if whole else there, 0)
    keep_measures(run, "s", Measured({"m": 1.0}))
    if not whole:
        merge_runs(packed([run], tmp_path), here)
    other = finished(RunStore(tmp_path / "third"), 0, shift=0.5, engine=engine)
    merged = merge_runs(packed([other], tmp_path, name="q.zip"), here, replace=True)
    found = here.find(recipe(0))
    if why:
        assert why in str(merged.conflicts[0])
        assert found.history() == run.history()
    else:
        assert counts(merged) == {"replaced": 1}
        assert found.history() == other.history()
        assert found.problems() == []
        assert read_measures(found) == {}, "they were measured on the other one"
    assert [path.name for path in here.root.glob(".*")] == []


@pytest.mark.parametrize("first", [3, 4])
def test_of_two_engines_the_newer_ones_run_is_kept_in_whichever_order_they_come(here, there, tmp_path, first):
    """They come to different numbers by what they are: that is no conflict."""
    one = finished(there, 0, engine=first)
    other = finished(RunStore(tmp_path / "third"), 0, shift=0.5, engine=7 - first)
    merge_runs(packed([one], tmp_path), here)
    merged = merge_runs(packed([other], tmp_path, name="q.zip"), here)
    assert merged.is_whole
    assert counts(merged) == {"replaced" if first == 3 else "outdated": 1}
    assert here.find(recipe(0)).provenance["engine"] == 4


@pytest.mark.parametrize("engines", [(5, 6), (6, 5)])
def test_versions_that_compute_a_recipe_alike_have_no_excuse_for_other_numbers(
    here, there, tmp_path, engines
):
    """Versions 5 and 6 changed nothing for small networks without clipping."""
    one = finished(there, 0, engine=engines[0])
    other = finished(RunStore(tmp_path / "third"), 0, shift=0.5, engine=engines[1])
    merge_runs(packed([one], tmp_path), here)
    merged = merge_runs(packed([other], tmp_path, name="q.zip"), here)
    assert counts(merged) == {"conflicts": 1}
    assert f"engine {engines[1]}" in merged.conflicts[0].offered
    assert here.find(recipe(0)).history() == one.history()


def test_a_whole_run_does_not_give_way_to_numbers_of_a_newer_engine(here, tmp_path):
    run = finished(here, 0, engine=3)
    other = finished(RunStore(tmp_path / "third"), 0, shift=0.5, engine=4)
    (conflict,) = merge_runs(packed([other], tmp_path), here).conflicts
    assert "has no weights" in str(conflict)
    assert here.find(recipe(0)).history() == run.history()


def test_a_replacement_that_cannot_be_written_leaves_the_run_as_it_was(here, there, tmp_path, monkeypatch):
    merge_runs(packed([finished(there, 0)], tmp_path), here)
    before = files(here)
    other = finished(RunStore(tmp_path / "third"), 0, shift=0.5)
    pack = packed([other], tmp_path, name="q.zip")

    def full(*_):
        raise OSError("no space left")

    monkeypatch.setattr("softtargets.runs.merging._take_in", full)
    with pytest.raises(OSError, match="no space left"):
        merge_runs(pack, here, replace=True)
    assert files(here) == before


def test_unfinished_runs_go_on_from_whichever_checkpoint_is_further(here, there, tmp_path):
    run = unfinished(there, 0, step=40)
    pack = packed([run], tmp_path, "checkpoints")
    assert counts(merge_runs(pack, here)) == {"continued": 1}
    with here.claim(recipe(0)) as writer:
        restored = writer.restore()
    assert restored.progress == {"step": 40}
    assert restored.tensors["w"].tolist() == [40.0] * 3
    assert counts(merge_runs(pack, here)) == {"unchanged": 1}
    unfinished(here, 0, step=50)
    assert counts(merge_runs(pack, here)) == {"unchanged": 1}
    unfinished(here, 0, step=30)
    assert counts(merge_runs(pack, here)) == {"continued": 1}
    finished(here, 0)
    assert counts(merge_runs(pack, here)) == {"unchanged": 1}
    assert not (here.root / run.id / "checkpoint.safetensors").exists()


def test_a_finished_run_takes_the_place_of_an_unfinished_one_whose_checkpoint_stays(here, there, tmp_path):
    """Should its weights be needed, its training goes on from there; with weights there is nothing to go on for."""
    begun = unfinished(here, 0, step=40)
    run = finished(there, 0)
    assert counts(merge_runs(packed([run], tmp_path), here)) == {"added": 1}
    assert (begun.directory / "checkpoint.safetensors").exists()
    assert [entry.status for entry in here.entries()] == ["finished"]
    merge_runs(packed([run], tmp_path, "weights"), here)
    assert not (begun.directory / "checkpoint.safetensors").exists()


def test_a_run_that_is_being_written_is_named_and_skipped(here, there, tmp_path):
    runs = [finished(there, 0), finished(there, 1)]
    with here.claim(recipe(0)):
        merged = merge_runs(packed(runs, tmp_path), here)
    assert counts(merged) == {"added": 1, "busy": 1}
    assert merged.busy == [runs[0].id]
    assert counts(merge_runs(tmp_path / "p.zip", here)) == {"added": 1, "unchanged": 1}


def test_several_may_merge_at_the_same_time(here, there, tmp_path):
    pack = packed([finished(there, seed) for seed in range(12)], tmp_path)
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(lambda _: merge_runs(pack, here), range(3)))
    assert sum(len(merged.added) for merged in found) == 12
    assert not any(merged.conflicts or merged.refused for merged in found)
    assert [Run(here.root / entry.id).problems() for entry in here.entries()] == [[]] * 12


def test_a_damaged_run_in_the_store_is_named_and_no_other_is_affected(here, there, tmp_path):
    runs = [finished(there, seed) for seed in range(3)]
    merge_runs(packed(runs[:2], tmp_path), here)
    (here.root / runs[0].id / "metrics.jsonl").write_text("{}")
    (here.root / runs[1].id / "run.json").write_text("{}")
    merged = merge_runs(packed(runs, tmp_path), here)
    assert counts(merged) == {"added": 1, "refused": 2}
    assert all("softtargets runs delete" in sentence for sentence in merged.refused)


# What others may have done to a file


def rewritten(pack: Path, change, extra=()) -> Path:
    """The pack with members changed, and all checksums made right again."""
    with ZipFile(pack) as old:
        members = {name: old.read(name) for name in old.namelist()}
    members = {name: change(name, content) for name, content in members.items()}
    about = json.loads(members["pack.json"])
    for name in about["members"]:
        content = members[name]
        about["members"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    members["pack.json"] = json.dumps(sealed({k: v for k, v in about.items() if k != "sha256"})).encode()
    with ZipFile(pack, "w") as new:
        for name, content in [*members.items(), *extra]:
            new.writestr(name, content)
    return pack


def changed_log(change):
    def of(name, content):
        if name != "logs.jsonl.gz":
            return content
        lines = [change(json.loads(line)) for line in gzip.decompress(content).splitlines()]
        return gzip.compress("\n".join(json.dumps(line) for line in lines).encode())

    return of


@pytest.mark.parametrize("at", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_pack_is_refused_whole(here, there, tmp_path, at):
    pack = packed([finished(there, seed) for seed in range(3)], tmp_path)
    content = pack.read_bytes()
    pack.write_bytes(content[: int(at * len(content))])
    with pytest.raises(
        RunError, match=r"p\.zip is not a pack of runs, or is damaged: .* Nothing was merged from it"
    ):
        merge_runs(pack, here)
    assert here.entries() == []


def test_a_flipped_byte_is_refused_wherever_it_is(here, there, tmp_path):
    """Either the pack is refused or, if the byte means nothing, all runs are as they were."""
    runs = [finished(there, seed) for seed in range(2)]
    pack = packed(runs, tmp_path)
    content, refused = pack.read_bytes(), 0
    for place in range(0, len(content), len(content) // 60):
        pack.write_bytes(content[:place] + bytes([content[place] ^ 0x55]) + content[place + 1 :])
        here = RunStore(tmp_path / f"at-{place}")
        try:
            merged = merge_runs(pack, here)
        except RunError:
            refused += 1
            assert here.entries() == []
        else:
            assert counts(merged) == {"added": 2}
            assert all(here.get(run.id).history() == run.history() for run in runs)
    assert refused > 45


def test_damage_to_one_runs_weights_concerns_that_run_alone(here, there, tmp_path):
    runs = [finished(there, seed) for seed in range(2)]
    pack = packed(runs, tmp_path, "weights")
    target = f"files/{runs[0].id}/weights.safetensors"

    def change(name, content):
        return content[:-4] + b"abcd" if name == target else content

    merged = merge_runs(rewritten(pack, change), here)
    assert counts(merged) == {"added": 1, "refused": 1}
    assert runs[0].id in merged.refused[0]
    assert "weights.safetensors has changed since it was written" in merged.refused[0]
    assert not (here.root / runs[0].id).exists()


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/evil", "files/../../evil", "files\\..\\evil", "logs.jsonl", "files/x/lock"]
)
def test_members_that_are_not_listed_are_refused(here, there, tmp_path, name):
    pack = rewritten(packed([finished(there, 0)], tmp_path), lambda _, content: content, [(name, b"x")])
    with pytest.raises(RunError, match="has a member named"):
        merge_runs(pack, here)
    assert here.entries() == []
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("name", ["../../../evil", "run.json", "lock", "weights.safetensors/../../x"])
def test_files_that_no_run_has_are_refused(here, there, tmp_path, name):
    """Listed with a right checksum, and still no path of ours."""
    run = finished(there, 0)

    def change(member, content):
        if member != "pack.json":
            return content
        about = json.loads(content)
        told = {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}
        about["runs"][run.id]["files"][name] = told
        return json.dumps(about).encode()

    pack = rewritten(packed([run], tmp_path), change, [(f"files/{run.id}/{name}", b"x")])
    merged = merge_runs(pack, here)
    assert counts(merged) == {"refused": 1}
    assert "is not a file of a run" in merged.refused[0]
    assert not (here.root / run.id).exists()
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"id": "../../evil"}, "it lists no '../../evil'"),
        ({"status": "running"}, "does not describe a run"),
        ({"summary": {"test_loss": 0.0}}, "its summary is not its last row"),
        ({"history": "x"}, "does not describe a run"),
        ({"provenance": []}, "does not describe a run"),
        ({"recipe": {}}, "data"),
    ],
)
def test_lines_that_are_of_no_run_are_refused_and_the_others_taken(here, there, tmp_path, change, what):
    runs = [finished(there, seed) for seed in range(2)]
    pack = packed(runs, tmp_path)
    edit = changed_log(lambda line: {**line, **change} if line["id"] == runs[0].id else line)
    merged = merge_runs(rewritten(pack, edit), here)
    assert counts(merged) == {"added": 1, "refused": 1}
    assert what in merged.refused[0]


def test_a_recipe_of_another_run_is_refused(here, there, tmp_path):
    run = finished(there, 0)
    edit = changed_log(lambda line: {**line, "recipe": recipe(1).to_dict()})
    merged = merge_runs(rewritten(packed([run], tmp_path), edit), here)
    assert f"its recipe belongs to run {recipe(1).id}" in merged.refused[0]


@pytest.mark.parametrize(
    ("about", "what"),
    [
        ({"engine": [1]}, r"the engine \[1\], which is not a whole number"),
        ({"engine": "7"}, "the engine '7'"),
        ({"engine": True}, "the engine True"),
        ({"images": "many"}, "the images 'many'"),
        ({"device_name": None}, "has no device_name"),
        ({"parts": [5, 6]}, "parts that are not parts of a training"),
        ({"parts": [{"engine": [5]}]}, "a part whose engine is not a whole number"),
        ({"softtargets": {}}, "has no softtargets"),
    ],
)
def test_a_run_that_does_not_tell_where_its_numbers_come_from_is_refused(here, there, tmp_path, about, what):
    """Its page could not be made."""
    pack = packed([finished(there, 0, **about), finished(there, 1)], tmp_path)
    merged = merge_runs(pack, here)
    assert counts(merged) == {"added": 1, "refused": 1}
    (refused,) = merged.refused
    assert re.search(what, refused)


def test_a_run_without_seconds_is_refused(here, there, tmp_path):
    pack = packed([finished(there, 0)], tmp_path)
    told = {key: value for key, value in ABOUT.items() if key != "seconds"}
    merged = merge_runs(rewritten(pack, changed_log(lambda run: run | {"provenance": told})), here)
    assert "has no seconds" in merged.refused[0]


def test_names_of_studies_are_no_paths(here, there, tmp_path):
    run = finished(there, 0)
    keep_measures(run, "s", Measured({"m": 1.0}))

    def change(name, content):
        return content.replace(b'"s":', b'"../../evil":') if name == "measures.json" else content

    merged = merge_runs(rewritten(packed([run], tmp_path), change), here)
    assert "its measures are not listed by study" in merged.refused[0]
    assert not list(tmp_path.rglob("evil*"))


def test_a_pack_of_a_version_to_come_is_refused(here, there, tmp_path):
    def change(name, content):
        return json.dumps({**json.loads(content), "format": 2}).encode() if name == "pack.json" else content

    with pytest.raises(RunError, match="its format is 2, and this version reads 1"):
        merge_runs(rewritten(packed([finished(there, 0)], tmp_path), change), here)


def test_logs_that_unpack_to_more_than_is_allowed_are_refused(here, there, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.runs.offers._MOST_LOGS", 1 << 20)

    def change(name, content):
        return gzip.compress(b" " * (1 << 24)) if name == "logs.jsonl.gz" else content

    with pytest.raises(RunError, match="it has more than 1 MiB"):
        merge_runs(rewritten(packed([finished(there, 0)], tmp_path), change), here)


# Directories of results


def page_of(directory, runs, **results):
    """What `softtargets study run` leaves beside a page."""
    directory.mkdir(parents=True)
    export_logs(runs, directory / "logs.jsonl.gz")
    rows = [
        {"run": run.id, "alpha": 0.1, "seed": 0, "status": run.status, "m": 0.5, "n": None} for run in runs
    ]
    told = {
        "study": "a-study",
        "provenance": {"made": "2026-11-16", "softtargets": "0.1.0 (abc)"},
        "tables": {"runs": [{**row, "seconds": 1.0} for row in rows]},
        "kept": {"details": {runs[0].id: {"bins": [1]}}},
    } | results
    (directory / "results.json").write_text(json.dumps(told))


def test_a_results_directory_is_merged_with_what_was_measured(here, there, tmp_path):
    runs = [finished(there, 0), finished(there, 1)]
    page_of(tmp_path / "results" / "one", runs)
    export_predictions(runs[:1], tmp_path / "results" / "one" / "predictions.npz")
    page_of(tmp_path / "results" / "two", runs[:1], study="other")
    (tmp_path / "results" / "README.md").write_text("words")
    merged = merge_runs(tmp_path / "results", here)
    assert counts(merged) == {"added": 2, "unchanged": 1, "measured": 1}
    first, second = (here.find(recipe(seed)) for seed in (0, 1))
    assert (first.is_light, second.is_light) == (True, True)
    assert first.compact("test").says_the_same_as(runs[0].compact("test"))
    assert not second.has_compact("test")
    with pytest.raises(
        NotStoredError, match="came from the results of a page, without predictions on 'train'"
    ):
        first.predictions("train")  # whether there ever were any, the page does not tell
    assert measured_by(first, "a-study") == Measured({"m": 0.5}, {"bins": [1]}, "0.1.0 (abc)", "2026-11-16")
    assert read_measures(first).keys() == {"a-study", "other"}
    assert counts(merge_runs(packed(runs, tmp_path), here)) == {"upgraded": 1, "unchanged": 1}
    assert second.id != first.id
    assert here.find(recipe(1)).has_compact("test")


def test_packs_of_teachers_beside_pages_add_to_the_runs_of_these(here, there, tmp_path):
    runs = [finished(there, 0), finished(there, 1)]
    page_of(tmp_path / "results" / "page", runs)
    (tmp_path / "results" / "teachers").mkdir()
    path = tmp_path / "results" / "teachers" / f"{runs[0].id}.zip"
    pack_runs(runs[:1], path, splits={runs[0].id: ("test",)})
    assert counts(merge_runs(tmp_path / "results", here)) == {"added": 2, "upgraded": 1}
    found = [here.find(recipe(seed)) for seed in (0, 1)]
    assert [(run.is_light, run.has_predictions("test")) for run in found] == [(True, True), (True, False)]
    assert [problem for run in found for problem in run.problems()] == []


def test_a_directory_without_runs_says_so(here, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="has no runs to merge: no packs"):
        merge_runs(tmp_path / "empty", here)
    finished(RunStore(tmp_path / "store"), 0)
    with pytest.raises(RunError, match=r"is itself a directory of runs; put them into a file first"):
        merge_runs(tmp_path / "store", here)
    with pytest.raises(StorageError, match=r"cannot read .*nowhere\.zip"):
        merge_runs(tmp_path / "nowhere.zip", here)


def test_a_results_directory_with_damaged_files_is_refused(here, there, tmp_path):
    page_of(tmp_path / "r", [finished(there, 0)])
    (tmp_path / "r" / "logs.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(RunError, match="is not a pack of runs, or is damaged"):
        merge_runs(tmp_path / "r", here)
    shutil.rmtree(tmp_path / "r")
    page_of(tmp_path / "r", [finished(RunStore(tmp_path / "x"), 0)], study="../x")
    with pytest.raises(RunError, match="is not the name of a study"):
        merge_runs(tmp_path / "r", here)


def test_committed_results_merge_cleanly_and_in_seconds(here):
    """Every run under results/, a thousand in a quarter of a minute at the very most."""
    lines = 0
    for logs in COMMITTED.glob("*/logs.jsonl.gz"):
        lines += len(gzip.decompress(logs.read_bytes()).splitlines())
    started = time.monotonic()
    merged = merge_runs(COMMITTED, here)
    seconds = time.monotonic() - started
    assert (merged.refused, merged.conflicts) == ([], [])
    by_engines = len(merged.replaced) + len(merged.outdated)  # which of two comes first is a matter of names
    assert len(merged.added) + len(merged.unchanged) + len(merged.upgraded) + by_engines == lines
    assert all(entry.light for entry in here.entries() if entry.status == "finished")
    assert seconds < 0.05 * lines + 10
