"""What counts as the same sentence, and the order in which a hash puts sentences."""

from __future__ import annotations

import hashlib
import re
import unicodedata

_WORDS = re.compile(r"\w+")


def plain_form(sentence: str) -> str:
    """Return the words alone: compatibility characters unified, case folded, punctuation and spaces left out.

    A sentence without any word stays what it is, apart from the space around it.

    >>> plain_form("You’re  LATE, aren't you?") == plain_form("you're late - aren’t you")
    True
    >>> plain_form(" ?! ")
    '?!'
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", sentence).casefold())
    return " ".join(_WORDS.findall(folded)) or folded.strip()


def hashed(text: str, purpose: str) -> float:
    """Return a number in [0, 1) that depends on the two texts alone, on every machine and for ever (SHA-256).

    >>> round(hashed("hello", "an example"), 4)
    0.6915
    """
    digest = hashlib.sha256(f"{purpose}\n{text}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:6], "big") / 2**48  # 48 bits: exact as a float, and below 1
