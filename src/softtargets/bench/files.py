"""The file of results: plain JSON that says what it is. No torch here."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from softtargets.exceptions import SofttargetsError
from softtargets.storage import write_json

if TYPE_CHECKING:
    from typing_extensions import Self

Results = TypeVar("Results")


@dataclass(frozen=True)
class Stored:
    """Results that are kept in a file, with the sessions that measured them: date, versions, hardware and command.

    Those of each bench say of which kind and format they are.
    """

    KIND: ClassVar[str]
    FORMAT: ClassVar[int]

    sessions: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {"kind": self.KIND, "format": self.FORMAT, **plain(asdict(self))}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        raise NotImplementedError(f"abstract: {cls.__name__} knows what it is made of")

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file, or say what is wrong with it."""
        return read_results(path, cls.KIND, cls.FORMAT, cls.from_dict)


def read_results(
    path: Path, kind: str, number: int, build: Callable[[Mapping[str, Any]], Results]
) -> Results:
    """Read a file of this kind and number of format, or say what is wrong with it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SofttargetsError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise SofttargetsError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise SofttargetsError(f"{path} does not hold results of '{kind}'")
    if content.get("format") != number:
        raise SofttargetsError(
            f"{path} has format {content.get('format')!r}, but this version of softtargets reads {number}"
        )
    try:
        return build(content)
    except (KeyError, TypeError) as error:
        raise SofttargetsError(f"{path} is damaged or was edited by hand: {error}") from None


def plain(value: Any) -> Any:
    """Ready for JSON, which has no NaN or infinity; null is what every reader understands.

    >>> plain({"a": (1.5, float("nan"))})
    {'a': [1.5, None]}
    """
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
