from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from softtargets.data import load
from softtargets.data.folders import ImageIndex, cub200, decode, image_folder, imagenet, tiny_imagenet
from softtargets.exceptions import DataError

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def picture(path: Path, colour=RED, size=(8, 8), mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, colour).convert(mode).save(path)
    return path


@pytest.fixture
def pets(tmp_path):
    picture(tmp_path / "train" / "dog" / "b.png", GREEN)
    picture(tmp_path / "train" / "cat" / "z.PNG", RED)
    picture(tmp_path / "train" / "cat" / "a.png", BLUE)
    picture(tmp_path / "test" / "dog" / "c.png", GREEN)
    (tmp_path / "train" / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "train" / "cat" / "._a.png").write_text("left by an operating system")
    (tmp_path / "train" / ".hidden").mkdir()
    (tmp_path / "train" / "readme").write_text("not a class")
    return tmp_path


def test_classes_and_images_are_in_name_order(pets):
    index = image_folder(pets / "train")
    assert index.classes == ("cat", "dog")
    assert index.paths == ("cat/a.png", "cat/z.PNG", "dog/b.png")
    assert index.labels.tolist() == [0, 0, 1]


def test_loading_reads_the_colours(pets):
    train = load("image-folder", "train", pets, size=4)
    assert train.images.shape == (3, 3, 4, 4)
    colours = [tuple(image[:, 2, 2]) for image in train.images]
    assert sorted(zip(train.labels.tolist(), colours, strict=True)) == sorted(
        [(0, BLUE), (0, RED), (1, GREEN)]
    )


def test_any_stretch_of_the_training_images_has_every_class(tmp_path):
    """Directories list class after class; a validation set cut from the end must not be one class."""
    for name in ("ant", "bee", "cow", "dog"):
        for number in range(10):
            picture(tmp_path / "train" / name / f"{number}.png")
    labels = load("image-folder", "train", tmp_path, size=4).labels
    for stretch in (labels[:8], labels[-12:], labels[10:20]):
        assert np.bincount(stretch, minlength=4).min() >= len(stretch) // 4 - 1
        assert set(stretch) == {0, 1, 2, 3}
    assert np.array_equal(labels, load("image-folder", "train", tmp_path, size=4).labels)


def test_a_damaged_file_of_a_known_dataset_comes_with_the_command_that_fetches_it(tmp_path):
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"):
        (folder / name).write_bytes(b"not gzip")
    with pytest.raises(DataError, match=r"train-images.*softtargets data fetch mnist --to "):
        load("mnist", "train", tmp_path)


def test_test_classes_are_numbered_as_in_train(pets):
    test = load("image-folder", "test", pets, size=4)
    assert (test.classes, test.labels.tolist()) == (("cat", "dog"), [1])
    picture(pets / "test" / "dgo" / "x.png")
    with pytest.raises(
        DataError, match=r"dgo is a class that the training split does not have \(did you mean 'dog'"
    ):
        load("image-folder", "test", pets, size=4)


def test_val_stands_in_for_test(pets):
    (pets / "test").rename(pets / "val")
    assert len(load("image-folder", "test", pets, size=4)) == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda root: None, "is not a directory"),
        (lambda root: (root / "train").mkdir(), "has no subdirectories"),
        (lambda root: (root / "train" / "cat").mkdir(parents=True), "holds no images"),
    ],
)
def test_what_is_not_an_image_folder_is_refused(tmp_path, make, message):
    make(tmp_path)
    with pytest.raises(DataError, match=message):
        load("image-folder", "train", tmp_path, size=4)


def test_the_shorter_side_is_resized_and_the_centre_kept(tmp_path):
    # Thirds of a wide image: red, green, blue; a square from the centre is green alone.
    wide = Image.new("RGB", (120, 40))
    for i, colour in enumerate((RED, GREEN, BLUE)):
        wide.paste(colour, (40 * i, 0, 40 * (i + 1), 40))
    wide.save(tmp_path / "wide.png")
    wide.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "tall.png")
    index = ImageIndex(tmp_path, ("wide.png", "tall.png"), np.zeros(2, np.int64), ("x",))
    for size in (40, 20, 7, 80):
        images = decode(index, size).images
        assert images.shape == (2, 3, size, size)
        inner = images[:, :, 2:-2, 2:-2]
        assert (inner[:, 1] == 255).all()
        assert (inner[:, [0, 2]] == 0).all()


def test_an_image_of_the_right_size_is_unchanged(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "x.png")
    index = ImageIndex(tmp_path, ("x.png",), np.zeros(1, np.int64), ("x",))
    np.testing.assert_array_equal(decode(index, 16).images[0], pixels.transpose(2, 0, 1))


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1", "CMYK"])
def test_every_mode_becomes_rgb(tmp_path, mode):
    file = "x.tif" if mode == "CMYK" else "x.png"
    picture(tmp_path / file, (255, 255, 255), mode=mode)
    index = ImageIndex(tmp_path, (file,), np.zeros(1, np.int64), ("x",))
    assert (decode(index, 8).images == 255).all()


def test_a_corrupt_image_is_named(pets):
    path = pets / "train" / "dog" / "b.png"
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DataError, match=r"dog/b\.png could not be decoded"):
        load("image-folder", "train", pets, size=4)


