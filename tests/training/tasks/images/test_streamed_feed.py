"""A run has the same numbers whether its images are on the device or in their files."""

from __future__ import annotations

import gc
import shutil
import signal
import time
import weakref
from typing import ClassVar

import pytest
import torch

from forking import finish, start
from softtargets.data import Decoders
from softtargets.data.augment import View
from softtargets.exceptions import DataError, RecipeError
from softtargets.recipes import (
    CSKD,
    MLP,
    BetaSmoothing,
    Crop,
    Distillation,
    Flip,
    Information,
    Instance,
    OnlineLabelSmoothing,
    ResizedCrop,
    Symmetric,
)
from softtargets.runs import RunStore
from softtargets.training import Watcher, train
from softtargets.training.machinery import Machinery
from softtargets.training.share import Share
from softtargets.training.tasks import prepare
from softtargets.training.tasks.images import checks, keeping
from softtargets.training.tasks.images.feed import ImageFeed
from softtargets.training.tasks.images.streamed_feed import StreamedFeed
from softtargets.training.tasks.images.streaming import Ahead

from ...making import advanced, finished, started, states
from .files import folder, recipe

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("data"))


@pytest.fixture(autouse=True)
def quiet(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SOFTTARGETS_DECODERS", "2")


def trained(monkeypatch, own, store, recipes, how, **options):
    monkeypatch.setenv("SOFTTARGETS_IMAGES", how)
    keep = ("train", "validation", "test")
    return train(recipes, RunStore(store), data_dir=own, keep=keep, progress=False, device="cpu", **options)


def check_alike(one, other):
    weights = other.weights()
    assert all(torch.equal(value, weights[name]) for name, value in one.weights().items())
    for split in ("train", "validation", "test"):
        mine, theirs = one.predictions(split), other.predictions(split)
        assert torch.equal(mine.logits, theirs.logits)
        assert torch.equal(mine.labels, theirs.labels)
        assert torch.equal(mine.features, theirs.features)
    assert one.history() == other.history()


BASE = recipe()
CASES = {
    "crops of whole pictures": [BASE],
    "crops of the middle": [
        recipe(
            data__keep="middle", augmentation=(Crop(padding=1, size=12), Flip()), data__standardise="image"
        )
    ],
    "no augmentation": [recipe(augmentation=(), data__keep="middle")],
    "crops of crops": [recipe(data__keep="middle", augmentation=(ResizedCrop(size=12), Flip()))],
    "noise": [recipe(noise=Symmetric(rate=0.3))],
    "partners of the same class": [recipe(regulariser=CSKD())],
    "an averaged net": [recipe(regulariser=BetaSmoothing())],
    "a table by class": [recipe(regulariser=OnlineLabelSmoothing())],
    "a teacher asked about the student's views": [recipe(regulariser=Distillation(teacher=BASE), seed=1)],
    "a teacher asked about its own": [
        recipe(
            regulariser=Distillation(teacher=BASE, view="teacher"),
            augmentation=(ResizedCrop(size=12, scale=(0.5, 1.0)),),
            seed=1,
        )
    ],
    "a teacher asked once": [recipe(regulariser=Distillation(teacher=BASE, view="stored"), seed=1)],
    "stacked runs": [recipe(model=MLP(hidden=(6,)), seed=seed) for seed in range(3)],
    "information by augmented images": [
        recipe(probes=(Information(classes=(0, 1), examples=3, draws=2, split="train"),))
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_has_the_same_numbers_either_way(own, tmp_path, monkeypatch, name):
    kept = trained(monkeypatch, own, tmp_path / "kept", CASES[name], "kept")
    streamed = trained(monkeypatch, own, tmp_path / "streamed", CASES[name], "streamed")
    for one, other in zip(kept, streamed, strict=True):
        check_alike(one, other)
        assert "streamed" not in one.provenance
        assert other.provenance["streamed"] == "decoded by 2 threads"


def test_processes_give_the_same_numbers_too(own, tmp_path, monkeypatch):
    (threads,) = trained(monkeypatch, own, tmp_path / "threads", [BASE], "streamed")
    monkeypatch.setenv("SOFTTARGETS_DECODE_IN", "processes")
    (processes,) = trained(monkeypatch, own, tmp_path / "processes", [BASE], "streamed")
    check_alike(threads, processes)
    assert processes.provenance["streamed"] == "decoded by 2 processes"


def test_decoders_cut_unless_somebody_looks_at_images_in_another_way(streaming, monkeypatch):
    cut = []
    note = recording(Decoders.decode, lambda team, paths, how, *_: cut.append(how.cut))
    monkeypatch.setattr(Decoders, "decode", note)
    for one, expected in (
        (BASE, 12),
        (recipe(regulariser=CSKD()), None),
        (recipe(augmentation=(), data__keep="middle"), None),
    ):
        advanced(started(one), 2)
        assert cut[-1] == expected


def recording(function, note):
    def recorded(*given, **named):
        note(*given)
        return function(*given, **named)

    return recorded


@pytest.mark.parametrize("one", [BASE, recipe(augmentation=(), data__keep="middle")])
def test_what_nets_are_measured_on_lies_by_channels(own, monkeypatch, one):
    """Layers add up in an order that goes by how images lie in memory."""
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "streamed")
    task = prepare(one.data, CPU, own)
    for shown in task.splits["test"].parts(8):
        assert not shown.images.is_contiguous()
        assert task.evaluation_inputs(one, *shown).is_contiguous()


def test_what_lies_beside_pictures_is_no_part_of_their_mean(own, monkeypatch):
    """Of 16 x 16 pixels a picture of 12 x 16 has 192."""
    found = []
    for how in ("kept", "streamed"):
        monkeypatch.setenv("SOFTTARGETS_IMAGES", how)
        task = prepare(BASE.data, CPU, own)
        shades = [
            shown.images[0, :, : shown.sizes[0, 0], : shown.sizes[0, 1]].flatten(1).double().clone()
            for shown in task.splits["train"].parts(1)
        ]
        every = torch.cat(shades, 1)
        assert every.shape[1] < 256 * len(task.splits["train"])
        mean, deviation = every.mean(1), every.std(1, correction=0)
        given = torch.arange(0, 250, 25, dtype=torch.uint8).expand(1, 3, 1, 10)
        expected = (given[0, :, 0].double() - mean[:, None]) / deviation[:, None]
        found.append(task.standardise(given)[0, :, 0])
        assert torch.allclose(found[-1].double(), expected, atol=1e-5)
    assert found[0].equal(found[1])


@pytest.mark.parametrize("augmentation", [(), (Flip(), ResizedCrop(size=12))])
def test_pictures_of_many_sizes_must_be_cropped_first(own, tmp_path, monkeypatch, augmentation):
    with pytest.raises(RecipeError, match="put resized_crop first in the augmentation, or give keep: middle"):
        trained(monkeypatch, own, tmp_path, [recipe(augmentation=augmentation)], "streamed")


def test_pictures_of_many_sizes_are_not_compared_by_their_looks(own, tmp_path, monkeypatch):
    with pytest.raises(
        RecipeError, match="instance noise compares all images, which is impossible for images of many sizes"
    ):
        trained(monkeypatch, own, tmp_path, [recipe(noise=Instance(rate=0.3))], "kept")


@pytest.fixture
def streaming(own, monkeypatch):
    """Whatever is prepared here is streamed from that folder."""
    monkeypatch.setenv("SOFTTARGETS_DATA", str(own))
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "streamed")


@pytest.mark.parametrize("regulariser", [None, CSKD()])
@pytest.mark.parametrize("steps", [1, 3, 5, 7])
def test_a_training_goes_on_in_the_middle_of_an_epoch(streaming, steps, regulariser):
    """Also in its last batch, which is smaller, and across epochs: five steps each."""
    one = recipe(epochs=3, **{"regulariser": regulariser} if regulariser else {})
    whole = finished(started(one))
    half = advanced(started(one), steps)
    rest = finished(started(one, checkpoints=[half.save(0)]))
    assert rest.slots[0].history == whole.slots[0].history
    expected, found = states(whole), states(rest)
    assert expected.keys() == found.keys()
    assert all(torch.equal(value, found[name]) for name, value in expected.items())


def saving_every_step(recipes, root, own):
    train(recipes, RunStore(root), data_dir=own, device="cpu", checkpoint_seconds=0, progress=False)


def test_kill_9_changes_nothing(streaming, own, tmp_path):
    one = recipe(epochs=12)
    (whole,) = train([one], RunStore(tmp_path / "whole"), device="cpu", progress=False)
    child = start(saving_every_step, [one], tmp_path / "killed", own)
    checkpoint = tmp_path / "killed" / one.id / "checkpoint.safetensors"
    while not checkpoint.exists():
        assert child.is_alive()
        time.sleep(0.001)
    time.sleep(0.05)
    child.kill()
    assert finish(child) == -signal.SIGKILL
    (again,) = train([one], RunStore(tmp_path / "killed"), device="cpu", progress=False)
    assert again.provenance["resumed"] == 1
    assert again.history() == whole.history()
    assert all(torch.equal(value, again.weights()[name]) for name, value in whole.weights().items())


# --- batches ---


def feeds(ranks=1, one=BASE):
    task = prepare(one.data, CPU)
    shares = [Share(rank, ranks) for rank in range(ranks)]
    return [
        task.feed([one], [task], Machinery(one, task, CPU, stacked=False, share=share)) for share in shares
    ]


def batches(feed, shapes=(8, 8, 8, 8, 3), epoch=1):
    feed.open(torch.tensor([epoch]))
    for place, shape in enumerate(shapes):
        feed.bring([epoch], place)
        shown = feed.batch(torch.tensor([place]), shape)
        yield [each[0].clone() for each in (shown.images, shown.inputs[0], shown.labels, shown.chosen)]


def test_batches_are_those_of_images_on_the_device(streaming, monkeypatch):
    (streamed,) = feeds()
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "kept")
    (kept,) = feeds()
    assert isinstance(streamed, StreamedFeed)
    assert isinstance(kept, ImageFeed)
    for mine, theirs in zip(batches(streamed), batches(kept), strict=True):
        assert all(one.equal(other) for one, other in zip(mine, theirs, strict=True))


