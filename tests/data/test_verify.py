from __future__ import annotations

import hashlib

import pytest

from softtargets.data import CATALOGUE, status, verify
from softtargets.data.source import Folder, KnownFile, Source
from softtargets.data.verify import check_source
from softtargets.exceptions import DataError


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def refuse(path) -> None:
    raise DataError("not what it seems")


TOY = Source(
    "toy",
    "Toy",
    "",
    "",
    "",
    "",
    layouts=(
        (
            KnownFile("bin/a", 3, sha256(b"abc"), instead=(KnownFile("bin/a.plain", 2, sha256(b"ab")),)),
            KnownFile("bin/b", inspect=refuse),
        ),
        (KnownFile("py/a", checksum=sha256(b"xyz")),),
    ),
)


def put(root, **files: bytes) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_plain", ".plain")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


def problems(root) -> dict[str, str]:
    return {check.file.relative_to(root).as_posix(): check.problem for check in check_source(TOY, root)}


def test_nothing_there_reports_the_first_layout_with_the_remedy(tmp_path):
    assert problems(tmp_path) == {"bin/a": "it is missing", "bin/b": "it is missing"}
    assert check_source(TOY, tmp_path)[0].fix == f"get it with: softtargets data fetch toy --to {tmp_path}"


def test_size_content_and_inspection_are_each_checked(tmp_path):
    put(tmp_path, bin__a=b"abcd", bin__b=b"")
    assert problems(tmp_path) == {"bin/a": "it has 4 bytes, expected 3", "bin/b": "not what it seems"}
    put(tmp_path, bin__a=b"abx")
    assert "expected " + hashlib.sha256(b"abc").hexdigest() in problems(tmp_path)["bin/a"]
    put(tmp_path, bin__a=b"abc")
    assert problems(tmp_path)["bin/a"] == ""


def test_another_form_of_a_file_is_checked_in_its_place(tmp_path):
    put(tmp_path, bin__a_plain=b"ab")
    assert problems(tmp_path) == {"bin/a.plain": "", "bin/b": "it is missing"}


def test_the_layout_that_is_there_is_the_one_checked(tmp_path):
    put(tmp_path, py__a=b"xyz")
    assert problems(tmp_path) == {"py/a": ""}


def test_folders_are_counted(tmp_path):
    source = Source("toy", "Toy", "", "", "", "", folders=(Folder("train", 2, 3),))
    for name in ("x/1.png", "x/2.JPG", "y/deep/3.jpeg", "y/notes.txt"):
        (tmp_path / "train" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "train" / name).write_bytes(b"")
    assert [check.ok for check in check_source(source, tmp_path)] == [True]
    (tmp_path / "train" / "x" / "1.png").unlink()
    (check,) = check_source(source, tmp_path)
    assert check.problem == "it has 2 images and 2 directories, expected 3 and 2"


def test_status_goes_by_existence(tmp_path):
    assert status("mnist", tmp_path) == "missing"
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    names = [file.path.split("/")[-1] for file in CATALOGUE["mnist"].layouts[0]]
    (folder / names[0]).write_bytes(b"")
    assert status("mnist", tmp_path) == "incomplete"
    for name in names[1:]:
        (folder / name.removesuffix(".gz")).write_bytes(b"")
    assert status("mnist", tmp_path) == "ready"
    assert not all(check.ok for check in verify("mnist", tmp_path))


def test_status_of_folder_sets_needs_files_and_folders(tmp_path):
    (tmp_path / "imagenet" / "train").mkdir(parents=True)
    assert status("imagenet", tmp_path) == "incomplete"
    (tmp_path / "imagenet" / "val").mkdir()
    assert status("imagenet", tmp_path) == "ready"
    assert status("cub200", tmp_path) == "missing"


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(DataError, match="did you mean 'mnist'"):
        verify("mnits", tmp_path)


@pytest.mark.realdata
@pytest.mark.parametrize(
    "name", ["mnist", "fashion-mnist", "cifar10", "cifar100", "cifar10n", "cifar100n", "multi30k", "tatoeba"]
)
def test_real_files_pass_every_check(real, name):
    root = real()
    if status(name, root) != "ready":
        missing = next(check.file for check in verify(name, root) if not check.ok)
        pytest.skip(f"{missing} is missing")
    assert [check for check in verify(name, root) if not check.ok] == []
