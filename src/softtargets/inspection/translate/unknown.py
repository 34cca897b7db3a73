"""Characters that a model has never seen: how many sentences have some, and which they are."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.report import plural
from softtargets.translation import UNK, Tokeniser

NAMED = 5  # characters that are named


class Unknown:
    """Counts sentences with unknown characters; of a codec that is not our tokeniser none.

    >>> unknown = Unknown(tokeniser := Tokeniser.learn(["low lower lowest"], size=12))
    >>> unknown.add(texts := ["low", "snow"], tokeniser.encode(texts))
    >>> unknown.told("line")
    '1 of 2 lines has characters that the training text does not have: n (U+006E). The model reads them as unknown'
    """

    def __init__(self, codec: object) -> None:
        self.codec = codec
        self.seen = self.count = 0
        self._characters: dict[str, None] = {}

    def add(self, texts: Sequence[str], encoded: Sequence[Sequence[int]]) -> None:
        """Look at texts and their tokens."""
        self.seen += len(texts)
        if not isinstance(self.codec, Tokeniser):
            return
        for text, tokens in zip(texts, encoded, strict=True):
            if UNK in tokens:
                self.count += 1
                self._characters.update(dict.fromkeys(self.codec.unknown_in(text)))

    def told(self, what: str) -> str:
        """The same as a sentence without its full stop, or nothing; `what` is what a text is called."""
        if not self.count:
            return ""
        have = "has" if self.count == 1 else "have"
        named = ", ".join(_named(one) for one in list(self._characters)[:NAMED])
        more = len(self._characters) - NAMED
        return (
            f"{self.count:,} of {plural(self.seen, what)} {have} characters that the training text does not have: "
            f"{named}{f' and {more:,} more' if more > 0 else ''}. The model reads them as unknown"
        )


def _named(character: str) -> str:
    number = f"U+{ord(character):04X}"
    return f"{character} ({number})" if character.isprintable() else number
