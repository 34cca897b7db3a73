"""Download one file over HTTP so that it is either whole and right, or not there.

Bytes go to ``<file>.part``; a sidecar ``<file>.part.json`` remembers which version of the remote file
they belong to (its ETag or date). A broken download continues from there, and a remote file that has
changed meanwhile is begun again instead of spliced. The file gets its name only after its checksum has
been compared.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from softtargets.data.files import BLOCK, file_problem
from softtargets.data.progress import Progress, Silence
from softtargets.data.source import Archive
from softtargets.exceptions import DataError
from softtargets.storage import make_directory, storage_errors, sync_directory

_TOO_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_MOST_ATTEMPTS = 100
LARGEST = 2 << 30  # bytes of a file whose size nobody published: CUB-200 has 1.15 GB, EMNIST 0.56
_WINDOW = 60.0  # seconds in which a byte now and then is not enough
_SLOWEST = 100  # bytes a second
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


@dataclass(frozen=True)
class Patience:
    """How long to keep trying: `attempts` in a row that bring nothing new, with pauses that double."""

    timeout: float = 30.0
    attempts: int = 5
    pause: float = 1.0
    longest_pause: float = 30.0
    sleep: Callable[[float], None] = time.sleep


def download(
    archive: Archive, destination: Path, progress: Progress | None = None, patience: Patience | None = None
) -> None:
    """Download `archive` to `destination`, trying its addresses in turn."""
    part = _Part(destination)
    failures = []
    make_directory(destination.parent)
    for url in archive.urls:
        listener = progress or Silence()
        try:
            _Transfer(url, archive, part, listener).run(patience or Patience())
            _accept(archive, part)
        except _Unavailable as failure:
            failures.append(f"{url}: {failure}")
            continue
        finally:
            listener.finish()
        part.become(destination)
        return
    by_hand = ""
    if archive.checksum or archive.inspect:  # a file that is there is known to be right
        by_hand = f"; without a network, put the file at {destination} and give the same command again"
    raise DataError(f"could not fetch {archive.file}: {'; '.join(failures)}{by_hand}")


class _Unavailable(Exception):
    """This address will not give us the file; another might."""


class _Interrupted(Exception):
    """The network or the server failed in a way that may pass."""


@dataclass(frozen=True)
class _Stamp:
    """Which remote file the bytes of a part belong to."""

    url: str = ""
    etag: str = ""
    modified: str = ""
    total: int | None = None

    @property
    def validator(self) -> str:
        return self.etag or self.modified

    def differs(self, other: _Stamp) -> bool:
        return bool(self.validator and other.validator) and self.validator != other.validator


class _Part:
    """The bytes so far, and their stamp."""

    def __init__(self, destination: Path) -> None:
        self.path = destination.with_name(destination.name + ".part")
        self._stamp_path = destination.with_name(destination.name + ".part.json")

    def size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def stamp(self) -> _Stamp:
        try:
            return _Stamp(**json.loads(self._stamp_path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return _Stamp()  # without a readable stamp the part is simply not continued

    def begin(self, stamp: _Stamp) -> None:
        # In this order: after a crash in between, the old stamp describes an empty file, which harms nobody.
        with storage_errors(self.path):
            self.path.write_bytes(b"")
            self._stamp_path.write_text(json.dumps(asdict(stamp)), encoding="utf-8")

    def clear(self) -> None:
        with storage_errors(self.path):
            self.path.unlink(missing_ok=True)
            self._stamp_path.unlink(missing_ok=True)

    def become(self, destination: Path) -> None:
        with storage_errors(destination):
            os.replace(self.path, destination)
            self._stamp_path.unlink(missing_ok=True)
            sync_directory(destination.parent)


class _Transfer:
    """One address, asked until the part is complete."""

    def __init__(self, url: str, archive: Archive, part: _Part, listener: Progress) -> None:
        self.url, self.archive, self.part, self.listener = url, archive, part, listener

    def run(self, patience: Patience) -> None:
        """Repeat requests until the part is complete; raise _Unavailable when that is hopeless."""
        idle = 0
        for _ in range(_MOST_ATTEMPTS):
            before = self.part.size()
            try:
                if self._request(patience.timeout):
                    return
                reason = f"the connection was cut after {self.part.size()} bytes"
            except _Interrupted as problem:
                reason = str(problem)
            idle = 0 if self.part.size() > before else idle + 1
            if idle >= patience.attempts:
                break
            patience.sleep(min(patience.pause * 2**idle, patience.longest_pause))
        kept = self.part.size()
        hint = f" ({kept} bytes are kept; run the command again to continue)" if kept else ""
        raise _Unavailable(f"{reason}, in {patience.attempts} attempts in a row{hint}")

    def _request(self, timeout: float) -> bool:
        """Make one request and add what comes to the part; return whether it is complete."""
        stamp, have = self.part.stamp(), self.part.size()
        # Without a validator only a published checksum can tell whether two halves belong together.
        if stamp.url != self.url or not (stamp.validator or self.archive.checksum):
            have = 0
        if have and stamp.total == have:
            self.listener.start(self.archive.file, have, have)
            return True
        response = self._open(stamp, have, timeout)
        if response is None:
            return True
        with response:
            have, total = self._begin(response, stamp, have)
            self.listener.start(self.archive.file, total, have)
            have += self._append(response, have)
        return total is None or have == total

    def _open(self, stamp: _Stamp, have: int, timeout: float) -> Any:
        """Ask for what is missing: the response, or None where the server says that nothing is."""
        headers = {"User-Agent": "softtargets", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            headers |= {"If-Range": stamp.validator} if stamp.validator else {}
        # The opener knows files and FTP as well, so every address is looked at before it is followed.
        _check_scheme(self.url, self.url)
        opener = urllib.request.build_opener(_OnlyHttp)
        try:
            return opener.open(urllib.request.Request(self.url, headers=headers), timeout=timeout)
        except urllib.error.HTTPError as problem:
            problem.close()
            return self._answered(problem, have)
        except ValueError as problem:  # an address that is none, in a redirect
            raise _Unavailable(f"it redirects to an address that cannot be read ({problem})") from None
        except urllib.error.URLError as problem:
            if isinstance(problem.reason, ssl.SSLCertVerificationError):
                raise _Unavailable(f"the server's certificate is not valid ({problem.reason})") from None
            raise _Interrupted(str(problem.reason)) from None
        except (OSError, http.client.HTTPException) as problem:
            raise _Interrupted(f"{type(problem).__name__} {problem}".strip()) from None

    def _answered(self, problem: urllib.error.HTTPError, have: int) -> None:
        """Nothing more to come, or why not."""
        if problem.code == 416:  # there is no such range
            if have and _content_range(problem.headers)[1] == have:
                return
            self.part.clear()
            raise _Interrupted("the server no longer has the rest of the file")
        kind = _Interrupted if problem.code in _TOO_BUSY else _Unavailable
        raise kind(f"the server answered {problem.code} {problem.reason}")

    def _begin(self, response: Any, stamp: _Stamp, have: int) -> tuple[int, int | None]:
        """How many bytes of how many are there before the response: it goes on, or sends all again."""
        offered, goes_on = _offered(self.url, response), response.status == 206
        start, total = _content_range(response.headers) if goes_on else (0, offered.total)
        if goes_on and (not have or start != have or offered.differs(stamp)):
            self.part.clear()
            raise _Interrupted("the server resumed a different file")
        if self.archive.size is not None and total not in (None, self.archive.size):
            raise _Unavailable(f"the server offers {total} bytes, expected {self.archive.size}")
        if not goes_on:
            self.part.begin(offered)
        return start or 0, total

    def _append(self, response: Any, have: int) -> int:
        """Copy the response's body to the end of the part; return how many bytes came."""
        added, most = 0, self.archive.size or LARGEST
        until, counted = time.monotonic() + _WINDOW, 0
        with storage_errors(self.part.path), open(self.part.path, "ab") as file:
            try:
                while block := _receive(response):
                    file.write(block)
                    added += len(block)
                    self.listener.advance(len(block))
                    if have + added > most:
                        raise _Unavailable(f"the server sends more than the {most} bytes expected")
                    if time.monotonic() > until:
                        if added - counted < _WINDOW * _SLOWEST:
                            raise _Interrupted(f"the server sends fewer than {_SLOWEST} bytes a second")
                        until, counted = time.monotonic() + _WINDOW, added
            finally:
                _flush(file)
        return added


