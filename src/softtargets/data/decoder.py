"""A process that decodes, asked on standard input and answering on standard output.

A question is a line of JSON: which files, how, and where in whose memory their pixels belong. The answer is the sizes
of the pictures, or what is wrong. It ends when nobody can ask any more, also if whoever asked was killed.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import numpy as np

from softtargets.data.boxes import Tries
from softtargets.data.decoding import Decoding, Size, decode_file, put
from softtargets.exceptions import SofttargetsError

# Memories that a process remembers where they are: those of training, evaluation and predictions take turns.
_MEMORIES = 4


def fill(
    memory: Any, offset: int, paths: Sequence[str], how: Decoding, tries: Sequence[Tries] | None = None
) -> list[Size]:
    """Decode files one after another into some memory, from a place on; returns the sizes of what is kept.

    `tries` say for each which part is cut out, where that is wanted.
    """
    room = np.frombuffer(memory, np.uint8, len(paths) * how.bytes, offset).reshape(-1, how.side, how.side, 3)
    cuts: Sequence[Tries | None] = tries or [None] * len(paths)
    return [
        put(decode_file(path, how, cut), square) for path, cut, square in zip(paths, cuts, room, strict=True)
    ]


def answer(questions: TextIO, answers: TextIO) -> None:
    """Answer until there are no more questions."""
    known: dict[int, mmap.mmap] = {}
    for line in questions:
        asked = json.loads(line)
        number, path = asked["memory"]
        if number not in known:
            if len(known) == _MEMORIES:  # the oldest is the one that has gone, or is mapped again
                del known[next(iter(known))]
            known[number] = _opened(path)
        said: dict[str, Any]
        try:
            tries = [Tries(*each) for each in asked["tries"]]
            how = Decoding(**asked["how"])
            said = {"sizes": fill(known[number], asked["offset"], asked["paths"], how, tries)}
        except SofttargetsError as problem:
            said = {"problem": str(problem)}
        answers.write(f"{json.dumps(said)}\n")
        answers.flush()


def _opened(path: str) -> mmap.mmap:
    file = os.open(path, os.O_RDWR)
    try:
        return mmap.mmap(file, 0)
    finally:
        os.close(file)


def main() -> None:
    """Be such a process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asks decides when it is over
    answer(sys.stdin, sys.stdout)
