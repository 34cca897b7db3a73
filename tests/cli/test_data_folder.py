"""``softtargets data folder``: a part of a recipe for images of one's own."""

from __future__ import annotations

import json

import pytest

from softtargets.recipes import ImageFolder, build
from softtargets.recipes.datasets import Dataset
from softtargets.recipes.yaml import parse_yaml
from training.tasks.images.files import folder

from .command import ran


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOFTTARGETS_DATA", str(tmp_path / "data"))
    return folder(tmp_path, train=2, test=1) / "own"


def test_it_prints_what_a_recipe_says_of_the_folder(capsys, photos, tmp_path):
    code, out, _ = ran(capsys, "data", "folder", photos, "--size", 24)
    assert code == 0
    data = build(Dataset, parse_yaml(out)["data"])
    assert isinstance(data, ImageFolder)
    assert (data.folder, data.size) == (f"images-{data.digest}", 24)
    assert (tmp_path / "data" / data.folder).resolve() == photos
    assert json.loads(ran(capsys, "data", "folder", photos, "--json")[1])["data"]["digest"] == data.digest


def test_what_is_no_folder_of_images_is_one_line(capsys, tmp_path, photos):
    code, _, err = ran(capsys, "data", "folder", tmp_path)
    assert code == 2
    assert "has no directory 'train'" in err


@pytest.mark.parametrize("digest", ["1234567890123456", "12345678e0123456", "abcdefabcdefabcd"])
def test_digests_that_look_like_numbers_stay_words(capsys, photos, monkeypatch, digest):
    import softtargets.data

    monkeypatch.setattr(softtargets.data, "adopt_folder", lambda *given: (f"images-{digest}", digest))
    _, out, _ = ran(capsys, "data", "folder", photos)
    assert parse_yaml(out)["data"]["digest"] == digest
