from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path

import pytest

from softtargets.data.download import Patience, download
from softtargets.data.source import Archive
from softtargets.exceptions import DataError, StorageError

CONTENT = bytes(range(256)) * 2000  # 512,000 bytes
OTHER = bytes(reversed(CONTENT))


class Pauses:
    def __init__(self) -> None:
        self.taken: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


class Listener:
    def __init__(self) -> None:
        self.starts: list[tuple[str, int | None, int]] = []
        self.done = 0
        self.finished = 0

    def start(self, name: str, total: int | None, done: int) -> None:
        self.starts.append((name, total, done))
        self.done = done

    def advance(self, n: int) -> None:
        self.done += n

    def finish(self) -> None:
        self.finished += 1


def quick(pauses: Pauses | None = None, attempts: int = 3) -> Patience:
    return Patience(timeout=5, attempts=attempts, sleep=pauses or Pauses())


def archive(*urls: str, content: bytes = CONTENT, checksum: bool = True, size: int | None = None) -> Archive:
    digest = f"md5:{hashlib.md5(content).hexdigest()}" if checksum else None
    return Archive("set/file.bin", urls, digest, size)


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_file_arrives_and_nothing_else_stays(server, tmp_path):
    listener = Listener()
    url = server.serve("a", CONTENT)
    download(archive(url, size=len(CONTENT)), tmp_path / "set" / "file.bin", listener, quick())
    assert (tmp_path / "set" / "file.bin").read_bytes() == CONTENT
    assert leftovers(tmp_path / "set") == ["file.bin"]
    assert listener.starts == [("set/file.bin", len(CONTENT), 0)]
    assert (listener.done, listener.finished) == (len(CONTENT), 1)


@pytest.mark.parametrize("cut", [1, 1000, 65536, len(CONTENT) - 1])
def test_a_cut_connection_is_continued_where_it_broke(server, tmp_path, cut):
    listener, pauses = Listener(), Pauses()
    url = server.serve("a", CONTENT, cuts=[cut])
    download(archive(url), tmp_path / "f", listener, quick(pauses))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [(seen.range, seen.if_range) for seen in server.seen] == [
        (None, None),
        (f"bytes={cut}-", '"v1"'),
    ]
    assert listener.starts[1] == ("set/file.bin", len(CONTENT), cut)
    assert listener.done == len(CONTENT)
    assert len(pauses.taken) == 1


def test_many_cuts_that_each_bring_something_are_survived(server, tmp_path):
    url = server.serve("a", CONTENT, cuts=[40_000] * 12)
    download(archive(url), tmp_path / "f", None, quick(attempts=2))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert len(server.seen) == 13