def _receive(response: Any) -> bytes:
    try:
        # read1 hands over what has arrived, so that a cut loses nothing already received.
        block: bytes = response.read1(BLOCK)
        return block
    except (OSError, http.client.HTTPException) as problem:
        raise _Interrupted(f"the connection was lost ({type(problem).__name__})") from None


def _accept(archive: Archive, part: _Part) -> None:
    """Compare the complete part with what is published; remove it where it is something else."""
    problem = file_problem(part.path, archive.checksum, archive.inspect)
    if not problem:
        return
    page = " and looks like a web page (a login or proxy page?)" if _is_web_page(part.path) else ""
    size = part.size()
    part.clear()
    raise _Unavailable(
        f"the downloaded file ({size} bytes) is not the published one{page}: {problem}. It was removed; run the "
        "command again, and if that does not help, the file on the server has changed"
    )


def _is_web_page(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(512).lstrip().lower().startswith((b"<!doctype", b"<html"))


def _offered(url: str, response: Any) -> _Stamp:
    etag = response.headers.get("ETag", "")
    length = response.headers.get("Content-Length", "")
    return _Stamp(
        url=url,
        etag="" if etag.startswith("W/") else etag,  # a weak one does not promise identical bytes
        modified=response.headers.get("Last-Modified", ""),
        total=int(length) if length.isdigit() and response.status == 200 else None,
    )


def _content_range(headers: Message) -> tuple[int | None, int | None]:
    match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", "").strip())
    if match is None:
        return None, None
    start, _, total = match.groups()
    return (None if start is None else int(start)), (None if total == "*" else int(total))


class _OnlyHttp(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        _check_scheme(newurl, req.full_url)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_scheme(url: str, origin: str) -> None:
    scheme = urlsplit(url).scheme.lower()
    if scheme not in ("http", "https") or (scheme == "http" and urlsplit(origin).scheme.lower() == "https"):
        raise _Unavailable(
            f"it redirects to '{url}'; only http and https are followed, and https never to http"
        )


def _flush(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
