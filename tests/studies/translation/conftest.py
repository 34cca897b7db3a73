from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

from softtargets.runs import RunStore
from softtargets.studies import Place
from softtargets.studies.translation import corpora, replication
from softtargets.studies.translation.measures import TranslatedRuns
from softtargets.training import train
from tests.training.tasks.translation.counting import write_corpus

from .small import BASE, recipes


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("counting"))


@pytest.fixture(scope="session")
def store(tmp_path_factory, data_dir):
    """Three small models."""
    found = RunStore(tmp_path_factory.mktemp("translations") / "runs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(recipes(), found, device="cpu", keep=("test", "validation"), data_dir=data_dir)
    return found


@pytest.fixture
def runs(data_dir):
    return TranslatedRuns(Place(data_dir, "cpu"))


@pytest.fixture
def counting(monkeypatch):
    """Studies find these models, whatever their size."""
    changed = {key: replace(one, recipe=BASE) for key, one in corpora.CORPORA.items()}
    monkeypatch.setattr(corpora, "CORPORA", changed)
    monkeypatch.setattr(replication, "REPLICATED", BASE)
    for module in (corpora, replication):
        monkeypatch.setattr(module, "sized", lambda settings, base: settings.base(base))