def test_cuts_that_bring_nothing_end_it_and_what_came_is_kept_for_next_time(server, tmp_path):
    pauses = Pauses()
    url = server.serve("a", CONTENT, cuts=[1000, 0, 0, 0])
    with pytest.raises(DataError, match=r"3 attempts in a row \(1000 bytes are kept"):
        download(archive(url), tmp_path / "f", None, quick(pauses))
    assert not (tmp_path / "f").exists()
    assert (tmp_path / "f.part").stat().st_size == 1000
    assert pauses.taken == sorted(pauses.taken)
    assert pauses.taken[-1] > pauses.taken[0]
    download(archive(url), tmp_path / "f", None, quick())
    assert server.seen[-1].range == "bytes=1000-"
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_sends_all_of_it_again(server, tmp_path):
    url = server.serve("a", CONTENT, ranges=False, cuts=[5000])
    listener = Listener()
    download(archive(url), tmp_path / "f", listener, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert listener.starts[1][2] == 0


def test_a_changed_remote_file_is_not_spliced(server, tmp_path):
    url = server.serve("a", OTHER, cuts=[5000, 0, 0, 0])
    with pytest.raises(DataError):
        download(archive(url), tmp_path / "f", None, quick())
    server.serve("a", CONTENT, etag='"v2"')
    download(archive(url), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen[-1].if_range == '"v1"'


def test_a_server_that_ignores_the_condition_is_caught_by_its_new_etag(server, tmp_path):
    url = server.serve("a", OTHER, cuts=[5000, 0, 0, 0])
    with pytest.raises(DataError):
        download(archive(url), tmp_path / "f", None, quick())
    server.serve("a", CONTENT, etag='"v2"', honours_if_range=False)
    # No checksum here, so nothing but the ETag can tell.
    download(archive(url, checksum=False), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_server_that_continues_at_another_byte_is_asked_for_all_of_it(server, tmp_path):
    url = server.serve("a", CONTENT, cuts=[5000], skips=100)
    # It does not say how much there is, and there is no checksum: only where it continues can tell.
    download(archive(url, checksum=False), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [seen.range for seen in server.seen] == [None, "bytes=5000-", None]


def test_without_validator_and_checksum_nothing_is_continued(server, tmp_path):
    url = server.serve("a", CONTENT, etag="", cuts=[5000])
    download(archive(url, checksum=False), tmp_path / "f", None, quick())
    assert [seen.range for seen in server.seen] == [None, None]
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_weak_etag_gives_way_to_the_date(server, tmp_path):
    date = "Wed, 21 Oct 2015 07:28:00 GMT"
    url = server.serve("a", CONTENT, etag='W/"v1"', modified=date, cuts=[5000])
    download(archive(url), tmp_path / "f", None, quick())
    assert server.seen[1].if_range == date
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_part_that_is_already_complete_is_only_checked(server, tmp_path):
    url = server.serve("a", CONTENT)
    (tmp_path / "f.part").write_bytes(CONTENT)
    (tmp_path / "f.part.json").write_text(json.dumps({"url": url, "etag": '"v1"'}))
    download(archive(url), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert [seen.range for seen in server.seen] == [f"bytes={len(CONTENT)}-"]  # answered with 416
    assert leftovers(tmp_path) == ["f"]


def test_a_part_longer_than_the_file_is_begun_again(server, tmp_path):
    url = server.serve("a", CONTENT)
    (tmp_path / "f.part").write_bytes(CONTENT + b"more")
    (tmp_path / "f.part.json").write_text(json.dumps({"url": url, "etag": '"v1"'}))
    download(archive(url), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_an_unreadable_sidecar_means_a_fresh_start(server, tmp_path):
    url = server.serve("a", CONTENT)
    (tmp_path / "f.part").write_bytes(b"x" * 100)
    (tmp_path / "f.part.json").write_text('{"surprise": ')
    download(archive(url), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen[0].range is None


def test_corrupt_bytes_never_get_the_name(server, tmp_path):
    (tmp_path / "f").write_bytes(b"the old file")
    url = server.serve("a", OTHER)
    expected, got = hashlib.md5(CONTENT).hexdigest(), hashlib.md5(OTHER).hexdigest()
    with pytest.raises(DataError, match=f"md5 is {got}, expected {expected}"):
        download(archive(url), tmp_path / "f", None, quick())
    assert leftovers(tmp_path) == ["f"]
    assert (tmp_path / "f").read_bytes() == b"the old file"


def test_a_login_page_is_recognised(server, tmp_path):
    url = server.serve("a", b"<!DOCTYPE html><html>please pay</html>")
    with pytest.raises(DataError, match="looks like a web page"):
        download(archive(url), tmp_path / "f", None, quick())


def test_a_wrong_size_is_refused_before_a_byte_is_taken(server, tmp_path):
    url = server.serve("a", CONTENT)
    with pytest.raises(DataError, match="offers 512000 bytes, expected 7"):
        download(archive(url, size=7), tmp_path / "f", None, quick())
    assert leftovers(tmp_path) == []


def test_a_body_without_length_is_stopped_at_the_expected_size(server, tmp_path):
    url = server.serve("a", CONTENT * 8, length=False)
    with pytest.raises(DataError, match="more than the 1000 bytes expected"):
        download(archive(url, size=1000), tmp_path / "f", None, quick())
    assert not (tmp_path / "f").exists()


def test_a_busy_server_is_asked_again(server, tmp_path):
    url = server.serve("a", CONTENT, codes=[500, 503])
    download(archive(url), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_not_found_is_not_asked_again_but_the_mirror_is(server, tmp_path):
    good = server.serve("good", CONTENT)
    download(archive(f"{server.base}/none", good), tmp_path / "f", None, quick())
    assert [seen.path for seen in server.seen] == ["/none", "/good"]
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_corrupt_mirror_gives_way_to_the_next(server, tmp_path):
    bad, good = server.serve("bad", OTHER), server.serve("good", CONTENT)
    download(archive(bad, good), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT


def test_when_all_fail_each_reason_is_told(server, tmp_path):
    bad = server.serve("bad", OTHER)
    with pytest.raises(DataError, match=r"none: the server answered 404.*bad: the downloaded file"):
        download(archive(f"{server.base}/none", bad), tmp_path / "f", None, quick())


def test_nobody_listening_is_a_data_error(tmp_path):
    with pytest.raises(DataError, match="could not fetch"):
        download(archive("http://127.0.0.1:9/f"), tmp_path / "f", None, quick(attempts=2))


def test_without_a_network_the_place_of_the_file_is_told(tmp_path):
    wanted = archive("http://127.0.0.1:9/f")
    with pytest.raises(DataError, match=r"; without a network, put the file at .*/f and give the same"):
        download(wanted, tmp_path / "f", None, quick(attempts=2))
    # What cannot be checked would be fetched again all the same.
    with pytest.raises(DataError, match=r"attempts in a row$"):
        download(archive("http://127.0.0.1:9/f", checksum=False), tmp_path / "f", None, quick(attempts=2))


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_redirects_lead_to_http_only(server, tmp_path, scheme):
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT)
    url = server.serve("a", location=f"{scheme}://{secret}")
    with pytest.raises(DataError, match=r"only http and https|is not allowed"):
        download(archive(url), tmp_path / "f", None, quick())
    assert leftovers(tmp_path) == ["secret"]


def test_a_redirect_to_what_is_no_address_is_a_data_error(server, tmp_path):
    url = server.serve("a", location="http://[::1")
    with pytest.raises(DataError, match="redirects to an address that cannot be read"):
        download(archive(url), tmp_path / "set" / "file.bin", patience=quick())


def test_a_file_of_unknown_size_has_a_limit(server, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.data.download.LARGEST", 100_000)
    url = server.serve("a", CONTENT)
    with pytest.raises(DataError, match="sends more than the 100000 bytes"):
        download(archive(url), tmp_path / "set" / "file.bin", patience=quick())


def test_a_server_that_hardly_sends_anything_is_asked_again(server, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.data.download._WINDOW", 0.0001)
    monkeypatch.setattr("softtargets.data.download._SLOWEST", 1e12)
    url, pauses = server.serve("a", CONTENT), Pauses()
    download(archive(url, size=len(CONTENT)), tmp_path / "set" / "file.bin", patience=quick(pauses))
    assert pauses.taken  # it was asked again, and in the end all of it had come
    assert (tmp_path / "set" / "file.bin").read_bytes() == CONTENT


def test_a_file_address_is_refused_outright(tmp_path):
    (tmp_path / "secret").write_bytes(CONTENT)
    with pytest.raises(DataError, match="only http and https"):
        download(archive(f"file://{tmp_path}/secret"), tmp_path / "f", None, quick())


def test_a_redirect_within_http_is_followed_with_its_range(server, tmp_path):
    target = server.serve("b", CONTENT, cuts=[1234])
    url = server.serve("a", location=target)
    download(archive(url), tmp_path / "f", None, quick())
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert server.seen[-1].range == "bytes=1234-"


def test_inspection_decides_where_no_checksum_is_published(server, tmp_path):
    def refuse(path: Path) -> None:
        raise DataError("these are not the labels")

    url = server.serve("a", CONTENT)
    with pytest.raises(DataError, match="these are not the labels"):
        download(Archive("x", (url,), inspect=refuse), tmp_path / "f", None, quick())
    assert leftovers(tmp_path) == []


def test_a_full_disk_is_told_apart_from_the_network(server, tmp_path, monkeypatch):
    import sys

    def full(file) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    url = server.serve("a", CONTENT)
    monkeypatch.setattr(sys.modules["softtargets.data.download"], "_flush", full)
    with pytest.raises(StorageError, match=r"f\.part: the disk is full"):
        download(archive(url), tmp_path / "f", None, quick())
    assert len(server.seen) == 1
    assert not (tmp_path / "f").exists()


def test_a_directory_that_cannot_be_made_is_a_storage_error(server, tmp_path):
    (tmp_path / "file").write_text("in the way")
    url = server.serve("a", CONTENT)
    with pytest.raises(StorageError, match="cannot create"):
        download(archive(url), tmp_path / "file" / "f", None, quick())
