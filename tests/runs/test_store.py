from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from forking import finish, start
from softtargets.data import load
from softtargets.exceptions import RunError, StorageError
from softtargets.recipes import MLP, Digits, LabelSmoothing, Recipe
from softtargets.runs import Checkpoint, Run, RunStore, check_filter, export_logs
from softtargets.runs import store as module
from softtargets.runs.run import sealed
from softtargets.storage import acquire, fingerprint
from softtargets.training import train as train_anywhere

# These tests compare bits, and fork; both are for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")

NOBODY = 65534


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


@pytest.fixture
def run(recipe, store):
    (run,) = train([recipe.replace({"epochs": 1})], store)
    return run


def fabricate(store: RunStore, count: int) -> None:
    """Finished runs as small files, without training them."""
    for number in range(count):
        recipe = Recipe(
            data=Digits(),
            model=MLP(hidden=(8,)),
            regulariser=LabelSmoothing(alpha=number % 10 / 10),
            epochs=1 + number % 7,
            seed=number,
        )
        directory = store.root / recipe.id
        directory.mkdir(parents=True)
        (directory / "recipe.json").write_text(json.dumps(recipe.to_dict()))
        manifest = {
            "format": 1,
            "id": recipe.id,
            "status": "finished",
            "summary": {"test_accuracy": 0.9},
            "provenance": {"seconds": 1.0, "finished": f"2026-01-01T00:00:{number % 60:02d}+00:00"},
            "files": {},
        }
        (directory / "run.json").write_text(json.dumps(manifest))


def test_what_was_listed_once_is_read_from_the_index(store, monkeypatch):
    """So nobody waits for thousands of runs: of those that did not change, no file is opened again."""
    fabricate(store, 200)
    read, one = [], module._read_entry
    monkeypatch.setattr(
        module, "_read_entry", lambda directory: read.append(directory.name) or one(directory)
    )
    for _ in range(3):
        assert len(store.entries({"regulariser.alpha": 0.3, "model": "mlp"})) == 20
    assert len(read) == len(set(read)) == 200
    (store.root / read[7] / "run.json").touch()
    assert len(store.entries()) == 200
    assert read[200:] == [read[7]]


def test_the_files_are_the_truth_and_the_index_can_be_lost_or_damaged(store):
    fabricate(store, 20)
    listed = store.entries()
    index = store.root / "index.json"
    content = json.loads(index.read_text())
    later = json.dumps(content | {"format": 2})
    for entry in content["runs"].values():
        entry["entry"]["a field of a later version"] = 1
    strange = ("{", '{"a": 1}', "[]", later, json.dumps(content))
    for damage in (index.unlink, *(lambda text=text: index.write_text(text) for text in strange)):
        damage()
        assert store.entries() == listed
    name = next(iter(json.loads(index.read_text())["runs"]))
    manifest = json.loads((store.root / name / "run.json").read_text())
    manifest["summary"]["test_accuracy"] = 0.123456
    (store.root / name / "run.json").write_text(json.dumps(manifest))
    assert {e.id: e.summary for e in store.entries()}[name] == {"test_accuracy": 0.123456}


def test_a_manifest_that_changed_is_read_again_whichever_of_time_and_size_tells(store):
    """Clocks of file systems are coarse, and a copy may keep the time of what it replaces."""
    fabricate(store, 3)
    name = store.entries()[0].id
    path = store.root / name / "run.json"
    before = path.stat()
    text = path.read_text()
    for accuracy, keep in ((0.123, "time"), (0.7, "size")):
        path.write_text(text.replace("0.9", str(accuracy)))
        if keep == "time":
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        else:
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
        assert (path.stat().st_size == before.st_size) == (keep == "size")
        assert (path.stat().st_mtime_ns == before.st_mtime_ns) == (keep == "time")
        assert {entry.id: entry.summary for entry in store.entries()}[name] == {"test_accuracy": accuracy}
        path.write_text(text)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert {entry.id: entry.summary for entry in store.entries()}[name] == {"test_accuracy": 0.9}


