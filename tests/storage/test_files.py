from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from softtargets.exceptions import StorageError
from softtargets.storage import (
    digest,
    files,
    fingerprint,
    make_directory,
    read_bounded,
    read_json,
    storage_errors,
    sweep_temporaries,
    write_atomically,
    write_json,
)

FULL = "the disk is full; free some space and run the same command again"
MESSAGES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: "the disk quota is used up; free some space and run the same command again",
    errno.EROFS: "the disk is read-only; choose another directory",
    errno.EACCES: "permission denied; choose another directory or change its permissions",
    errno.EPERM: "permission denied; choose another directory or change its permissions",
    errno.EEXIST: "a file of that name is in the way; choose another directory",
    errno.ENOTDIR: "a part of the path is a file, not a directory; choose another directory",
}


def refuse(code):
    def fail(*arguments, **options):
        raise OSError(code, os.strerror(code))

    return fail


class Reluctant:
    """A real file in which one method fails; a failing write has written half."""

    def __init__(self, file, method, problem):
        self.file, self.method, self.problem = file, method, problem

    def __enter__(self):
        return self

    def __exit__(self, *details):
        self.file.close()

    def write(self, content):
        if self.method == "write":
            self.file.write(content[: len(content) // 2])
            raise self.problem
        return self.file.write(content)

    def flush(self):
        if self.method == "flush":
            raise self.problem
        self.file.flush()

    def fileno(self):
        return self.file.fileno()


def fail_at(stage, problem, monkeypatch):
    def raising(*arguments, **options):
        raise problem

    def half_broken(path, mode):
        return Reluctant(open(path, mode), stage, problem)

    if stage == "open":
        monkeypatch.setattr(files, "open", raising, raising=False)
    elif stage in ("write", "flush"):
        monkeypatch.setattr(files, "open", half_broken, raising=False)
    else:
        monkeypatch.setattr(files.os, stage, raising)


STAGES = ["open", "write", "flush", "fsync", "replace"]


def test_new_content_replaces_old(tmp_path):
    path = tmp_path / "file"
    for content in (b"first", b"second, longer", b""):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_failure_at_any_stage_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, stage, code):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    fail_at(stage, OSError(code, os.strerror(code)), monkeypatch)
    with pytest.raises(StorageError) as caught:
        write_atomically(path, b"new content")
    monkeypatch.undo()
    assert str(caught.value) == f"cannot write {path}: {MESSAGES.get(code, os.strerror(code))}"
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stage", STAGES)
def test_a_failure_at_any_stage_leaves_nothing_where_nothing_was(tmp_path, monkeypatch, stage):
    fail_at(stage, OSError(errno.ENOSPC, "x"), monkeypatch)
    with pytest.raises(StorageError, match=FULL):
        write_atomically(tmp_path / "file", b"new")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("problem", [KeyboardInterrupt, MemoryError])
def test_an_interruption_passes_through_and_leaves_the_old_file(tmp_path, monkeypatch, stage, problem):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    fail_at(stage, problem(), monkeypatch)
    with pytest.raises(problem):
        write_atomically(path, b"new content")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_content_is_on_the_disk_before_the_name_and_the_name_before_returning(tmp_path, monkeypatch):
    path, seen = tmp_path / "file", []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor):
        status = os.fstat(descriptor)
        seen.append("directory" if stat.S_ISDIR(status.st_mode) else f"{status.st_size} bytes")
        fsync(descriptor)

    def noted_replace(source, target):
        seen.append(f"{Path(source).name} becomes {Path(target).name}")
        replace(source, target)

    monkeypatch.setattr(files.os, "fsync", noted_fsync)
    monkeypatch.setattr(files.os, "replace", noted_replace)
    write_atomically(path, b"content")
    written, renamed, synchronised = seen
    assert (written, synchronised) == ("7 bytes", "directory")
    assert re.fullmatch(r"\.file\.[0-9a-f]{8}\.tmp becomes file", renamed)


def test_a_directory_that_cannot_be_synchronised_is_reported_with_the_new_file_in_place(
    tmp_path, monkeypatch
):
    path, fsync, calls = tmp_path / "file", os.fsync, []
    path.write_bytes(b"old")

    def second_fails(descriptor):
        calls.append(descriptor)
        if len(calls) == 2:
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(files.os, "fsync", second_fails)
    with pytest.raises(StorageError, match=r"cannot write .*: Input/output error"):
        write_atomically(path, b"new")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(calls[1])
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_process_killed_at_any_moment_leaves_the_old_file(tmp_path, moment):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    code = (
        "import os, sys; from pathlib import Path; from softtargets.storage import write_atomically\n"
        f"os.{moment} = lambda *arguments: os.kill(os.getpid(), 9)\n"
        "write_atomically(Path(sys.argv[1]), b'new')"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == -9
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2
    sweep_temporaries(tmp_path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("code", "words"), MESSAGES.items())
def test_the_operating_systems_refusals_say_what_to_do(code, words):
    with pytest.raises(StorageError) as caught, storage_errors(Path("/some/file"), "remove"):
        raise OSError(code, os.strerror(code))
    assert str(caught.value) == f"cannot remove /some/file: {words}"


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (OSError("told by no system"), "told by no system"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory"), "No such file or directory"),
    ],
)
def test_other_refusals_are_passed_on_in_the_systems_words(problem, words):
    with pytest.raises(StorageError) as caught, storage_errors(Path("x")):
        raise problem
    assert str(caught.value) == f"cannot write x: {words}"


