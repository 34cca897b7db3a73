"""What lies on disk at every moment of a run's end."""

from __future__ import annotations

import pytest
import torch

from softtargets.runs import Checkpoint, RunStore
from softtargets.runs import writer as module


@pytest.mark.parametrize("how", ["finish", "fail"])
def test_the_checkpoint_is_there_until_the_manifest_is(recipe, how, tmp_path, monkeypatch):
    """A crash just before the manifest costs nothing: the run is unfinished, and goes on from its checkpoint."""
    store = RunStore(tmp_path)
    write_json, seen = module.write_json, []

    def power_cut(path, content):
        if path.name == "run.json":
            seen.append((path.parent / "checkpoint.safetensors").exists())
            raise OSError("power cut")
        write_json(path, content)

    def end(writer):
        if how == "finish":
            return writer.finish({"w": torch.ones(2)}, {}, [{"epoch": 1}], {})
        return writer.fail("it diverged", [], {})

    with store.claim(recipe) as writer:
        writer.checkpoint(Checkpoint({"w": torch.zeros(2)}, {"step": 7}))
        monkeypatch.setattr(module, "write_json", power_cut)
        with pytest.raises(OSError, match="power cut"):
            end(writer)
    assert seen == [True]
    assert store.find(recipe) is None
    monkeypatch.undo()
    with store.claim(recipe) as writer:
        assert writer.restore().progress == {"step": 7}
        end(writer)
        assert writer.restore() is None, "nothing is left to go on from"
    assert store.find(recipe).status == {"finish": "finished", "fail": "failed"}[how]


def test_all_that_a_run_kept_is_read_by_name(recipe, tmp_path):
    store = RunStore(tmp_path)
    kept = {"confidence": torch.rand(5), "lengths": torch.tensor([2, 3])}
    with store.claim(recipe) as writer:
        run = writer.finish({"w": torch.ones(2)}, {"test": kept}, [{"epoch": 1}], {"images": 12})
    assert run.units == 12
    assert run.kept("test").keys() == kept.keys()
    assert all(torch.equal(run.kept("test")[name], value) for name, value in kept.items())