def test_deleted_runs_leave_the_listing(store):
    fabricate(store, 3)
    first = store.entries()[0].id
    assert store.delete(first[:8]) == first
    assert first not in {entry.id for entry in store.entries()}
    assert len(store.entries()) == 2


def test_listing_an_empty_or_missing_directory_is_empty(store):
    assert store.entries() == []
    assert not store.root.exists(), "looking must not create anything"


def test_runs_are_found_by_the_beginning_of_their_id(run, store):
    assert store.get(run.id[:4]).id == run.id
    with pytest.raises(RunError, match="no run 'zzzz'"):
        store.get("zzzz")
    for last in "ab":
        (store.root / ("0123456789abcde" + last)).mkdir()
    with pytest.raises(RunError, match="could be any of 2 runs"):
        store.get("01234")
    for short in ("", run.id[:3]):
        with pytest.raises(RunError, match="is too short: give at least the first 4 digits"):
            store.delete(short)


def test_a_filter_on_a_field_no_run_has_is_refused_with_the_nearest(store):
    fabricate(store, 2)
    assert store.entries({"regulariser.alpa": 0.1}) == []
    with pytest.raises(RunError, match=r"'regulariser\.alpa' \(did you mean 'regulariser\.alpha'\?\)"):
        check_filter(store.entries(), {"regulariser.alpa": 0.1})


@pytest.mark.parametrize("name", ["weights.safetensors", "metrics.jsonl", "predictions/test.safetensors"])
def test_a_truncated_file_is_named_with_what_to_do(name, run, recipe, store):
    other = train([recipe.replace({"seed": 9, "epochs": 1})], store)[0]
    path = run.directory / name
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(RunError, match=f"{path} has .* bytes, not .*softtargets runs delete {run.id}"):
        train([run.recipe], store)
    read = {
        "weights.safetensors": run.weights,
        "metrics.jsonl": run.history,
        "predictions/test.safetensors": lambda: run.predictions("test"),
    }
    with pytest.raises(RunError, match=r"damaged\. Other runs are not affected"):
        read[name]()
    assert other.problems() == []
    store.delete(run.id)
    assert train([run.recipe], store)[0].problems() == []


def test_a_changed_byte_is_found_by_verification(run):
    path = run.directory / "weights.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert run.problems(thorough=False) == []
    assert run.problems() == [f"{path} has changed since it was written"]


def test_weights_that_are_not_safetensors_are_refused(run):
    path = run.directory / "weights.safetensors"
    path.write_bytes(b"\x80\x04" + b"x" * (path.stat().st_size - 2))
    with pytest.raises(RunError, match="has changed since it was written"):
        run.weights()
    manifest = json.loads((run.directory / "run.json").read_text())
    manifest["files"]["weights.safetensors"] = fingerprint(path)
    (run.directory / "run.json").write_text(json.dumps(sealed(manifest)))
    with pytest.raises(RunError, match="cannot be read"):
        Run(run.directory).weights()


def test_a_number_edited_in_the_metrics_is_not_believed(run):
    path = run.directory / "metrics.jsonl"
    path.write_text(path.read_text().replace("0.", "1.", 1))
    with pytest.raises(RunError, match="has changed since it was written"):
        run.history()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: (d / "run.json").write_text('{"status": "finished", "files": {}, "provenance": {}}'),
        lambda d: (d / "run.json").write_text(
            '{"status": "finished", "files": [], "provenance": {}, "summary": {}}'
        ),
        lambda d: (d / "run.json").write_text("[1]"),
        lambda d: ((d / "run.json").unlink(), (d / "run.json").mkdir()),
        lambda d: (d / "recipe.json").write_text("[]"),
        lambda d: (d / "recipe.json").write_bytes(b"\xff\xfe"),
    ],
)
def test_one_odd_run_neither_hides_the_others_nor_breaks_the_listing(spoil, run, recipe, store):
    (other,) = train([recipe.replace({"epochs": 1, "seed": 3})], store)
    spoil(run.directory)
    assert {entry.id: entry.status for entry in store.entries()} == {run.id: "damaged", other.id: "finished"}
    try:
        problems = Run(run.directory).problems()
    except RunError as error:
        problems = [str(error)]
    assert problems
    assert store.delete(run.id) == run.id
    assert [entry.id for entry in store.entries()] == [other.id]


