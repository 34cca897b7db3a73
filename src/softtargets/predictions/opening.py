"""Which kind of file it is, by its name and its first bytes, which must agree."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from softtargets.predictions.archive import ZIP_PROBLEMS, open_npz
from softtargets.predictions.array import FileArray
from softtargets.predictions.failing import PredictionFileError, file_size, reading
from softtargets.predictions.npy import MAGIC, open_npy
from softtargets.predictions.parquet import ParquetTable
from softtargets.predictions.safetensors_file import open_safetensors
from softtargets.predictions.table import Table
from softtargets.predictions.text import TextTable
from softtargets.predictions.torch_file import open_torch

READERS: dict[str, Callable[[Path, int], dict[str, FileArray]]] = {
    ".npy": open_npy,
    ".npz": open_npz,
    ".safetensors": open_safetensors,
    ".pt": open_torch,
    ".pth": open_torch,
}
TABLES: dict[str, Callable[[Path, int], Table]] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".parquet": ParquetTable,
}
KNOWN = (".npz", ".npy", ".csv", ".tsv", ".parquet", ".safetensors", ".pt", ".pth")
# What a file is by its first bytes, and which endings are right for it.
CONTENTS: tuple[tuple[bytes, str, tuple[str, ...]], ...] = (
    (MAGIC, "a numpy array", (".npy",)),
    (b"PK\x03\x04", "a zip archive", (".npz", ".pt", ".pth")),
    (b"PAR1", "a parquet file", (".parquet",)),
    (b"\x1f\x8b", "a gzip file", ()),
    (b"\x89HDF", "an HDF5 file", ()),
    (b"\x80\x02", "a pickle, which is a program", ()),
    (b"\x80\x03", "a pickle, which is a program", ()),
    (b"\x80\x04", "a pickle, which is a program", ()),
    (b"\x80\x05", "a pickle, which is a program", ()),
)


class Arrays(Mapping[str, FileArray]):
    """The arrays of a file by name, or the columns of a table; nothing is read before it is asked for."""

    def __init__(self, path: Path, arrays: Mapping[str, FileArray], table: Table | None = None) -> None:
        self.path, self.table = path, table
        self._arrays = dict(arrays)

    def __getitem__(self, name: str) -> FileArray:
        if name not in self._arrays and self.table is not None and name in self.table.names:
            self._arrays[name] = self.table.array(name)
        return self._arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.table.names if self.table is not None else self._arrays)

    def __len__(self) -> int:
        return len(self.table.names if self.table is not None else self._arrays)

    def describe(self) -> str:
        """What there is, for messages: names and shapes of the first few."""
        if self.table is not None:
            found = [f"'{name}'" for name in self.table.names]
        else:
            found = [array.describe() for array in self._arrays.values()]
        return ", ".join(found[:12]) + (f" and {len(found) - 12} more" if len(found) > 12 else "")


def open_arrays(path: str | os.PathLike[str]) -> Arrays:
    """Open a file of arrays or columns: .npz, .npy, .csv, .tsv, .parquet, .safetensors, .pt or .pth.

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
    place = Path(path)
    size = file_size(place)
    ending = place.suffix.lower()
    _check_content(place, ending)
    if ending in TABLES:
        table = TABLES[ending](place, size)
        return Arrays(place, {}, table)
    arrays = READERS[ending](place, size)
    if not arrays:
        raise PredictionFileError(place, "has no arrays in it", "save the predictions again")
    return Arrays(place, arrays)


def _check_content(path: Path, ending: str) -> None:
    with reading(path), open(path, "rb") as file:
        start = file.read(9)
    found = next((one for one in CONTENTS if start.startswith(one[0])), None)
    what, right = (found[1], found[2]) if found else ("", ())
    if start.startswith(b"PK\x03\x04") and ending in (".npz", ".pt", ".pth"):
        inside = _archive(path)
        right = {"npz": (".npz",), "torch": (".pt", ".pth")}.get(inside, right)
        what = {"npz": "arrays of numpy.savez", "torch": "a file of torch.save"}.get(inside, what)
    elif not found and len(start) == 9 and start[8:9] == b"{" and start[3:8] == b"\0" * 5:
        what, right = "a safetensors file", (".safetensors",)
    if ending not in KNOWN:
        advice = f"rename it to end in {right[0]}" if right else f"save it as one of {', '.join(KNOWN)}"
        ends = f"ends in '{ending}'" if ending else "has no ending"
        raise PredictionFileError(path, f"{ends}, which says nothing about what is in it", advice)
    if what and ending not in right:
        if start.startswith(b"\x80") and ending in (".pt", ".pth"):
            raise PredictionFileError(
                path,
                "is refused: it is a pickle, as torch.save wrote before version 1.6, which is a program to be executed",
                "save it again with torch.save of a newer torch, or as .safetensors",
            )
        if right:
            raise PredictionFileError(
                path, f"holds {what}, not what its name says", f"rename it to end in {right[0]}"
            )
        advice = (
            "unpack it first" if "gzip" in what else "save the arrays with numpy.savez or as .safetensors"
        )
        raise PredictionFileError(path, f"is refused: it holds {what}", advice)
    if not what and ending in (".npy", ".npz", ".pt", ".pth", ".parquet", ".safetensors"):
        kind = {".npy": "numpy", ".npz": "npz", ".pt": "torch.save", ".pth": "torch.save"}.get(
            ending, ending[1:]
        )
        raise PredictionFileError(
            path, f"is damaged or no {kind} file: its first bytes are others", "save or download it again"
        )


def _archive(path: Path) -> str:
    try:
        with reading(path), zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except PredictionFileError:
        raise
    except ZIP_PROBLEMS:
        return ""
    if any(name == "data.pkl" or name.endswith("/data.pkl") for name in names):
        return "torch"
    return "npz" if any(name.endswith(".npy") for name in names) else ""