@pytest.mark.parametrize(
    ("one", "expected"),
    [(BASE, 1), (recipe(augmentation=(ResizedCrop(size=12), Flip()), regulariser=CSKD()), 2)],
)
def test_one_thread_does_the_little_that_decoders_leave_to_a_cpu(streaming, monkeypatch, one, expected):
    """Threads that wait for each other would take the cores from decoders."""
    before, used = torch.get_num_threads(), []
    for kind, name in ((View, "apply"), (Ahead, "bring")):
        note = recording(getattr(kind, name), lambda *_: used.append(torch.get_num_threads()))
        monkeypatch.setattr(kind, name, note)
    torch.set_num_threads(2)
    try:
        (feed,) = feeds(one=one)
        used.clear()  # looking for the shape of a view takes what there is
        assert len(list(batches(feed))) == 5
        assert used == [expected] * 10
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_what_packs_of_a_kind_share_does_not_hold_on_to_the_first(streaming):
    """Its pictures on the device, and memory that decoders write to."""
    task = prepare(BASE.data, CPU)
    machinery = Machinery(BASE, task, CPU, stacked=False)
    machinery.recorded = True  # as on a GPU, where what makes a batch is compiled once for all packs
    feed = task.feed([BASE], [task], machinery)
    gone = weakref.ref(feed)
    assert machinery._compiled
    del feed
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_process_brings_its_share_of_a_batch_and_nothing_else(streaming, monkeypatch, ranks):
    (alone,) = feeds()
    asked = []
    whole = Decoders.decode
    monkeypatch.setattr(
        Decoders, "decode", lambda self, paths, *rest: asked.extend(paths) or whole(self, paths, *rest)
    )
    together = [list(batches(feed)) for feed in feeds(ranks)]
    for place, expected in enumerate(batches(alone)):
        for kind, value in enumerate(expected):
            assert torch.cat([own[place][kind] for own in together]).equal(value)
    epochs = len(asked) / (ranks * 35)  # the training images, all of which are in one share or another
    assert epochs < 2


