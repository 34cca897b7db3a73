"""What studies measured on a run, kept in its directory: a light run has no logits to measure again.

One file for each study, ``measures/STUDY.json``, so that studies measured at the same time never meet in one. They are
no part of the sealed manifest: what was measured may change with the study's code, and the run does not.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softtargets.exceptions import StorageError
from softtargets.runs.provenance import code_version, now
from softtargets.runs.run import Run
from softtargets.storage import make_directory, read_json, write_json

MEASURES = "measures"
_STUDY = re.compile(r"[a-z0-9][a-z0-9_-]{0,99}")
_MOST = 1 << 26  # bytes: details are a few hundred points


@dataclass(frozen=True)
class Measured:
    """What one study measured on one run.

    measures: numbers by name; one that is not finite is a text in files ("nan").
    details:  what its figures need besides.
    code:     the commit that measured it, or the version.
    at:       when, in UTC.
    """

    measures: Mapping[str, float]
    details: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    at: str = ""

    @classmethod
    def today(cls, measures: Mapping[str, Any], details: Mapping[str, Any]) -> Measured:
        """By the code that runs now."""
        code = code_version()
        commit = f"{code['commit']}{'+changes' * bool(code['uncommitted_changes'])}" if code["commit"] else ""
        return cls(dict(measures), dict(details), commit or str(code["softtargets"]), now())

    def to_dict(self) -> dict[str, Any]:
        """For JSON.

        >>> Measured({"error": 0.25, "slope": math.nan}, code="c", at="t").to_dict()
        {'measures': {'error': 0.25, 'slope': 'nan'}, 'details': {}, 'code': 'c', 'measured': 't'}
        """
        told = {key: _plain(value) for key, value in self.measures.items()}
        return {"measures": told, "details": dict(self.details), "code": self.code, "measured": self.at}

    @classmethod
    def from_dict(cls, tree: Any) -> Measured:
        """What `to_dict` gave, or what a file of somebody else has; raises a ValueError where it is something else."""
        try:
            measures = {str(key): _number(value) for key, value in tree["measures"].items()}
            details, code, at = tree.get("details", {}), tree.get("code", ""), tree.get("measured", "")
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"not the measures of a study: {error!r}") from None
        if not (isinstance(details, dict) and isinstance(code, str) and isinstance(at, str)):
            raise ValueError("not the measures of a study")
        return cls(measures, details, code, at)

    def says_the_same_as(self, other: Measured) -> bool:
        """Whether numbers and details are the same, whoever measured them and when."""
        mine, theirs = (
            json.dumps({key: one.to_dict()[key] for key in ("measures", "details")}, sort_keys=True)
            for one in (self, other)
        )
        return mine == theirs


def read_measures(run: Run) -> dict[str, Measured]:
    """What is kept, by study; a file that cannot be read counts as none, since it can be made again."""
    found = {}
    with suppress(OSError):
        for path in sorted((run.directory / MEASURES).iterdir()):
            if path.suffix == ".json" and is_study_name(path.stem):
                with suppress(OSError, ValueError):
                    found[path.stem] = Measured.from_dict(read_json(path, _MOST))
    return found


def measured_by(run: Run, study: str) -> Measured | None:
    """What a study measured on a run, where that is kept."""
    with suppress(OSError, ValueError):
        return Measured.from_dict(read_json(_file(run.directory, study), _MOST))
    return None


def keep_measures(run: Run, study: str, found: Measured) -> bool:
    """Keep what a study measured, unless the same is kept already; whether it is kept now.

    Where nothing may be written, and where the numbers are no JSON, nothing is kept: the page is made all the same.
    """
    try:
        write_measures(run, study, found)
    except (StorageError, TypeError, ValueError):
        return False
    return True


def write_measures(run: Run, study: str, found: Measured) -> None:
    """The same where it must not fail unnoticed."""
    before = measured_by(run, study)
    if before is None or not before.says_the_same_as(found):
        make_directory(run.directory / MEASURES)
        write_json(_file(run.directory, study), found.to_dict())


def forget_measures(directory: Path) -> None:
    """Remove all that was measured, of a run that is replaced by one with other numbers."""
    for path in (directory / MEASURES).glob("*.json"):
        path.unlink(missing_ok=True)


def is_study_name(name: str) -> bool:
    """Whether a study may have this name: it is part of a path, and comes from files of others."""
    return _STUDY.fullmatch(name) is not None


def _file(directory: Path, study: str) -> Path:
    if not is_study_name(study):
        raise ValueError(f"'{study}' is not the name of a study")
    return directory / MEASURES / f"{study}.json"


def _plain(value: Any) -> Any:
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _number(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if value in ("nan", "inf", "-inf"):
        return float(value)
    raise TypeError(f"{value!r} is not a number")
