"""Runs in one file: what is in it, that the same runs give the same bytes, and what is left out."""

from __future__ import annotations

import gzip
import io
import json
from zipfile import ZipFile

import numpy as np
import pytest

from softtargets.exceptions import RunError, StorageError
from softtargets.runs import Measured, RunStore, keep_measures, merge_runs, pack_runs, recomputed

from .made import failed, finished, unfinished


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def test_a_pack_has_logs_compact_predictions_and_measures(store, tmp_path):
    runs = [finished(store, 0), finished(store, 1), failed(store, 2)]
    keep_measures(runs[0], "a-study", Measured({"error": 0.5}, {"points": [1, 2]}, "c", "t"))
    packed = pack_runs(runs, tmp_path / "p.zip")
    assert sorted(packed.finished) == sorted([runs[0].id, runs[1].id])
    assert packed.failed == [runs[2].id]
    assert packed.bytes == (tmp_path / "p.zip").stat().st_size
    with ZipFile(tmp_path / "p.zip") as pack:
        assert set(pack.namelist()) == {"logs.jsonl.gz", "predictions.npz", "measures.json", "pack.json"}
        lines = [json.loads(line) for line in gzip.decompress(pack.read("logs.jsonl.gz")).splitlines()]
        assert [line["id"] for line in lines] == sorted(run.id for run in runs)
        assert json.loads(pack.read("measures.json")) == {
            runs[0].id: {
                "a-study": {
                    "measures": {"error": 0.5},
                    "details": {"points": [1, 2]},
                    "code": "c",
                    "measured": "t",
                }
            }
        }
        codes = np.load(io.BytesIO(pack.read("predictions.npz")))
        kept = runs[0].predictions("test")
        assert codes[runs[0].id][0].tolist() == kept.logits.argmax(-1).tolist()
        (tmp_path / "alone.npz").write_bytes(pack.read("predictions.npz"))
    right = float((kept.logits.argmax(-1) == kept.labels).double().mean())
    assert recomputed(tmp_path / "alone.npz")[runs[0].id]["accuracy"] == right


@pytest.mark.parametrize("include", [(), ("weights", "predictions")])
def test_the_same_runs_give_the_same_bytes_whether_they_travelled_or_not(store, tmp_path, include):
    runs = [finished(store, seed) for seed in range(3)]
    keep_measures(runs[1], "s", Measured({"m": float("nan")}, {}, "c", "t"))
    pack_runs(runs, tmp_path / "one.zip", include)
    pack_runs(reversed(runs), tmp_path / "two.zip", include)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    elsewhere = RunStore(tmp_path / "elsewhere")
    merge_runs(tmp_path / "one.zip", elsewhere)
    pack_runs([elsewhere.get(run.id) for run in runs], tmp_path / "three.zip", include)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "three.zip").read_bytes()


def test_weights_are_in_it_only_if_they_are_asked_for(store, tmp_path):
    run = finished(store, 0)
    pack_runs([run], tmp_path / "p.zip", ("weights",))
    with ZipFile(tmp_path / "p.zip") as pack:
        content = pack.read(f"files/{run.id}/weights.safetensors")
        about = json.loads(pack.read("pack.json"))["runs"][run.id]
    assert content == (run.directory / "weights.safetensors").read_bytes()
    assert about["files"].keys() == {"weights.safetensors"}
    assert about["left_out"] == {
        "predictions/test.safetensors": run.manifest["files"]["predictions/test.safetensors"]
    }


def test_predictions_on_chosen_splits_of_chosen_runs_travel_compressed(store, tmp_path):
    runs = [finished(store, 0), finished(store, 1)]
    chosen = {runs[0].id: ("test", "train"), "0" * 16: ("test",)}  # there is no split train, nor such a run
    pack_runs(runs, tmp_path / "p.zip", splits=chosen)
    name = f"files/{runs[0].id}/predictions/test.safetensors"
    with ZipFile(tmp_path / "p.zip") as pack:
        assert [member for member in pack.namelist() if member.startswith("files/")] == [name]
        assert pack.read(name) == (runs[0].directory / "predictions/test.safetensors").read_bytes()
        assert pack.getinfo(name).compress_size < pack.getinfo(name).file_size
        about = json.loads(pack.read("pack.json"))["runs"]
    assert about[runs[0].id]["left_out"].keys() == {"weights.safetensors"}
    assert about[runs[1].id]["left_out"].keys() == {"weights.safetensors", "predictions/test.safetensors"}
    here = RunStore(tmp_path / "here")
    merge_runs(tmp_path / "p.zip", here)
    light = here.get(runs[0].id)
    assert light.is_light
    assert light.predictions("test").logits.equal(runs[0].predictions("test").logits)
    pack_runs([light, here.get(runs[1].id)], tmp_path / "again.zip", splits=chosen)
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "p.zip").read_bytes()


def test_unfinished_runs_go_only_with_their_checkpoints(store, tmp_path):
    runs = [finished(store, 0), unfinished(store, 1, step=40)]
    assert pack_runs(runs, tmp_path / "p.zip").unfinished == []
    assert pack_runs(runs, tmp_path / "p.zip", ("checkpoints",)).unfinished == [runs[1].id]
    with pytest.raises(RunError, match=r"none of the chosen runs is finished; .*--with checkpoints"):
        pack_runs(runs[1:], tmp_path / "q.zip")
    assert not (tmp_path / "q.zip").exists()


def test_damaged_runs_are_left_out_and_named(store, tmp_path):
    runs = [finished(store, seed) for seed in range(3)]
    (runs[0].directory / "metrics.jsonl").write_text("{}")
    file = runs[1].directory / "predictions" / "test.safetensors"
    file.write_bytes(file.read_bytes()[:-4] + b"\0\0\0\1")
    packed = pack_runs(runs, tmp_path / "p.zip")
    assert packed.finished == [runs[2].id]
    assert len(packed.left_out) == 2
    assert all("is damaged" in sentence for sentence in packed.left_out)
    with pytest.raises(RunError, match=r"nothing to pack in .*metrics\.jsonl"):
        pack_runs(runs[:1], tmp_path / "q.zip")


def test_what_cannot_be_packed_is_refused_before_anything_is_written(store, tmp_path):
    run = finished(store, 0)
    with pytest.raises(
        RunError, match=r"'logits' cannot be packed; allowed: weights, predictions, checkpoints"
    ):
        pack_runs([run], tmp_path / "p.zip", ("logits",))
    with pytest.raises(StorageError, match=r"does not end in \.zip"):
        pack_runs([run], tmp_path / "p.tar")
    with pytest.raises(RunError, match="nothing to pack"):
        pack_runs([], tmp_path / "p.zip")
    assert not list(tmp_path.glob("*.zip"))