def test_any_step_can_be_asked_for(streaming):
    """What was on its way is forgotten, as when others join a pack."""
    (feed,), (other,) = feeds(), feeds()
    expected = {
        (epoch, place): batch for epoch in (0, 1) for place, batch in enumerate(batches(other, epoch=epoch))
    }
    for epoch, place in ((0, 3), (0, 4), (1, 0), (0, 1), (1, 4)):
        feed.open(torch.tensor([epoch]))
        feed.bring([epoch], place)
        shown = feed.batch(torch.tensor([place]), 3 if place == 4 else 8)
        assert shown.inputs[0][0].equal(expected[epoch, place][1])


def test_nothing_is_decoded_for_steps_after_the_last(streaming, monkeypatch):
    (feed,) = feeds()
    asked = []
    whole = Decoders.decode
    monkeypatch.setattr(
        Decoders, "decode", lambda self, paths, *rest: asked.extend(paths) or whole(self, paths, *rest)
    )
    for epoch in (0, 1):
        for _ in batches(feed, epoch=epoch):
            pass
    assert len(asked) == 2 * 35


# --- what goes wrong, and what is told ---


def test_a_file_that_vanishes_during_training_is_named(own, tmp_path, monkeypatch):
    copied = tmp_path / "data"
    shutil.copytree(own, copied)
    one = recipe(data__standardise="unit")
    gone = copied / "own" / "train" / "bee" / "3.png"
    monkeypatch.setenv("SOFTTARGETS_DATA", str(copied))
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "streamed")
    pack = started(one)
    gone.unlink()
    with pytest.raises(DataError, match=r"bee/3\.png is in the list of images but does not exist"):
        finished(pack)


