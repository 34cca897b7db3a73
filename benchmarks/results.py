"""What was measured, as plain data that goes to JSON and comes back the same. No torch here."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, get_args, get_origin, get_type_hints

from softtargets.exceptions import SofttargetsError
from softtargets.storage import write_json

FORMAT = 1


@dataclass(frozen=True)
class Timing:
    """Seconds: the median and the quartiles of many repetitions."""

    median: float
    low: float
    high: float
    repetitions: int


@dataclass(frozen=True)
class CaseEntry:
    """What one contestant did in one case; each bench adds its numbers, None where they were not measured.

    Status: ok; disagrees (measured, but its numbers are wrong); absent (there is no such thing here); failed (it ought
    to have worked). `reason` says why.
    """

    name: str
    status: str = "ok"
    reason: str = ""


E = TypeVar("E", bound=CaseEntry)
R = TypeVar("R", bound="CaseResult[Any]")


@dataclass(frozen=True, kw_only=True)
class CaseResult(Generic[E]):
    """One case: which session measured it, and what every contestant did; each bench adds what they share."""

    SECTION: ClassVar[str] = "cases"  # of the file

    case: Any
    session: int
    entries: tuple[E, ...] = ()

    def entry(self, name: str) -> E | None:
        """What that contestant did, if it was asked for."""
        return next((entry for entry in self.entries if entry.name == name), None)

    def problems(self) -> Iterator[tuple[str, str, str]]:
        """Name, status and reason of all that was not measured or disagrees."""
        return ((entry.name, entry.status, entry.reason) for entry in self.entries if entry.status != "ok")


@dataclass(frozen=True)
class BenchResults:
    """Everything in a file: the sessions that measured (date, versions, hardware, command), and the cases.

    `kinds` are the results that the bench of this name has, one for each section of the file.
    """

    bench: str
    kinds: tuple[type[CaseResult[Any]], ...]
    sessions: tuple[Mapping[str, Any], ...] = ()
    measured: tuple[CaseResult[Any], ...] = ()

    def of(self, kind: type[R]) -> tuple[R, ...]:
        """The results of one section."""
        return tuple(item for item in self.measured if isinstance(item, kind))

    def everything(self) -> list[CaseResult[Any]]:
        """Section after section."""
        return [item for kind in self.kinds for item in self.of(kind)]

    def names(self, kind: type[CaseResult[Any]] = CaseResult) -> list[str]:
        """Every contestant, in the order of appearance."""
        return list(dict.fromkeys(entry.name for item in self.of(kind) for entry in item.entries))

    def keeping(self, found: CaseResult[Any]) -> BenchResults:
        """With one more, in the place of an earlier one of the same case."""
        return replace(self, measured=(*(old for old in self.measured if old.case != found.case), found))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        content = {"kind": f"softtargets bench {self.bench}", "format": FORMAT, "sessions": self.sessions}
        content |= {kind.SECTION: [_written(item) for item in self.of(kind)] for kind in self.kinds}
        found: dict[str, Any] = plain(content)
        return found

    def save(self, path: Path) -> None:
        """Write the file in one step."""
        write_json(path, self.to_dict())

    def load(self, path: Path) -> BenchResults:
        """What a file of the same bench holds, or say what is wrong with it."""
        content = _read(path, f"softtargets bench {self.bench}")
        try:
            measured = [rebuilt(kind, item) for kind in self.kinds for item in content[kind.SECTION]]
            return replace(self, sessions=tuple(content["sessions"]), measured=tuple(measured))
        except (KeyError, TypeError) as error:
            raise SofttargetsError(f"{path} is damaged or was edited by hand: {error}") from None


def _read(path: Path, kind: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SofttargetsError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise SofttargetsError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise SofttargetsError(f"{path} does not hold results of '{kind}'")
    if content.get("format") != FORMAT:
        raise SofttargetsError(
            f"{path} has format {content.get('format')!r}, but this version of softtargets reads {FORMAT}"
        )
    return content


def _written(item: CaseResult[Any]) -> dict[str, Any]:
    """Entries, which are long, come last."""
    content = asdict(item)
    entries = content.pop("entries")
    return content | ({"entries": entries} if entries else {})


def rebuilt(kind: Any, value: Any) -> Any:
    """What JSON made of an object of this type, made into one again.

    >>> rebuilt(tuple[Timing, ...], [{"median": 2.0, "low": 1.0, "high": 3.0, "repetitions": 9}])
    (Timing(median=2.0, low=1.0, high=3.0, repetitions=9),)
    """
    if isinstance(kind, types.UnionType):  # X | None
        return None if value is None else rebuilt(get_args(kind)[0], value)
    if get_origin(kind) is tuple:
        return tuple(rebuilt(get_args(kind)[0], item) for item in value)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{name: rebuilt(hints.get(name), item) for name, item in value.items()})  # type: ignore[operator]
    return value


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