def test_a_truncated_jpeg_is_named(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "x.jpg")
    whole = (tmp_path / "x.jpg").read_bytes()
    (tmp_path / "x.jpg").write_bytes(whole[: len(whole) // 2])
    index = ImageIndex(tmp_path, ("x.jpg",), np.zeros(1, np.int64), ("x",))
    with pytest.raises(DataError, match=r"x\.jpg could not be decoded"):
        decode(index, 8)


def test_many_images_keep_their_places_across_threads_and_progress_counts_them(tmp_path):
    for i in range(200):
        picture(tmp_path / f"{i:03}.png", (i, 0, 0), (2, 2))

    class Listener:
        total, done, finished, threads = None, 0, 0, set()

        def start(self, name, total, done):
            self.total = total

        def advance(self, n):
            self.done += n
            self.threads.add(threading.get_ident())

        def finish(self):
            self.finished += 1

    listener = Listener()
    index = ImageIndex(tmp_path, tuple(f"{i:03}.png" for i in range(200)), np.zeros(200, np.int64), ("x",))
    images = decode(index, 2, listener, workers=4).images
    assert images[:, 0, 0, 0].tolist() == list(range(200))
    assert (listener.total, listener.done, listener.finished) == (200, 200, 1)
    assert listener.threads == {threading.get_ident()}


def test_more_than_memory_is_refused_before_decoding(tmp_path):
    index = ImageIndex(tmp_path, ("x",) * 1000, np.zeros(1000, np.int64), ("x",))
    with pytest.raises(DataError, match="choose a smaller size"):
        decode(index, 1_000_000)
    with pytest.raises(DataError, match="at least 1"):
        decode(index, 0)


@pytest.fixture
def birds(tmp_path):
    root = tmp_path / "CUB_200_2011"
    picture(root / "images" / "001.Black_footed_Albatross" / "a.jpg", RED)
    picture(root / "images" / "002.Laysan_Albatross" / "b.jpg", GREEN)
    picture(root / "images" / "002.Laysan_Albatross" / "c.jpg", BLUE)
    (root / "images.txt").write_text(
        "1 001.Black_footed_Albatross/a.jpg\n2 002.Laysan_Albatross/b.jpg\n3 002.Laysan_Albatross/c.jpg\n"
    )
    (root / "image_class_labels.txt").write_text("1 1\n2 2\n3 2\n")
    (root / "train_test_split.txt").write_text("1 1\n2 1\n3 0\n")
    (root / "classes.txt").write_text("1 001.Black_footed_Albatross\n2 002.Laysan_Albatross\n")
    return tmp_path


def test_cub_follows_its_lists(birds):
    train, test = load("cub200", "train", birds, size=8), load("cub200", "test", birds, size=8)
    assert train.classes == ("Black footed Albatross", "Laysan Albatross")
    assert (train.labels.tolist(), test.labels.tolist()) == ([0, 1], [1])
    assert test.images[0, 2].mean() > 250  # the blue one


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("image_class_labels.txt", "1 1\n2 2\n", "does not list the same images"),
        ("image_class_labels.txt", "1 1\n2 2\n3 9\n", "has class 9, not in classes.txt"),
        ("images.txt", "1 ../../secret.jpg\n2 b\n3 c\n", "outside the dataset"),
        ("images.txt", "1\n2 b\n3 c\n", "line 1 is not 'number value'"),
    ],
)
def test_cub_lists_that_disagree_are_refused(birds, file, content, message):
    (birds / "CUB_200_2011" / file).write_text(content)
    with pytest.raises(DataError, match=message):
        cub200(birds / "CUB_200_2011", "train")


@pytest.fixture
def tiny(tmp_path):
    root = tmp_path / "tiny-imagenet-200"
    picture(root / "train" / "n02" / "images" / "n02_0.JPEG", RED)
    picture(root / "train" / "n01" / "images" / "n01_0.JPEG", GREEN)
    (root / "train" / "n01" / "n01_boxes.txt").write_text("")
    picture(root / "val" / "images" / "val_0.JPEG", BLUE)
    (root / "wnids.txt").write_text("n02\nn01\n")
    (root / "words.txt").write_text("n01\tgoldfish, Carassius auratus\nn02\ttench\nn03\tshark\n")
    (root / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn02\t0\t0\t62\t62\n")
    return tmp_path


def test_tiny_imagenet_tests_on_its_validation_images(tiny):
    index = tiny_imagenet(tiny / "tiny-imagenet-200", "train")
    assert index.classes == ("goldfish", "tench")
    assert index.paths == ("train/n01/images/n01_0.JPEG", "train/n02/images/n02_0.JPEG")
    test = load("tiny-imagenet", "test", tiny)
    assert test.labels.tolist() == [1]
    assert test.images.shape == (1, 3, 64, 64)


def test_tiny_imagenet_annotations_are_checked(tiny):
    path = tiny / "tiny-imagenet-200" / "val" / "val_annotations.txt"
    path.write_text("val_0.JPEG\tn99\t0\t0\t62\t62\n")
    with pytest.raises(DataError, match="line 1 names no image with a class"):
        load("tiny-imagenet", "test", tiny)


def test_imagenet_is_read_from_its_folders(tmp_path):
    for split, wnid in (("train", "n01"), ("train", "n02"), ("val", "n02")):
        picture(tmp_path / "imagenet" / split / wnid / "x.JPEG", size=(20, 10))
    assert imagenet(tmp_path / "imagenet", "test").labels.tolist() == [1]
    assert load("imagenet", "train", tmp_path, size=5).images.shape == (2, 3, 5, 5)


def test_imagenet_that_is_missing_says_what_to_do(tmp_path):
    with pytest.raises(
        DataError, match=r"ImageNet.* is missing 'val' in .*register at https://image-net.org"
    ):
        load("imagenet", "test", tmp_path)