def test_a_file_or_a_link_that_looks_like_a_run_is_left_alone(run, store, tmp_path):
    file = store.root / ("f" * 16)
    file.write_text("mine")
    link = store.root / ("e" * 16)
    link.symlink_to(run.directory)
    for path in (file, link):
        with pytest.raises(RunError, match="remove"):
            store.delete(path.name)
    assert file.read_text() == "mine"
    assert run.problems() == []


def write_and_fail(recipe, root, enough):
    """Claim and conclude a run again and again, while somebody deletes it, until there is a file that says enough."""
    while not enough.exists():
        writer = RunStore(root).claim(recipe)
        if writer is not None:
            with writer:
                if not writer.finished:
                    writer.fail("on purpose", [], {"seconds": 0.0})


def test_deleting_and_writing_at_once_never_leaves_half_a_run(recipe, store, tmp_path):
    enough = tmp_path / "enough"
    child = start(write_and_fail, recipe, store.root, enough)
    deleted = 0
    while deleted < 10 and child.is_alive():
        try:
            store.delete(recipe.id)
            deleted += 1
        except RunError:  # not there, or just being written
            continue
    enough.touch()
    assert finish(child) == 0, "the writer lost a run it had claimed"
    assert deleted == 10
    found = store.find(recipe)
    assert found is None or found.problems() == []
    assert not list(store.root.glob(".deleted-*"))


def test_a_missing_file_is_named(run):
    (run.directory / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match=r"metrics\.jsonl is missing"):
        run.history()


