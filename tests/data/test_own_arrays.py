"""Arrays of one's own: what is read, how it is cut, which digest it has, and what is refused."""

import hashlib

import numpy as np
import pytest

from softtargets.data import Examples, arrays_digest, keep_arrays, load, read_own_arrays
from softtargets.exceptions import DataError


def made(examples=60, classes=3, size=6, seed=0):
    random = np.random.default_rng(seed)
    images = random.integers(0, 256, (examples, size, size), dtype=np.uint8)
    return images, np.arange(examples) % classes


def saved(folder, **arrays):
    np.savez(folder / "mine.npz", **arrays)
    return folder / "mine.npz"


def test_a_sixth_is_held_out_and_nothing_is_lost(tmp_path):
    images, labels = made()
    splits = read_own_arrays(saved(tmp_path, images=images, labels=labels))
    assert (len(splits["train"]), len(splits["test"])) == (50, 10)
    every = np.concatenate([splits["train"].images, splits["test"].images])
    assert {one.tobytes() for one in every} == {one.tobytes() for one in images}
    by_content = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    for split in splits.values():
        assert [by_content[image.tobytes()] for image in split.images] == split.labels.tolist()
    # Of each class its share.
    assert np.bincount(splits["test"].labels).tolist() in ([4, 3, 3], [3, 4, 3], [3, 3, 4])


def test_names_that_keras_uses_and_a_test_set_of_its_own(tmp_path):
    images, labels = made()
    other = made(12, seed=1)
    path = saved(tmp_path, x_train=images, y_train=labels, x_test=other[0], y_test=other[1])
    splits = read_own_arrays(path)
    assert np.array_equal(splits["train"].images[:, 0], images)
    assert np.array_equal(splits["test"].images[:, 0], other[0])
    (tmp_path / "more").mkdir()
    second = saved(tmp_path / "more", images=other[0], labels=other[1])
    again = read_own_arrays(path, test=second)
    assert arrays_digest(again) == arrays_digest(splits)


def test_two_files_of_one_array_each(tmp_path):
    images, labels = made()
    np.save(tmp_path / "x.npy", images)
    np.save(tmp_path / "y.npy", labels)
    apart = read_own_arrays(tmp_path / "x.npy", tmp_path / "y.npy")
    assert arrays_digest(apart) == arrays_digest(read_own_arrays(saved(tmp_path, x=images, y=labels)))


def test_channels_come_first_or_last_and_shades_may_be_fractions(tmp_path):
    random = np.random.default_rng(0)
    images = random.integers(0, 256, (30, 3, 8, 9), dtype=np.uint8)
    labels = np.arange(30) % 2
    digests = {
        arrays_digest(read_own_arrays(saved(tmp_path, images=one, labels=labels)))
        for one in (
            images,
            images.transpose(0, 2, 3, 1),
            images / 255,
            (images / 255).astype(np.float32),
            images.astype(int),
        )
    }
    assert len(digests) == 1


def test_labels_may_be_texts_or_any_numbers(tmp_path):
    images, labels = made()
    words = np.array(["cat", "dog", "ant"])[labels]
    splits = read_own_arrays(saved(tmp_path, images=images, labels=words))
    assert splits["train"].classes == ("ant", "cat", "dog")
    numbers = read_own_arrays(saved(tmp_path, images=images, labels=np.array([10, 20, 50])[labels]))
    assert numbers["train"].classes == ("10", "20", "50")
    assert set(numbers["train"].labels.tolist()) == {0, 1, 2}


def test_the_digest_is_of_content_and_a_change_of_one_pixel_changes_it(tmp_path):
    images, labels = made()
    splits = read_own_arrays(saved(tmp_path, images=images, labels=labels))
    found = hashlib.sha256()
    for name in ("test", "train"):
        one = splits[name]
        found.update(f"{name} {one.images.shape} {['0', '1', '2']}\n".encode())
        found.update(one.images.tobytes() + one.labels.tobytes())
    assert arrays_digest(splits) == found.hexdigest()[:16]
    images[7, 3, 3] ^= 1
    assert (
        arrays_digest(read_own_arrays(saved(tmp_path, images=images, labels=labels)))
        != found.hexdigest()[:16]
    )


