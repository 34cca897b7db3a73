from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from softtargets.data.unpack import unpack
from softtargets.exceptions import DataError


def make_tar(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return path


def make_zip(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def special(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def tree(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_the_top_directory_becomes_the_target_and_the_rest_is_left(tmp_path, kind):
    make = make_tar if kind == "tar" else make_zip
    archive = make(tmp_path / "a", ("top/x", b"1"), ("top/deep/y", b"2"), ("attributes.txt", b"3"))
    unpack(archive, kind, "top", tmp_path / "out" / "set")
    assert tree(tmp_path / "out") == {"set/x": b"1", "set/deep/y": b"2"}


@pytest.mark.parametrize(
    "name", ["../evil", "top/../../evil", "/tmp/softtargets-evil", "top\\..\\evil", "C:/evil"]
)
@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_paths_that_escape_are_refused(tmp_path, kind, name):
    make = make_tar if kind == "tar" else make_zip
    archive = make(tmp_path / "a", ("top/x", b"1"), (name, b"evil"))
    with pytest.raises(DataError, match="leads outside"):
        unpack(archive, kind, "top", tmp_path / "out" / "set")
    assert tree(tmp_path) == {"a": archive.read_bytes()}
    assert not Path("/tmp/softtargets-evil").exists()
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "member",
    [
        special("top/link", tarfile.SYMTYPE, "/etc"),
        special("top/hard", tarfile.LNKTYPE, "top/x"),
        special("top/device", tarfile.CHRTYPE),
        special("top/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda member: member.name,
)
def test_tar_links_and_devices_are_refused(tmp_path, member):
    archive = make_tar(tmp_path / "a", ("top/x", b"1"), member)
    with pytest.raises(DataError, match=f"'{member.name}', a link or device"):
        unpack(archive, "tar", "top", tmp_path / "set")
    assert not (tmp_path / "set").exists()


def test_a_zip_link_is_refused(tmp_path):
    info = zipfile.ZipInfo("top/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    archive = make_zip(tmp_path / "a", (info, b"/etc"))
    with pytest.raises(DataError, match="a link or device"):
        unpack(archive, "zip", "top", tmp_path / "set")


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_a_bomb_is_stopped_by_what_really_comes_out(tmp_path, kind):
    make = make_tar if kind == "tar" else make_zip
    archive = make(tmp_path / "a", ("top/x", bytes(3 << 20)), ("top/y", bytes(3 << 20)))
    assert archive.stat().st_size < 100_000
    with pytest.raises(DataError, match="bomb"):
        unpack(archive, kind, "top", tmp_path / "set", largest=5 << 20)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    unpack(archive, kind, "top", tmp_path / "set", largest=6 << 20)
    assert (tmp_path / "set" / "y").stat().st_size == 3 << 20


def test_the_same_name_twice_is_refused(tmp_path):
    archive = make_tar(tmp_path / "a", ("top/x", b"1"), ("top/x", b"2"))
    with pytest.raises(DataError, match="twice"):
        unpack(archive, "tar", "top", tmp_path / "set")


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_truncated_archive_leaves_nothing(tmp_path, kind, keep):
    import random

    noise = random.Random(0).randbytes(50_000)
    archive = (make_tar if kind == "tar" else make_zip)(tmp_path / "a", ("top/x", noise), ("top/y", noise))
    archive.write_bytes(archive.read_bytes()[: int(archive.stat().st_size * keep)])
    with pytest.raises(DataError, match="damaged"):
        unpack(archive, kind, "top", tmp_path / "set")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_an_archive_without_the_expected_directory_is_refused(tmp_path):
    archive = make_tar(tmp_path / "a", ("elsewhere/x", b"1"))
    with pytest.raises(DataError, match="no directory 'top'"):
        unpack(archive, "tar", "top", tmp_path / "set")


def test_an_existing_target_is_completed_and_nothing_of_the_users_removed(tmp_path):
    target = tmp_path / "set"
    target.mkdir()
    (target / "x").write_bytes(b"broken")
    (target / "notes").write_bytes(b"mine")
    unpack(make_tar(tmp_path / "a", ("top/x", b"1"), ("top/z/y", b"2")), "tar", "top", target)
    assert tree(target) == {"x": b"1", "z/y": b"2", "notes": b"mine"}


def test_what_a_killed_process_left_is_cleared(tmp_path):
    (tmp_path / ".set-abc.unpacking" / "top").mkdir(parents=True)
    unpack(make_tar(tmp_path / "a", ("top/x", b"1")), "tar", "top", tmp_path / "set")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "set"]
