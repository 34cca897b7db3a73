"""Image files as if they were on the device: parts of them, some batches ahead, in bounded memory."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
import torch
from PIL import Image

from softtargets.data import Decoding, image_files, load
from softtargets.exceptions import DataError
from softtargets.training.tasks.images import streaming
from softtargets.training.tasks.images.streaming import Ahead, Room, Streamed, Waiting, Wanted

from .files import folder

CPU = torch.device("cpu")


@pytest.fixture
def own(tmp_path):
    return folder(tmp_path)


def files_of(root, split="train", **options):
    index, how = image_files("image-folder", split, root, folder="own", **{"size": 10} | options)
    return Streamed(index, how, CPU)


@pytest.mark.parametrize("keep", ["middle", "picture"])
def test_parts_are_what_would_be_on_the_device(own, keep):
    files = files_of(own, keep=keep)
    whole = load("image-folder", "train", own, folder="own", size=10, keep=keep)
    assert files.shape == whole.images.shape
    images, sizes = [], []
    for part in files.split(9):
        images.append(part.images.clone())
        sizes.append(None if part.sizes is None else part.sizes.clone())
    assert [len(part) for part in images] == [9, 9, 9, 9, 6]
    assert np.array_equal(torch.cat(images), whole.images)
    found = files.at([5, 0, 5])
    assert np.array_equal(found.images, whole.images[[5, 0, 5]])
    if keep == "middle":
        assert sizes == [None] * 5
        assert found.sizes is None
    else:
        assert np.array_equal(torch.cat(sizes), whole.sizes)
        assert np.array_equal(found.sizes, whole.sizes[[5, 0, 5]])


def test_nothing_is_brought_of_nothing(own):
    assert files_of(own).at([]).images.shape == (0, 3, 10, 10)


def test_only_so_many_batches_are_decoded_ahead(own, monkeypatch):
    """However fast decoders are, they wait for the device: what is decoded lies in the memory of a few batches."""
    files, asked = files_of(own), []
    wanted = (asked.append(batch) or Wanted(range(batch, batch + 4)) for batch in range(0, 40, 4))
    room = Room(files, 4)
    coming = Ahead(files, wanted, room, ahead=2)
    assert asked == [0, 4, 8]
    assert coming.bring() == 4
    time.sleep(0.05)
    assert asked == [0, 4, 8, 12]
    while coming.bring() is not None:
        pass
    assert asked == list(range(0, 40, 4))


def test_a_file_that_vanishes_is_named_when_its_turn_comes(own):
    files = files_of(own)
    room = Room(files, 5)
    coming = Ahead(files, map(Wanted, (range(5), range(5, 10), range(10, 15))), room, ahead=0)
    (own / "own" / "train").joinpath(*files.index.paths[7].split("/")).unlink()
    assert coming.bring() == 5
    with pytest.raises(
        DataError, match=rf"{files.index.paths[7]} is in the list of images but does not exist"
    ):
        coming.bring()
    assert coming.bring() is None


def test_closing_waits_for_those_who_write_into_its_memory(own, monkeypatch):
    writing, done = threading.Event(), []
    whole = streaming.decoders()._block

    def slow(*block):
        writing.set()
        time.sleep(0.2)
        done.append(block)
        return whole(*block)

    monkeypatch.setattr(type(streaming.decoders()), "_block", lambda self, *block: slow(*block))
    files = files_of(own)
    coming = Ahead(files, files.parts(4), Room(files, 4))
    writing.wait(5)
    coming.close()
    assert done
    before = len(done)
    time.sleep(0.3)
    assert len(done) == before
    assert coming.bring() is None


def test_the_stamp_says_whether_files_are_the_same(own):
    files = files_of(own)
    assert files.stamp() == files_of(own).stamp() != files_of(own, size=11).stamp()
    assert files.same(files_of(own))
    assert not files.same(files_of(own, "test"))
    before = files.stamp()
    path = own / "own" / "train" / files.index.paths[0]
    path.write_bytes(path.read_bytes() + b"!")
    assert files.stamp() != before


def test_waiting_is_counted_once():
    waiting = Waiting(CPU)
    for _ in range(2):
        waiting.begin()
        time.sleep(0.03)
        waiting.end()
    assert 0.06 <= waiting.taken() < 1
    assert waiting.taken() == 0


@pytest.mark.parametrize("device", [CPU, pytest.param(torch.device("cuda"), marks=pytest.mark.cuda)])
def test_a_wait_that_never_ends_does_not_count(device):
    """As the last of a loop, which finds that there is nothing left."""
    waiting = Waiting(device)
    waiting.begin()
    waiting.end()
    waiting.begin()
    if device.type == "cuda":
        torch.cuda.synchronize()
    assert 0 <= waiting.taken() < 1
    assert waiting.taken() == 0


def test_thousands_of_images_take_the_memory_of_a_few_batches(tmp_path):
    """3,000 images of 96 x 96 would be 83 MB; those on their way are four batches of 32: 3.5 MB."""
    path = tmp_path / "own" / "train" / "one" / "0.jpg"
    path.parent.mkdir(parents=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (100, 130, 3), np.uint8)).save(path)
    for place in range(1, 3000):
        (path.parent / f"{place}.jpg").hardlink_to(path)
    (tmp_path / "own" / "test" / "one").mkdir(parents=True)
    files = files_of(tmp_path, size=96)
    next(files.split(32))  # whoever decodes is there now
    before, most, seen = resident(), 0, 0
    for part in files.split(32):
        seen += len(part.images)
        most = max(most, resident())
    assert seen == 3000
    assert most - before < 3000 * Decoding(96).bytes / 3  # of all that the process has, in bytes


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096