def test_what_was_kept_is_loaded_and_what_was_changed_is_refused(tmp_path):
    images, labels = made()
    splits = read_own_arrays(saved(tmp_path, images=images, labels=labels))
    name, digest = keep_arrays(splits, tmp_path)
    assert name == f"arrays-{digest}.npz"
    assert keep_arrays(splits, tmp_path) == (name, digest)
    test = load("arrays", "test", tmp_path, arrays=name, digest=digest)
    assert isinstance(test, Examples)
    assert np.array_equal(test.images, splits["test"].images)
    with pytest.raises(DataError, match=rf"their digest is {digest}, not 0000"):
        load("arrays", "test", tmp_path, arrays=name, digest="0000")
    with pytest.raises(DataError, match="softtargets data arrays FILE"):
        load("arrays", "test", tmp_path, arrays="other.npz", digest=digest)
    saved(tmp_path, images=images)
    with pytest.raises(DataError, match="was not written by softtargets data arrays"):
        load("arrays", "test", tmp_path, arrays="mine.npz", digest="")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pixels": made()[0]}, "has pixels; it should have images and labels"),
        (
            {"images": made()[0].reshape(60, -1), "labels": made()[1]},
            r"images have the shape \(60, 36\); it must be",
        ),
        (
            {"images": made()[0] / 100, "labels": made()[1]},
            "give uint8 from 0 to 255, or numbers from 0 to 1",
        ),
        ({"images": made()[0] * np.nan, "labels": made()[1]}, "values from nan to nan"),
        ({"images": made()[0].astype(int) + 9, "labels": made()[1]}, "values must be from 0 to 255"),
        ({"images": made()[0], "labels": made()[1] / 2}, "labels are float64"),
        ({"images": made()[0], "labels": made()[1][:50]}, "60 images but 50 labels"),
        ({"images": made()[0][:5], "labels": made()[1][:5]}, "5 examples are too few"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        read_own_arrays(saved(tmp_path, **arrays))


def test_files_that_are_no_arrays_are_refused_and_nothing_is_executed(tmp_path):
    objects = np.array([{"a": 1}, print], dtype=object)
    np.save(tmp_path / "objects.npy", objects, allow_pickle=True)
    with pytest.raises(DataError, match="Python objects, which are not read"):
        read_own_arrays(tmp_path / "objects.npy", tmp_path / "objects.npy")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(DataError, match="cannot be read as"):
        read_own_arrays(tmp_path / "text.npz")
    (tmp_path / "cut.npz").write_bytes(saved(tmp_path, images=made()[0], labels=made()[1]).read_bytes()[:300])
    with pytest.raises(DataError, match="cannot be read as"):
        read_own_arrays(tmp_path / "cut.npz")
    with pytest.raises(Exception, match=r"nowhere\.npz"):
        read_own_arrays(tmp_path / "nowhere.npz")
    np.save(tmp_path / "x.npy", made()[0])
    with pytest.raises(DataError, match="also give the file with its labels"):
        read_own_arrays(tmp_path / "x.npy")


def test_a_class_of_the_test_set_alone_is_refused(tmp_path):
    images, labels = made()
    others = np.where(np.arange(60) == 59, 7, labels)
    path = tmp_path / "a.npz"
    np.savez(path, images=images, labels=labels, test_images=images, test_labels=others)
    with pytest.raises(DataError, match="7 is a class of the test set that the training set does not have"):
        read_own_arrays(path)
    np.savez(path, images=images, labels=others, test_images=images, test_labels=labels)
    assert read_own_arrays(path)["test"].classes == ("0", "1", "2", "7")