def test_a_recipe_edited_by_hand_is_refused(run, store):
    path = run.directory / "recipe.json"
    original = path.read_text()
    tree = json.loads(original)
    tree["optimiser"]["lr"] = 0.2
    path.write_text(json.dumps(tree))
    with pytest.raises(RunError, match=r"recipe\.json was edited by hand"):
        _ = run.recipe
    path.write_text(original[: len(original) // 2])
    with pytest.raises(RunError, match="is damaged or was edited by hand"):
        type(run)(run.directory).recipe  # noqa: B018
    path.write_text(original)
    assert train([run.recipe], store)[0].problems() == []


def test_a_checkpoint_of_another_format_is_not_guessed_at(recipe, store):
    with store.claim(recipe) as writer:
        writer.checkpoint(Checkpoint({"x": torch.zeros(1)}, {"step": 3}))
        assert writer.restore().progress == {"step": 3}
        path = store.root / recipe.id / "checkpoint.safetensors"
        save_file({"x": torch.zeros(1)}, path, {"format": "99", "progress": "{}"})
        with pytest.raises(RunError, match="its format is 99, not 2"):
            writer.restore()


def test_an_edited_recipe_of_an_unfinished_run_is_not_trained_on(recipe, store):
    with store.claim(recipe):
        pass
    path = store.root / recipe.id / "recipe.json"
    path.write_text(path.read_text().replace('"batch": 32', '"batch": 16'))
    with pytest.raises(RunError, match="was edited by hand"):
        train([recipe], store)


def test_a_damaged_checkpoint_is_named_with_what_to_do(recipe, store):
    with store.claim(recipe):
        (store.root / recipe.id / "checkpoint.safetensors").write_bytes(b"half a checkpo")
    with pytest.raises(RunError, match=f"cannot be read .*softtargets runs delete {recipe.id}"):
        train([recipe], store)
    store.delete(recipe.id)
    assert train([recipe], store)[0].status == "finished"


def test_a_run_being_written_is_listed_as_running_and_cannot_be_deleted(recipe, store):
    writer = store.claim(recipe)
    assert store.claim(recipe) is None
    assert [entry.status for entry in store.entries()] == ["running"]
    with pytest.raises(RunError, match="is being written right now"):
        store.delete(recipe.id)
    with writer:
        pass
    assert [entry.status for entry in store.entries()] == ["empty"]


def look_and_train(recipe, root, there):
    """As a user who may read the runs but not write them."""
    store = RunStore(root)
    load("digits", "train")  # what it imports may lie where only root can read
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
    assert [entry.id for entry in store.entries()] == [there]
    with pytest.raises(StorageError, match="permission denied; choose another directory"):
        train([recipe], store)
    assert store.get(there).problems() == []


def test_a_read_only_directory_is_one_clear_error_and_can_still_be_listed(run, recipe, store):
    # pytest makes its directories for one user only; the child must be able to look in.
    for path in [run.directory, *store.root.parents]:
        if Path(tempfile.gettempdir()) in path.parents:
            path.chmod(0o755)
    (store.root / "index.json").unlink(missing_ok=True)
    store.root.chmod(0o555)
    try:
        assert finish(start(look_and_train, recipe.replace({"seed": 5}), store.root, run.id)) == 0
    finally:
        store.root.chmod(0o755)


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 200 kB, where this user may mount one."""
    target = tmp_path / "disk"
    target.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(target)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    yield target
    subprocess.run(["umount", str(target)], check=True)


def test_a_disk_that_is_really_full_is_one_clear_error_and_finished_runs_survive(recipe, tiny_disk):
    store = RunStore(tiny_disk)
    small = recipe.replace({"epochs": 1})
    train([small.replace({"seed": 50})], store)
    with pytest.raises(StorageError, match="the disk is full"):
        train([small.replace({"seed": seed}) for seed in range(20)], store)
    entries = store.entries()
    finished = [entry for entry in entries if entry.status == "finished"]
    assert finished
    assert all(store.get(entry.id).problems() == [] for entry in finished)
    assert not list(tiny_disk.rglob("*.tmp"))
    store.delete(finished[0].id)
    survivors = train([small.replace({"seed": 100})], store)
    assert survivors[0].problems() == []


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest["summary"].update(test_accuracy=0.999),
        lambda manifest: manifest["summary"].update(test_accuracy=float("nan")),
        lambda manifest: manifest.update(id="0" * 16),
    ],
    ids=["a number", "NaN", "the id"],
)
@pytest.mark.parametrize("old", [False, True], ids=["sealed", "of before seals"])
def test_a_manifest_edited_by_hand_is_not_believed(change, old, run, recipe, store):
    path = run.directory / "run.json"
    manifest = json.loads(path.read_text())
    if old:
        del manifest["sha256"]
        path.write_text(json.dumps(manifest))
    assert Run(run.directory).problems() == []
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=r"run.json .* is damaged"):
        Run(run.directory).problems()
    with pytest.raises(RunError, match="is damaged"):
        store.find(run.recipe)
    assert [entry.status for entry in store.entries()] == ["damaged"]


def test_where_a_run_was_made_cannot_be_edited_either(run):
    path = run.directory / "run.json"
    text = path.read_text()
    changed = re.sub(r'"threads": \d+', '"threads": 99', text)
    assert changed != text
    path.write_text(changed)
    with pytest.raises(RunError, match="has changed since it was written"):
        _ = Run(run.directory).provenance


def test_a_manifest_is_sealed_again_when_predictions_are_added(run, store):
    with store.claim(run.recipe) as writer:
        again = writer.add_predictions("validation", {"logits": torch.zeros(2, 3)})
    assert again.problems() == []
    assert again.has_predictions("validation")


@pytest.mark.parametrize("place", [0.1, 0.5, 0.9, "step", "history", "format", "crc32"])
def test_a_flipped_bit_of_a_checkpoint_is_noticed(recipe, store, place):
    tensors = {"weights": torch.arange(60.0).reshape(6, 10), "step": torch.tensor(3), "none": torch.zeros(0)}
    tensors["half"] = torch.ones(4, dtype=torch.bfloat16)
    progress = {"step": 12, "history": [{"loss": 0.25}]}
    with store.claim(recipe) as writer:
        writer.checkpoint(Checkpoint(tensors, progress))
        found = writer.restore()
        assert found.progress == progress
        assert all(torch.equal(found.tensors[name], tensor) for name, tensor in tensors.items())
        path = store.root / recipe.id / "checkpoint.safetensors"
        content = bytearray(path.read_bytes())
        if isinstance(place, str):
            at = content.index(place.encode())
            at = next(n for n in range(at, len(content)) if chr(content[n]).isdigit())
            content[at] ^= 2
        else:
            data = 8 + int.from_bytes(content[:8], "little")
            content[data + int(place * (len(content) - data))] ^= 16
        path.write_bytes(content)
        with pytest.raises(RunError, match="cannot be read"):
            writer.restore()


def test_a_checkpoint_of_before_checksums_is_resumed_with_a_note(recipe, store):
    with store.claim(recipe) as writer:
        path = store.root / recipe.id / "checkpoint.safetensors"
        save_file({"a": torch.ones(2)}, path, {"format": "1", "progress": '{"step": 3}'})
        with pytest.warns(UserWarning, match="written by a version without checksums"):
            assert writer.restore().progress == {"step": 3}


@pytest.mark.parametrize("name", ["run.json", "recipe.json"])
@pytest.mark.parametrize(
    ("how", "spoil"),
    [
        ("brackets", lambda path: path.write_text("[" * 100_000)),
        ("a pipe", lambda path: (path.unlink(), os.mkfifo(path))),
        (
            "text",
            lambda path: path.write_text(
                path.read_text().replace('"finished": "', '"finished": 5, "was": "')
            ),
        ),
        (
            "text",
            lambda path: path.write_text(
                path.read_text().replace('"seconds": ', '"seconds": "abc", "was": ')
            ),
        ),
    ],
)
def test_one_bad_manifest_does_not_block_the_store(name, how, spoil, run, recipe, store):
    (other,) = train([recipe.replace({"epochs": 1, "seed": 9})], store)
    spoil(run.directory / name)
    listed = {entry.id: entry.status for entry in store.entries()}
    assert listed[other.id] == "finished"
    assert listed[run.id] == "damaged" or (name == "recipe.json" and "text" in how)
    assert store.delete(run.id) == run.id


@pytest.mark.parametrize("content", ["[" * 100_000, "pipe", "entry"])
def test_a_bad_index_is_read_over(content, run, store):
    path = store.root / "index.json"
    before = store.entries()
    if content == "pipe":
        path.unlink()
        os.mkfifo(path)
    elif content == "entry":
        index = json.loads(path.read_text())
        index["runs"][run.id]["entry"]["finished"] = 5
        path.write_text(json.dumps(index))
    else:
        path.write_text(content)
    assert store.entries() == before


def test_a_run_that_is_being_made_or_deleted_is_not_damaged(recipe, store):
    directory = store.root / recipe.id
    directory.mkdir(parents=True)
    assert [entry.status for entry in store.entries()] == ["empty"]
    lock = acquire(directory / "lock")
    assert [entry.status for entry in store.entries()] == ["running"]
    lock.release()
    assert module._read_entry(store.root / ("0" * 16)) is None


def test_a_run_that_somebody_else_deletes_is_gone(recipe, store, monkeypatch):
    monkeypatch.setattr(store, "get", lambda prefix: Run(store.root / recipe.id))
    with pytest.raises(RunError, match="is gone: another process deleted it"):
        store.delete(recipe.id)


def test_damaged_runs_are_left_out_of_an_export_if_asked_for(run, recipe, store, tmp_path):
    (other,) = train([recipe.replace({"epochs": 1, "seed": 9})], store)
    (run.directory / "metrics.jsonl").write_text("{}\n")
    with pytest.raises(RunError, match="metrics"):
        export_logs([run, other], tmp_path / "logs.jsonl")
    damaged: list[str] = []
    assert export_logs([run, other], tmp_path / "logs.jsonl", damaged) == 1
    assert "metrics.jsonl" in damaged[0]
    assert json.loads((tmp_path / "logs.jsonl").read_text())["id"] == other.id


def test_a_file_that_cannot_be_read_is_one_problem_among_others(run, monkeypatch):
    def refuse(path):
        if path.name == "weights.safetensors":
            raise StorageError(f"cannot read {path}: input/output error")
        return fingerprint(path)["sha256"]

    monkeypatch.setattr("softtargets.runs.run.digest", refuse)
    (run.directory / "metrics.jsonl").unlink()
    found = run.problems()
    assert [words in text for words, text in zip(("is missing", "input/output error"), found, strict=True)]
