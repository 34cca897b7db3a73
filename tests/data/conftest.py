"""Fixtures for the data room: real data where there is some, and a web server that misbehaves to order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def real() -> Callable[..., Path]:
    """Return the real data directory, or skip and say which file is missing."""

    def need(*files: str) -> Path:
        configured = os.environ.get("SOFTTARGETS_DATA")
        if not configured:
            pytest.skip("SOFTTARGETS_DATA is not set")
        for file in files:
            if not (Path(configured) / file).exists():
                pytest.skip(f"{Path(configured) / file} is missing")
        return Path(configured)

    return need


@dataclass
class Behaviour:
    """What the server does with one path. `cuts`: bytes to send per request before hanging up."""

    content: bytes = b""
    etag: str = '"v1"'
    modified: str = ""
    ranges: bool = True
    honours_if_range: bool = True
    skips: int = 0  # bytes that it leaves out when it continues
    cuts: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    location: str = ""
    length: bool = True
    delay: float = 0.0


@dataclass
class Seen:
    path: str
    range: str | None
    if_range: str | None


class Server:
    """A web server on this machine whose files and faults a test sets."""

    def __init__(self) -> None:
        self.files: dict[str, Behaviour] = {}
        self.seen: list[Seen] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                owner.answer(self)

            def log_message(self, *arguments: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, *arguments: Any) -> None:
                """Clients hang up on purpose here."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.http.server_address[1]}"

    def serve(self, name: str, content: bytes = b"", **behaviour: Any) -> str:
        self.files[f"/{name}"] = Behaviour(content, **behaviour)
        return f"{self.base}/{name}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted, condition = handler.headers.get("Range"), handler.headers.get("If-Range")
        self.seen.append(Seen(handler.path, wanted, condition))
        handler.close_connection = True
        file = self.files.get(handler.path)
        if file is None:
            handler.send_error(404)
            return
        time.sleep(file.delay)
        if file.codes:
            handler.send_error(file.codes.pop(0))
            return
        if file.location:
            handler.send_response(302)
            handler.send_header("Location", file.location)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        start = 0
        same = not condition or condition in (file.etag, file.modified) or not file.honours_if_range
        if wanted and file.ranges and same:
            start = int(wanted.removeprefix("bytes=").removesuffix("-")) + file.skips
            if start >= len(file.content):
                handler.send_response(416)
                handler.send_header("Content-Range", f"bytes */{len(file.content)}")
                handler.send_header("Content-Length", "0")
                handler.end_headers()
                return
            handler.send_response(206)
            last = len(file.content) - 1
            total = "*" if file.skips else len(file.content)
            handler.send_header("Content-Range", f"bytes {start}-{last}/{total}")
        else:
            handler.send_response(200)
        body = file.content[start:]
        if file.etag:
            handler.send_header("ETag", file.etag)
        if file.modified:
            handler.send_header("Last-Modified", file.modified)
        if file.length:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: file.cuts.pop(0)] if file.cuts else body)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    thread = threading.Thread(target=running.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.http.shutdown()
    running.http.server_close()
    thread.join()
