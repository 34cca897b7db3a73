"""Archives of others: whatever is wrong is a ValueError, and nothing takes more than is allowed."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from softtargets.exceptions import StorageError
from softtargets.storage import Archive, unzipped


@pytest.fixture
def path(tmp_path):
    with ZipFile(tmp_path / "a.zip", "w", ZIP_DEFLATED) as file:
        file.writestr("one", b"1" * 100_000)
        file.writestr("two", b"2")
    return tmp_path / "a.zip"


def test_members_are_read_within_bounds(path):
    with Archive.open(path) as archive:
        assert archive.names == ["one", "two"]
        assert archive.read("one", 100_000) == b"1" * 100_000
        assert archive.sha256("one", 100_000) == hashlib.sha256(b"1" * 100_000).hexdigest()
        for ask in (archive.read, archive.sha256):
            with pytest.raises(ValueError, match="one has more than 0 MiB"):
                ask("one", 99_999)
            with pytest.raises(ValueError, match="three is missing"):
                ask("three", 9)


def test_damage_is_a_value_error(path, tmp_path):
    content = path.read_bytes()
    for length in (0, 10, len(content) - 10):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r".+"), Archive.open(path):
            pass
    path.write_bytes(content[:45] + bytes(20) + content[65:])
    with Archive.open(path) as archive:
        for ask in (archive.read, archive.sha256):
            with pytest.raises(ValueError, match="one is damaged"):
                ask("one", 100_000)
    with pytest.raises(StorageError, match="cannot read"), Archive.open(tmp_path / "nowhere"):
        pass


def test_two_members_of_one_name_are_refused(tmp_path):
    with ZipFile(tmp_path / "a.zip", "w") as file:
        file.writestr("one", b"1")
        with pytest.warns(UserWarning, match="Duplicate name"):
            file.writestr("one", b"2")
    with pytest.raises(ValueError, match="two members with the same name"), Archive.open(tmp_path / "a.zip"):
        pass


def test_errors_of_whoever_reads_are_not_those_of_the_archive(path):
    with pytest.raises(OSError, match="mine"), Archive.open(path):
        raise OSError("mine")


def test_gzip_is_bounded_too():
    bomb = gzip.compress(bytes(1 << 24))
    assert len(bomb) < 1 << 15
    with pytest.raises(ValueError, match="it has more than 1 MiB"):
        unzipped(bomb, 1 << 20)
    assert unzipped(bomb, 1 << 24) == bytes(1 << 24)
    for damaged in (b"no gzip", bomb[:100], zlib.compress(b"x")):
        with pytest.raises(ValueError, match="it is damaged"):
            unzipped(damaged, 1 << 25)
