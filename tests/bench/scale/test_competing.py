from __future__ import annotations

import pytest

from benchmarks.scale import competing
from benchmarks.scale.competing import Unfair, claims, compete, finishes
from benchmarks.scale.stores import fill, recipes
from softtargets.runs import RunStore


def test_processes_share_the_runs_out_and_none_is_doubled_or_lost(tmp_path):
    shares = compete("finishes", tmp_path / "runs", 12, 2)
    assert len(shares) == 2
    assert sum(share.done for share in shares) == 12
    assert all(share.ended > share.begun for share in shares)
    assert [entry.status for entry in RunStore(tmp_path / "runs").entries()] == ["finished"] * 12


def test_what_another_holds_is_refused(tmp_path):
    store = RunStore(tmp_path)
    fill(store, recipes(4))
    held = store.claim(recipes(4)[1])
    assert claims(store, recipes(4), 0) == (3, 1)
    assert finishes(store, recipes(5), 0) == (1, 1)
    held.release()
    assert claims(store, recipes(4), 0) == (4, 0)


def test_a_count_that_is_wrong_is_an_error(tmp_path, monkeypatch):
    class Told:
        def put(self, answer):
            pass

        def get(self):
            return (0.0, 1.0, 2, 0)

    class Idle:
        def __init__(self, **how):
            pass

        def start(self):
            pass

        join = start

    class Context:
        Process = Idle
        Barrier = staticmethod(int)
        SimpleQueue = Told

    monkeypatch.setattr(competing, "get_context", lambda name: Context)
    with pytest.raises(Unfair, match="4 runs were finished, not 3"):
        compete("finishes", tmp_path / "runs", 3, 2)
