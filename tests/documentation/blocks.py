"""Blocks of code on Markdown pages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(
    r"^(?P<indent>[ ]*)```(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """One block: its page, the line where it begins, its language and its code."""

    page: Path
    line: int
    language: str
    code: str


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, from top to bottom."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text[: found.start()].count("\n") + 2, found["language"], dedent(found["code"]))
        for found in _FENCE.finditer(text)
    ]


def pages() -> list[Path]:
    """The README and all pages under docs/."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
