"""WMT 2014 English-German: training text as Stanford and tensor2tensor name it, and newstest sets by year."""

from __future__ import annotations

from pathlib import Path

from softtargets.data.text import Pairs, find_parallel, plain_or_gz, read_parallel
from softtargets.exceptions import DataError

FOLDERS = ("wmt14", "wmt")
STEMS = {"train": "train", "validation": "newstest2013", "test": "newstest2014"}
PARTS = (*STEMS, *(f"newstest{year}" for year in range(2012, 2022)))


def read_wmt(root: Path, source: str, target: str, part: str) -> Pairs:
    """Read ``train``, ``validation`` (newstest2013), ``test`` (newstest2014) or any newstest below `root`.

    The files are ``train.en``, ``newstest2014.de`` and so on in ``wmt14`` or ``wmt``, each plain or ``.gz``; since
    2019 a newstest has a file for each direction: ``newstest2021.en-de.src.en`` and ``newstest2021.en-de.ref.A.de``.
    No part needs the files of another.
    """
    stem = STEMS.get(part, part)
    direction = f"{stem}.{source}-{target}"
    for folder in (root / name for name in FOLDERS):
        files = find_parallel(folder, stem, source, target) or (
            plain_or_gz(folder / f"{direction}.src.{source}.gz"),
            plain_or_gz(folder / f"{direction}.ref.A.{target}.gz"),
        )
        if all(path.exists() for path in files):
            return read_parallel(*files)
    raise DataError(
        f"WMT'14 is missing '{stem}.{source}' and '{stem}.{target}' in {root / FOLDERS[0]} or {root / FOLDERS[1]}"
    )
