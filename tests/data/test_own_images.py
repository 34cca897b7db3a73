"""Which images a folder holds: the digest notices every change that matters, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softtargets.data import adopt_folder, folder_digest, image_files, load, own_images
from softtargets.data.folders import image_folder
from softtargets.exceptions import DataError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def photos(tmp_path):
    return made(tmp_path / "photos")


def made(root: Path) -> Path:
    draw = np.random.default_rng(1)
    for split, count in (("train", 3), ("test", 1)):
        for name in ("cat", "dog"):
            (root / split / name).mkdir(parents=True)
            for place in range(count):
                image = draw.integers(0, 255, (20, 30, 3), np.uint8)
                Image.fromarray(image).save(root / split / name / f"{place}.png")
    return root


def test_the_same_images_have_the_same_digest_wherever_they_are(tmp_path, photos):
    assert folder_digest(photos) == folder_digest(made(tmp_path / "elsewhere" / "copied"))
    assert len(folder_digest(photos)) == 16


@pytest.mark.parametrize("change", ["content", "renamed", "moved", "gone", "more", "longer"])
def test_other_images_have_another_digest(photos, change):
    before = folder_digest(photos)
    path = photos / "train" / "cat" / "0.png"
    if change == "content":
        content = bytearray(path.read_bytes())
        content[-30] ^= 1
        path.write_bytes(bytes(content))
    elif change == "renamed":
        path.rename(path.with_name("9.png"))
    elif change == "moved":
        path.rename(photos / "train" / "dog" / "9.png")
    elif change == "gone":
        path.unlink()
    elif change == "more":
        path.with_name("more.png").write_bytes(path.read_bytes())
    else:
        path.write_bytes(path.read_bytes() + b"!")
    assert folder_digest(photos) != before


def test_what_is_no_image_and_when_it_was_changed_do_not_count(photos):
    before = folder_digest(photos)
    (photos / "train" / "cat" / "notes.txt").write_text("not an image")
    (photos / "train" / "cat" / "._0.png").write_text("left by an operating system")
    os.utime(photos / "train" / "cat" / "0.png", (1, 1))
    assert folder_digest(photos) == before


def test_a_large_compressed_file_is_read_in_three_places_and_an_uncompressed_one_whole(tmp_path):
    content = bytearray(os.urandom(300_000))
    for name in ("a.jpg", "a.bmp"):
        found = []
        for place in (None, 10, 150_000, 299_990, 60_000):
            changed = bytearray(content)
            if place is not None:
                changed[place] ^= 1
            (tmp_path / name).write_bytes(changed)
            found.append(own_images.content_hash(tmp_path / name, len(content)))
        assert len(set(found[:4])) == 4
        assert (found[4] == found[0]) == (name == "a.jpg")


def test_files_that_have_not_changed_are_not_read_again(photos, monkeypatch):
    read = []
    whole = own_images.content_hash
    monkeypatch.setattr(own_images, "content_hash", lambda *file: read.append(file) or whole(*file))
    first = folder_digest(photos)
    assert len(read) == 8
    assert folder_digest(photos) == first
    assert len(read) == 8
    os.utime(photos / "train" / "cat" / "0.png", (1, 1))
    assert folder_digest(photos) == first
    assert len(read) == 16


def test_a_folder_is_adopted_under_its_digest_and_stays_where_it_is(tmp_path, photos):
    name, digest = adopt_folder(photos, tmp_path / "data")
    assert name == f"images-{digest}"
    assert (tmp_path / "data" / name).resolve() == photos
    assert adopt_folder(photos, tmp_path / "data") == (name, digest)
    moved = photos.rename(tmp_path / "moved")
    assert adopt_folder(moved, tmp_path / "data") == (name, digest)
    assert len(load("image-folder", "train", tmp_path / "data", folder=name, digest=digest)) == 6


def test_other_images_than_the_recipes_are_refused(tmp_path, photos):
    name, digest = adopt_folder(photos, tmp_path / "data")
    (photos / "train" / "cat" / "0.png").unlink()
    options = {"folder": name, "digest": digest}
    with pytest.raises(DataError, match=rf"does not have the images .* not {digest}"):
        image_files("image-folder", "train", tmp_path / "data", **options)
    with pytest.raises(
        DataError, match=r"does not exist; if the images are elsewhere.*softtargets data folder PATH"
    ):
        load("image-folder", "train", tmp_path / "nowhere", **options)


def test_what_is_no_folder_of_images_is_refused(tmp_path, photos):
    with pytest.raises(DataError, match="has no directory 'train'"):
        adopt_folder(tmp_path)
    (tmp_path / "half" / "train").mkdir(parents=True)
    with pytest.raises(DataError, match="neither 'test' nor 'val'"):
        adopt_folder(tmp_path / "half")
    (tmp_path / "half" / "test").mkdir()
    with pytest.raises(DataError, match="has no images below train, test, val"):
        adopt_folder(tmp_path / "half")


def test_progress_is_told_while_files_are_listed_and_read(photos):
    told = []

    class Listener:
        def start(self, name, total, done):
            told.append((name, total))

        def advance(self, n):
            told.append(n)

        def finish(self):
            told.append("done")

    folder_digest(photos, Listener())
    assert ("listing photos", None) in told
    assert ("reading photos", 8) in told
    assert sum(one for one in told if isinstance(one, int)) == 16
    assert told.count("done") == 2


def test_a_cache_that_cannot_be_written_is_no_obstacle(photos, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    assert folder_digest(photos) == folder_digest(photos)


def test_what_is_learned_from_is_what_the_digest_is_of(tmp_path, photos):
    """Linked directories are part of both, hidden ones of neither."""
    more = tmp_path / "more"
    more.mkdir()
    os.link(photos / "train" / "cat" / "0.png", more / "linked.png")
    before = folder_digest(photos)
    (photos / "train" / "cat" / "more").symlink_to(more, target_is_directory=True)
    hidden = photos / "train" / "cat" / ".thumbnails"
    hidden.mkdir()
    os.link(photos / "train" / "cat" / "0.png", hidden / "0.png")
    listed = {one.path for one in own_images.listed_files(photos)}
    learned = {f"train/{path}" for path in image_folder(photos / "train").paths}
    assert learned == {path for path in listed if path.startswith("train/")}
    assert "train/cat/more/linked.png" in learned
    assert "train/cat/.thumbnails/0.png" not in learned
    assert folder_digest(photos) != before


@pytest.mark.parametrize("target", [".", "..", "../.."])
def test_a_link_to_a_directory_that_it_lies_in_is_refused_in_one_sentence(photos, target):
    (photos / "train" / "cat" / "loop").symlink_to(target, target_is_directory=True)
    with pytest.raises(DataError, match="links back to a directory that contains it") as caught:
        folder_digest(photos)
    assert "loop/train/cat/loop" not in str(caught.value)
    with pytest.raises(DataError, match="links back to a directory that contains it"):
        image_folder(photos / "train")


def test_where_directories_have_no_numbers_none_is_taken_for_another(photos, monkeypatch):
    """On some network drives of Windows each of them is number 0."""
    (photos / "train" / "cat" / "more").mkdir()
    plain, found = os.stat, image_folder(photos / "train").paths
    monkeypatch.setattr(
        "softtargets.data.folders.os.stat",
        lambda path, **how: os.stat_result((plain(path, **how).st_mode, 0, 0, *plain(path, **how)[3:])),
    )
    assert image_folder(photos / "train").paths == found