def test_other_errors_pass_through():
    with pytest.raises(ValueError, match="ours"), storage_errors(Path("x")):
        raise ValueError("ours")


def test_writing_into_a_directory_that_is_not_there_is_refused(tmp_path):
    path = tmp_path / "none" / "file"
    with pytest.raises(StorageError) as caught:
        write_atomically(path, b"")
    assert str(caught.value) == f"cannot write {path}: No such file or directory"


def test_writing_below_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    path = tmp_path / "taken" / "file"
    with pytest.raises(StorageError) as caught:
        write_atomically(path, b"")
    assert str(caught.value) == f"cannot write {path}: {MESSAGES[errno.ENOTDIR]}"


def test_writing_over_a_directory_is_refused_and_leaves_it(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match="Is a directory"):
        write_atomically(tmp_path / "taken", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_is_refused(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(StorageError, match="permission denied"):
        write_atomically(closed / "file", b"")


def test_directories_are_made_with_their_parents_and_may_exist(tmp_path):
    path = tmp_path / "a" / "b" / "c"
    assert make_directory(path) == path
    assert make_directory(path).is_dir()


@pytest.mark.parametrize(("below", "code"), [("taken", errno.EEXIST), ("taken/more", errno.ENOTDIR)])
def test_a_directory_where_a_file_is_cannot_be_made(tmp_path, below, code):
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        make_directory(tmp_path / below)
    assert str(caught.value) == f"cannot create {tmp_path / below}: {MESSAGES[code]}"


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_directory_the_disk_refuses_is_explained(tmp_path, monkeypatch, code):
    monkeypatch.setattr(Path, "mkdir", refuse(code))
    with pytest.raises(StorageError) as caught:
        make_directory(tmp_path / "new")
    assert str(caught.value) == f"cannot create {tmp_path / 'new'}: {MESSAGES[code]}"


def test_json_is_readable_by_people_and_ends_with_a_line(tmp_path):
    path = tmp_path / "a.json"
    content = {"title": "Müller", "b": [1, 2.5, None, True], "a": {}}
    write_json(path, content)
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) == content
    assert list(json.loads(text)) == ["title", "b", "a"]
    assert "Müller" in text
    assert text.endswith("}\n")
    assert len(text.splitlines()) > 3


def test_what_is_not_json_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, [1])
    with pytest.raises(TypeError):
        write_json(path, [object()])
    assert json.loads(path.read_text()) == [1]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20])
def test_checksums_are_those_of_the_whole_content(tmp_path, size):
    path = tmp_path / "file"
    content = bytes(range(251)) * (size // 251 + 1)
    content = content[:size]
    path.write_bytes(content)
    assert digest(path) == hashlib.sha256(content).hexdigest()
    assert digest(path, "md5") == hashlib.md5(content).hexdigest()
    assert fingerprint(path) == {"bytes": size, "sha256": hashlib.sha256(content).hexdigest()}


def test_a_checksum_known_from_elsewhere(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert digest(path) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest(path, "md5") == "900150983cd24fb0d6963f7d28e17f72"


def test_a_missing_file_has_no_checksum(tmp_path):
    with pytest.raises(StorageError) as caught:
        digest(tmp_path / "none")
    assert str(caught.value) == f"cannot read {tmp_path / 'none'}: No such file or directory"


def test_sweeping_removes_temporaries_at_any_depth_and_nothing_else(tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    kept = [tmp_path / "file", deep / "file.tmp", deep / ".hidden", tmp_path / "tmp"]
    swept = [tmp_path / ".file.123.tmp", deep / ".other.json.9.tmp"]
    for path in kept + swept:
        path.write_bytes(b"")
    sweep_temporaries(tmp_path)
    assert all(path.exists() for path in kept)
    assert not any(path.exists() for path in swept)
    sweep_temporaries(tmp_path)


@pytest.mark.parametrize("below", ["", "runs", "deep/er"])
def test_a_link_that_leads_nowhere_is_refused_rather_than_tried_for_ever(tmp_path, below):
    (tmp_path / "link").symlink_to(tmp_path / "unmounted" / "disk")
    program = "import sys, pathlib, softtargets.storage as s; s.make_directory(pathlib.Path(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "link" / below)], capture_output=True, timeout=60
    )
    assert b"StorageError" in done.stderr
    assert f"{tmp_path / 'link'} links to {tmp_path / 'unmounted' / 'disk'}, which does not exist" in str(
        done.stderr
    )


def test_a_link_to_a_directory_is_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    make_directory(tmp_path / "link")
    assert make_directory(tmp_path / "link" / "below").is_dir()


def test_a_file_is_read_up_to_a_bound(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert read_bounded(tmp_path / "a", 3) == b"abc"
    with pytest.raises(OSError, match="more than 0 MiB"):
        read_bounded(tmp_path / "a", 2)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "b", 2)
    with pytest.raises(IsADirectoryError):
        read_bounded(tmp_path, 2)


def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(OSError, match="a pipe or a device"):
            read_bounded(path, 100)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"{", b"\xff", b'"' + b"1" * 5000, b"1" * 5000])
def test_whatever_is_in_a_json_file_it_is_a_value_error(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        read_json(tmp_path / "a.json")