def test_the_time_that_the_device_waits_is_in_the_manifest_and_told(streaming, tmp_path, monkeypatch):
    class Noting(Watcher):
        said: ClassVar[list[str]] = []

        def noted(self, sentence):
            self.said.append(sentence)

    slow = Decoders._block
    monkeypatch.setattr(Decoders, "_block", lambda self, *block: time.sleep(0.02) or slow(self, *block))
    (run,) = train([BASE], RunStore(tmp_path), device="cpu", watcher=Noting())
    about = run.provenance
    assert 0.05 < about["waited_seconds"] < about["seconds"]
    assert about["waited"] == pytest.approx(about["waited_seconds"] / about["seconds"], abs=0.01)
    assert Noting.said == [f"Run {run.id}: the device waited for images {about['waited']:.0%} of the time."]
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "kept")
    (other,) = train([BASE], RunStore(tmp_path / "kept"), device="cpu", progress=False)
    assert not any("waited" in key for key in other.provenance)


def test_noise_that_looks_at_all_images_is_refused(streaming, tmp_path):
    with pytest.raises(RecipeError, match="noise: instance noise compares all images"):
        train([recipe(noise=Instance(rate=0.2))], RunStore(tmp_path), device="cpu")


def test_what_a_teacher_says_of_too_many_images_is_refused(streaming, tmp_path, monkeypatch):
    student = recipe(regulariser=Distillation(teacher=BASE, view="stored"))
    monkeypatch.setattr(checks, "free_memory", lambda device: 800)
    with pytest.raises(
        RecipeError, match=r"regulariser\.view: what a teacher says of 35 images and 3 classes takes"
    ):
        train([student], RunStore(tmp_path), device="cpu")


def test_sums_of_the_channels_are_found_once_for_the_same_files(streaming, monkeypatch):
    before = prepare(BASE.data, CPU)
    asked = []
    whole = Decoders.decode
    monkeypatch.setattr(
        Decoders, "decode", lambda self, paths, *rest: asked.extend(paths) or whole(self, paths, *rest)
    )
    again = prepare(BASE.data, CPU)
    assert not asked
    images = torch.randint(0, 255, (2, 3, 4, 4), dtype=torch.uint8)
    assert again.standardise(images).equal(before.standardise(images))
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "kept")
    assert prepare(BASE.data, CPU).standardise(images).equal(before.standardise(images))


@pytest.mark.parametrize(("free", "kept"), [(10**9, True), (94_000, True), (90_000, False), (None, True)])
def test_images_are_kept_if_they_fit_into_half_of_the_memory(own, monkeypatch, free, kept):
    """57 images of 16 x 16 in three colours are 43,776 bytes."""
    monkeypatch.setenv("SOFTTARGETS_DATA", str(own))
    monkeypatch.delenv("SOFTTARGETS_IMAGES", raising=False)
    monkeypatch.setattr(keeping, "free_memory", lambda device: free)
    if free == 90_000:
        monkeypatch.setattr(keeping, "SHARE", 0.48)
    assert prepare(BASE.data, CPU).is_streamed is not kept


def test_another_word_for_keeping_is_refused(own, monkeypatch):
    monkeypatch.setenv("SOFTTARGETS_IMAGES", "maybe")
    with pytest.raises(
        DataError, match="SOFTTARGETS_IMAGES is 'maybe'; it must be one of auto, kept, streamed"
    ):
        prepare(BASE.data, CPU, own)


def test_a_damaged_training_image_stops_a_run_with_its_name(own, tmp_path, monkeypatch):
    copied = tmp_path / "data"
    shutil.copytree(own, copied)
    path = copied / "own" / "train" / "ant" / "1.jpg"
    path.write_bytes(path.read_bytes()[:200])
    for how in ("kept", "streamed"):
        with pytest.raises(DataError, match=r"ant/1\.jpg could not be decoded"):
            trained(monkeypatch, copied, tmp_path / how, [BASE], how)


@pytest.mark.cuda
def test_on_a_gpu_a_run_has_the_same_numbers_either_way(own, tmp_path, monkeypatch):
    monkeypatch.setenv("SOFTTARGETS_DATA", str(own))
    found = []
    for how in ("kept", "streamed"):
        monkeypatch.setenv("SOFTTARGETS_IMAGES", how)
        found += train([recipe(epochs=4)], RunStore(tmp_path / how), device="cuda", progress=False)
    kept, streamed = found
    assert streamed.history() == kept.history()
    assert all(torch.equal(value, streamed.weights()[name]) for name, value in kept.weights().items())
    assert 0 <= streamed.provenance["waited"] <= 1
