"""Text to pieces of words and back: joint byte-pair encoding, learnt with Hugging Face's tokenizers."""

from __future__ import annotations

import hashlib
import json
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

from softtargets.exceptions import DataError, SofttargetsError
from softtargets.translation.symbols import BOS, EOS, PAD, SYMBOLS, UNK

SPACE = "▁"
UNKNOWN = "⁇"
# In pieces a space is ▁, so a ▁ of the text has to be something else: a tab, of which normalised text has none.
_WRITTEN = {ord(" "): SPACE, ord(SPACE): "\t"}
_READ = {ord(SPACE): " ", ord("\t"): SPACE}
# What never shares a piece: words, digits, signs; each takes the space before it along.
_PARTS = rf"{SPACE}?[\p{{L}}\p{{M}}]+|{SPACE}?\p{{N}}|{SPACE}?[^\p{{L}}\p{{M}}\p{{N}}{SPACE}]|{SPACE}"
_RAREST_MERGE = 2  # a pair of pieces that occurs once tells nothing of the language
_AT_ONCE = 8192  # texts that are handed over together, which bounds the memory they take
_FORMAT = 1


class Tokeniser:
    """Byte-pair encoding of text in one or several languages.

    After Sennrich, Haddow and Birch (Neural Machine Translation of Rare Words with Subword Units, 2016): characters
    come first, and the most frequent pair of neighbours becomes a piece until there are enough. Equal counts are
    decided by the numbers of the pieces, so the same texts give the same tokeniser everywhere, in any order. A space
    belongs to the piece that follows it (▁), digits and punctuation stand alone, and nothing in a text is ever a
    symbol: ``<s>`` is three signs. Whatever consists of known characters is decoded as it was encoded, once
    normalised: NFC, single spaces, none at the ends.

    >>> tokeniser = Tokeniser.learn(["low lower lowest", "slow slower"], size=17)
    >>> [tokeniser.pieces[token] for token in tokeniser.encode(["slow low"])[0]]
    ['▁', 'slow', '▁low']
    >>> tokeniser.decode(tokeniser.encode([" slow   low", "slöw"]))
    ['slow low', 'sl⁇w']
    """

    def __init__(
        self, pieces: Sequence[str], merges: Sequence[tuple[int, int]], lowercase: bool = False
    ) -> None:
        self.pieces = tuple(pieces)
        self.merges = tuple(merges)
        self.lowercase = lowercase

    @classmethod
    def learn(cls, texts: Iterable[str], size: int, lowercase: bool = False) -> Tokeniser:
        """Learn a vocabulary of `size` pieces, the four symbols among them, from texts of all languages.

        Texts with too few repetitions give a smaller vocabulary, and a warning.
        """
        tokenizers = _package()
        least = len(SYMBOLS) + 1
        if size < least:
            raise SofttargetsError(
                f"must be at least {least} plus the number of different characters, not {size}",
                argument="size",
            )
        learner = tokenizers.Tokenizer(tokenizers.models.BPE())
        learner.pre_tokenizer = _splitter(tokenizers)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size - len(SYMBOLS),
            min_frequency=_RAREST_MERGE,
            show_progress=False,
            special_tokens=[],
        )
        learner.train_from_iterator(
            (_written(normalised, number) for number, normalised in _numbered(texts, lowercase)), trainer
        )
        model = json.loads(learner.to_str())["model"]
        learnt = sorted(model["vocab"], key=model["vocab"].__getitem__)
        if not learnt:
            raise SofttargetsError("have no text to learn from", argument="texts")
        characters = sum(len(piece) == 1 for piece in learnt)
        if characters + len(SYMBOLS) > size:
            raise SofttargetsError(
                f"must be at least {characters + len(SYMBOLS)}, since these texts have {characters} different "
                f"characters, not {size}",
                argument="size",
            )
        pieces = (*SYMBOLS, *learnt)
        if len(pieces) < size:
            warnings.warn(
                f"the vocabulary has {len(pieces):,} pieces instead of {size:,}, because nothing else repeats in the "
                "texts",
                stacklevel=2,
            )
        number = {piece: token for token, piece in enumerate(pieces)}
        merges = [merge.split(" ") if isinstance(merge, str) else merge for merge in model["merges"]]
        return cls(pieces, [(number[left], number[right]) for left, right in merges], lowercase)

    def __len__(self) -> int:
        return len(self.pieces)

    def __repr__(self) -> str:
        return f"<Tokeniser {self.digest}, {len(self):,} pieces{', lower case' if self.lowercase else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tokeniser) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.digest)

    def normalise(self, text: str) -> str:
        """Return the text as decoding will return it: NFC, white space as single spaces, none at the ends.

        >>> Tokeniser((), (), lowercase=True).normalise(" Cafe\u0301 au  LAIT ")
        'café au lait'
        """
        return _normalised(text, self.lowercase)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, without symbols at its ends; an unknown character is ``UNK``."""
        found: list[list[int]] = []
        written = [_written(text, number) for number, text in _numbered(texts, self.lowercase)]
        for start in range(0, len(written), _AT_ONCE):
            block = self._encoder.encode_batch(written[start : start + _AT_ONCE], add_special_tokens=False)
            found.extend(encoding.ids for encoding in block)
        return found

    def unknown_in(self, text: str) -> str:
        """The characters of a text that `encode` makes ``UNK`` of, each once.

        >>> Tokeniser.learn(["low lower lowest"], size=12).unknown_in("slow snow, now")
        'n,'
        """
        written = _written(self.normalise(text), 0)
        return "".join(one for one in dict.fromkeys(written) if one not in self._characters).translate(_READ)

    def decode(self, tokens: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each list of tokens up to its first ``EOS``; ``PAD`` and ``BOS`` say nothing."""
        return [self._text(row) for row in tokens]

    def _text(self, row: Sequence[int]) -> str:
        said = []
        for token in takewhile(lambda token: token != EOS, row):
            if not 0 <= token < len(self.pieces):
                raise SofttargetsError(
                    f"contain {int(token)}, but the vocabulary has {len(self)} tokens, counted from 0",
                    argument="tokens",
                )
            if token not in (PAD, BOS):
                said.append(UNKNOWN if token == UNK else self.pieces[token])
        return "".join(said).translate(_READ).strip(" ")

    @cached_property
    def _characters(self) -> frozenset[str]:
        return frozenset(piece for piece in self.pieces if len(piece) == 1)

    @cached_property
    def digest(self) -> str:
        """Sixteen hexadecimal digits that only tokenisers with the same pieces and merges share."""
        return hashlib.sha256(_canonical(self._content()).encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """Return all of it as text, for `from_json`."""
        return _canonical({**self._content(), "digest": self.digest})

    @classmethod
    def from_json(cls, text: str) -> Tokeniser:
        """Read what `to_json` wrote. Nothing in the text is executed, and a damaged one is refused.

        >>> small = Tokeniser.learn(["a b a b"], size=7)
        >>> Tokeniser.from_json(small.to_json()) == small
        True
        """
        try:
            content = json.loads(text)
        except (ValueError, TypeError, RecursionError) as problem:
            raise DataError(f"this is not a tokeniser's JSON: {problem}") from None
        if not isinstance(content, dict) or content.get("softtargets tokeniser") != _FORMAT:
            raise DataError(f"this is not the JSON of a tokeniser of softtargets (format {_FORMAT})")
        damage = _damage(content)
        if damage:
            raise DataError(f"this tokeniser is damaged: {damage}")
        merges = [(left, right) for left, right in content["merges"]]
        found = cls(content["pieces"], merges, content["lowercase"])
        if found.digest != content.get("digest"):
            raise DataError(
                f"this tokeniser is damaged: its digest is {found.digest}, but the text says {content.get('digest')!r}"
            )
        return found

    def _content(self) -> dict[str, Any]:
        return {
            "softtargets tokeniser": _FORMAT,
            "lowercase": self.lowercase,
            "pieces": self.pieces,
            "merges": self.merges,
        }

    @cached_property
    def _encoder(self) -> Any:
        """The same as Hugging Face knows it. The symbols are entries of its vocabulary, never searched for in text."""
        tokenizers = _package()
        vocabulary = {piece: token for token, piece in enumerate(self.pieces)}
        merges = [(self.pieces[left], self.pieces[right]) for left, right in self.merges]
        model = tokenizers.models.BPE(vocab=vocabulary, merges=merges, unk_token=SYMBOLS[UNK], fuse_unk=False)
        encoder = tokenizers.Tokenizer(model)
        encoder.pre_tokenizer = _splitter(tokenizers)
        return encoder


def _package() -> Any:
    try:
        import tokenizers
    except ImportError:
        raise SofttargetsError(
            "translation needs the package tokenizers; install it with: pip install 'softtargets[translation]'"
        ) from None
    return tokenizers


def _splitter(tokenizers: Any) -> Any:
    return tokenizers.pre_tokenizers.Split(tokenizers.Regex(_PARTS), behavior="isolated")


def _numbered(texts: Iterable[str], lowercase: bool) -> Iterable[tuple[int, str]]:
    if isinstance(texts, str):
        raise SofttargetsError("must be a list of texts, not a single text; write [text]", argument="texts")
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise SofttargetsError(
                f"contain a {type(text).__name__} at {number}, not a text", argument="texts"
            )
        yield number, _normalised(text, lowercase)


def _normalised(text: str, lowercase: bool) -> str:
    return unicodedata.normalize("NFC", " ".join((text.lower() if lowercase else text).split()))


def _written(text: str, number: int) -> str:
    """Text as pieces spell it: with a mark for every space, and one at the beginning."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise SofttargetsError(
            f"contain half a character (a lone surrogate) at {number}; read the file as UTF-8",
            argument="texts",
        ) from None
    return f" {text}".translate(_WRITTEN) if text else ""


def _canonical(content: dict[str, Any]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _damage(content: dict[str, Any]) -> str:
    """What is wrong with the content of a tokeniser, or an empty text."""
    pieces, merges = content.get("pieces"), content.get("merges")
    if type(content.get("lowercase")) is not bool:
        return "it does not say whether it lowercases text"
    if not isinstance(pieces, list) or not all(isinstance(piece, str) and piece for piece in pieces):
        return "its pieces are not texts"
    if tuple(pieces[: len(SYMBOLS)]) != SYMBOLS or len(set(pieces)) != len(pieces):
        return f"its pieces do not begin with {', '.join(SYMBOLS)}, or one occurs twice"
    if any("\ud800" <= character <= "\udfff" for piece in pieces for character in piece):
        return "a piece holds half a character"
    if not isinstance(merges, list) or not all(
        isinstance(merge, list)
        and len(merge) == 2
        and all(type(token) is int and len(SYMBOLS) <= token < len(pieces) for token in merge)
        for merge in merges
    ):
        return "its merges are not pairs of pieces"
    made = {pieces[left] + pieces[right] for left, right in merges}
    if made != {piece for piece in pieces[len(SYMBOLS) :] if len(piece) > 1}:
        return "its merges do not give its pieces"
    return ""
