from __future__ import annotations

import hashlib
import io
import multiprocessing
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from softtargets.data import fetch
from softtargets.data.download import Patience
from softtargets.data.fetch import fetch_source
from softtargets.data.source import Archive, KnownFile, Source
from softtargets.exceptions import DataError, StorageError

CONTENT = b"softtargets" * 30_000
QUICK = Patience(timeout=10, attempts=2, pause=0.01)


def md5(data: bytes) -> str:
    return f"md5:{hashlib.md5(data).hexdigest()}"


def tarball(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"top/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def source(*archives: Archive, files: tuple[KnownFile, ...] = ()) -> Source:
    return Source("toy", "Toy", "", "", "", "", archives, (files,) if files else ())


def kept(url: str) -> Source:
    return source(
        Archive("toy/raw/file", (url,), md5(CONTENT)),
        files=(KnownFile("toy/raw/file", len(CONTENT), md5(CONTENT)),),
    )


def packed(url: str, content: bytes) -> Source:
    return source(
        Archive("toy.tgz", (url,), md5(content), unpack="tar", top="top", into="toy/raw"),
        files=(KnownFile("toy/raw/x", 3, md5(b"abc")), KnownFile("toy/raw/y")),
    )


def test_a_kept_file_is_fetched_once(server, tmp_path):
    toy = kept(server.serve("a", CONTENT))
    assert fetch_source(toy, tmp_path, patience=QUICK) == [tmp_path / "toy/raw/file"]
    assert (tmp_path / "toy/raw/file").read_bytes() == CONTENT
    fetch_source(toy, tmp_path, patience=QUICK)
    assert len(server.seen) == 1


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    toy = kept(server.serve("a", CONTENT))
    fetch_source(toy, tmp_path, patience=QUICK)
    (tmp_path / "toy/raw/file").write_bytes(CONTENT[:-1] + b"!")
    fetch_source(toy, tmp_path, patience=QUICK)
    assert (tmp_path / "toy/raw/file").read_bytes() == CONTENT


def test_an_archive_is_unpacked_removed_and_not_fetched_again(server, tmp_path):
    content = tarball(x=b"abc", y=b"")
    toy = packed(server.serve("a", content), content)
    assert fetch_source(toy, tmp_path, patience=QUICK) == [tmp_path / "toy/raw/x", tmp_path / "toy/raw/y"]
    assert not (tmp_path / "toy.tgz").exists()
    fetch_source(toy, tmp_path, patience=QUICK)
    assert len(server.seen) == 1
    (tmp_path / "toy/raw/x").write_bytes(b"abd")
    fetch_source(toy, tmp_path, patience=QUICK)
    assert (tmp_path / "toy/raw/x").read_bytes() == b"abc"
    assert len(server.seen) == 2


def test_an_archive_downloaded_by_hand_is_used(server, tmp_path):
    content = tarball(x=b"abc", y=b"")
    (tmp_path / "toy.tgz").write_bytes(content)
    fetch_source(packed(f"{server.base}/none", content), tmp_path, patience=QUICK)
    assert server.seen == []
    assert (tmp_path / "toy/raw/x").read_bytes() == b"abc"


def test_an_archive_that_lacks_a_file_is_reported(server, tmp_path):
    content = tarball(x=b"abc")
    with pytest.raises(DataError, match=r"toy/raw/y is wrong even after fetching Toy: it is missing"):
        fetch_source(packed(server.serve("a", content), content), tmp_path, patience=QUICK)


def test_the_unpacking_limit_is_passed_on(server, tmp_path):
    content = tarball(x=bytes(100_000), y=b"")
    with pytest.raises(DataError, match="bomb"):
        fetch_source(packed(server.serve("a", content), content), tmp_path, patience=QUICK, largest=1000)
    assert not (tmp_path / "toy").exists() or list((tmp_path / "toy").iterdir()) == []


def test_imagenet_says_where_to_get_it_and_how_to_lay_it_out(tmp_path):
    with pytest.raises(DataError, match=r"image-net\.org.*1d675b47d978889d74fa0da5fadfb00e.*/train/<wnid>"):
        fetch("imagenet", tmp_path / "sets")
    assert not (tmp_path / "sets").exists()


def test_digits_need_no_fetching(tmp_path):
    assert fetch("digits", tmp_path / "sets") == []


def test_an_unknown_name_gets_a_suggestion(tmp_path):
    with pytest.raises(DataError, match="did you mean 'cifar100'"):
        fetch("cifar-100", tmp_path)


def test_a_download_that_cannot_fit_is_not_begun(server, tmp_path):
    huge = source(Archive("x", (server.serve("a", CONTENT),), md5(CONTENT), 1 << 60))
    with pytest.raises(StorageError, match="MiB are free"):
        fetch_source(huge, tmp_path, patience=QUICK)
    assert server.seen == []


def test_an_archive_needs_room_for_itself_and_for_what_is_in_it(server, tmp_path, monkeypatch):
    content = tarball(x=b"abc", y=b"")
    toy = packed(server.serve("a", content), content)
    toy = replace(toy, archives=(replace(toy.archives[0], size=len(content)),))
    free = SimpleNamespace(free=2 * len(content) - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    with pytest.raises(StorageError, match="MiB are free"):
        fetch_source(toy, tmp_path, patience=QUICK)
    free.free += 1
    assert [file.name for file in fetch_source(toy, tmp_path, patience=QUICK)] == ["x", "y"]


def test_a_target_that_is_a_file_is_a_storage_error(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError):
        fetch_source(kept(server.serve("a", CONTENT)), tmp_path / "file", patience=QUICK)


def _fetch_in_process(url: str, to: str, answers: multiprocessing.Queue) -> None:
    try:
        fetch_source(kept(url), Path(to), patience=QUICK)
        answers.put("done")
    except Exception as problem:
        answers.put(repr(problem))


def test_two_processes_at_once_fetch_it_once(server, tmp_path):
    # Slow enough that both are waiting before the first is done.
    url = server.serve("a", CONTENT, delay=1.5)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    workers = [
        context.Process(target=_fetch_in_process, args=(url, str(tmp_path), answers)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    assert [answers.get(timeout=30) for _ in workers] == ["done", "done"]
    for worker in workers:
        worker.join(timeout=10)
    assert (tmp_path / "toy/raw/file").read_bytes() == CONTENT
    assert len(server.seen) == 1
