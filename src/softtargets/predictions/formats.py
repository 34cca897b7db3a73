"""Which kind of file it is, by its name and its first bytes, which must agree."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from softtargets.predictions.archive import ZIP_PROBLEMS, open_npz
from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import FoundFile, InFile, PredictionFileError, find_file, reading
from softtargets.predictions.json_lines import JsonLines
from softtargets.predictions.npy import MAGIC, open_npy
from softtargets.predictions.parquet import ParquetTable
from softtargets.predictions.safetensors_file import HEADER_BYTES, open_safetensors
from softtargets.predictions.table import Table
from softtargets.predictions.text import TextTable
from softtargets.predictions.torch_file import open_torch

READERS: dict[str, Callable[[FoundFile], dict[str, FileArray] | Table]] = {
    ".npz": open_npz,
    ".npy": open_npy,
    ".csv": TextTable,
    ".tsv": TextTable,
    ".jsonl": JsonLines,
    ".parquet": ParquetTable,
    ".safetensors": open_safetensors,
    ".pt": open_torch,
    ".pth": open_torch,
}


class Content(NamedTuple):
    """What a file is by its first bytes: what to call it, which endings are right for it, what to do if none is."""

    what: str
    endings: tuple[str, ...] = ()
    advice: str = "save the arrays with numpy.savez or as .safetensors"


TORCH = Content("a file of torch.save", (".pt", ".pth"))
NPZ = Content("arrays of numpy.savez", (".npz",))
ZIP = Content("a zip archive", (".npz", ".pt", ".pth"))
PICKLE = Content("a pickle, which can execute code")
SAFETENSORS = Content("a safetensors file", (".safetensors",))
CONTENTS = {
    MAGIC: Content("a numpy array", (".npy",)),
    b"PK\x03\x04": ZIP,
    b"PAR1": Content("a parquet file", (".parquet",)),
    b"\x1f\x8b": Content("a gzip file", advice="unpack it first"),
    b"\x89HDF": Content("an HDF5 file"),
    **{bytes([0x80, protocol]): PICKLE for protocol in (2, 3, 4, 5)},
}
TEXT = (".csv", ".tsv", ".jsonl")  # the only files whose first bytes may be anything


class Arrays(InFile, dict[str, FileArray]):
    """The arrays of a file by name, or the columns of a table; nothing is read before it is asked for."""

    def __init__(self, file: FoundFile, arrays: dict[str, FileArray], table: Table | None = None) -> None:
        super().__init__(arrays)
        self.file, self.path, self.table = file, file.path, table
        self.note = table.note if table is not None else ""

    def describe(self) -> str:
        """What there is, for messages: names and shapes of the first few."""
        table = self.table is not None
        found = [f"'{name}'" if table else array.describe() for name, array in self.items()]
        return ", ".join(found[:12]) + (f" and {len(found) - 12} more" if len(found) > 12 else "")


def open_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Open a file of arrays or columns: .npz, .npy, .csv, .tsv, .jsonl, .parquet, .safetensors, .pt or .pth.

    Nothing in the file is executed, and no array is read before it is asked for.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     np.savez(f"{directory}/a.npz", logits=np.zeros((4, 3), np.float32), labels=np.arange(4))
    ...     arrays = open_arrays(f"{directory}/a.npz")
    ...     print(arrays.describe())
    ...     print([block.tolist() for block in arrays["labels"].blocks(rows=3)])
    'logits' (4, 3) float32, 'labels' (4,) int64
    [[0, 1, 2], [3]]
    """
    file = find_file(Path(path))
    ending = file.path.suffix.lower()
    _refuse_other_content(file, ending)
    found = READERS[ending](file)
    if isinstance(found, Table):
        return Arrays(file, {name: found.array(name) for name in found.names}, found)
    if not found:
        raise file.refused("has no arrays in it", "save the predictions again")
    return Arrays(file, found)


def _refuse_other_content(file: FoundFile, ending: str) -> None:
    """Refuse a file whose name says something else than its first bytes, or nothing."""
    found = _content(file.path)
    if ending not in READERS:
        known = f"save it as one of {', '.join(READERS)}"
        advice = f"rename it to end in {found.endings[0]}" if found and found.endings else known
        ends = f"ends in '{ending}'" if ending else "has no ending"
        raise file.refused(f"{ends}, which does not show what kind of file it is", advice)
    if found is None:
        if ending in TEXT:
            return
        kind = {".npy": "numpy", ".pt": "torch.save", ".pth": "torch.save"}.get(ending, ending[1:])
        raise file.refused(
            f"is damaged or not a {kind} file: it begins with other bytes", "save or download it again"
        )
    if ending in found.endings:
        return
    if found.endings:
        problem, advice = (
            f"has {found.what}, not what its name says",
            f"rename it to end in {found.endings[0]}",
        )
    elif found is PICKLE and ending in TORCH.endings:
        problem = "is refused: it is a pickle, as written by torch.save before 1.6, and reading it would execute code"
        advice = "save it again with torch.save of a newer torch, or as .safetensors"
    else:
        problem, advice = f"is refused: it holds {found.what}", found.advice
    raise file.refused(problem, advice)


def _content(path: Path) -> Content | None:
    with reading(path), open(path, "rb") as file:
        start = file.read(9)
    if start[8:] == b"{" and int.from_bytes(start[:8], "little") <= HEADER_BYTES:
        return SAFETENSORS
    found = next((content for bytes_, content in CONTENTS.items() if start.startswith(bytes_)), None)
    return _archive(path) if found is ZIP else found


def _archive(path: Path) -> Content:
    try:
        with reading(path), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except PredictionFileError:
        raise
    except ZIP_PROBLEMS:
        return ZIP
    if any(name == "data.pkl" or name.endswith("/data.pkl") for name in names):
        return TORCH
    return NPZ if any(name.endswith(".npy") for name in names) else ZIP
