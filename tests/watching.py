"""Waiting for something in a browser whose pages forbid scripts of others."""

from __future__ import annotations

import time


def wait_until(page, condition: str, seconds: float = 30.0) -> None:
    """Ask a page again and again if a condition holds; `page.wait_for_function` would be kept from asking twice."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"{condition} does not hold after {seconds:g} s"
        time.sleep(0.02)
