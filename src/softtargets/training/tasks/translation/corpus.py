"""From a recipe's data to sentence pairs: its splits and directions, and what is left of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from softtargets.data import Pairs, data_directory, digest_of, join_pairs, load_pairs
from softtargets.exceptions import DataError, RecipeError
from softtargets.randomness import key_words, permutation
from softtargets.recipes import ParallelText, TranslationDataset


@dataclass(frozen=True)
class Corpus:
    """The pairs of each split, and which of a held-out one's belong to each direction, where that is known."""

    splits: Mapping[str, Pairs]
    parts: Mapping[str, Mapping[str, slice]]


def read_corpus(data: TranslationDataset, data_dir: Path | None = None) -> Corpus:
    """Read all splits of a corpus; what is held out of the training set, or limits it, is drawn once and for ever."""
    where = data_dir
    if isinstance(data, ParallelText):
        where = data_directory(data_dir) / data.corpus
        _check_digest(data, where)
    train, _ = _joined(data, "train", where)
    order = permutation(key_words(0, "sentence pairs"), len(train)).tolist()
    kept = len(train) - data.validation
    if kept < 1:
        raise RecipeError(
            f"{data.validation} leaves nothing to train on: {data.name} has {len(train)} pairs",
            "data.validation",
        )
    if (data.limit or 0) > kept:
        raise RecipeError(f"{data.limit} is more than the {kept} training pairs", "data.limit")
    splits: dict[str, Pairs] = {}
    directions: dict[str, Mapping[str, slice]] = {}
    chosen = sorted(order[: data.limit or kept])
    splits["train"] = train.part(chosen) if len(chosen) < len(train) else train
    if data.validation:
        splits["validation"] = train.part(sorted(order[kept:]))
    else:
        splits["validation"], directions["validation"] = _joined(data, "validation", where)
    splits["test"], directions["test"] = _joined(data, "test", where)
    for name, pairs in splits.items():
        if not len(pairs):
            raise DataError(f"{data.name} has no sentence pairs in its {name} split")
    return Corpus(splits, directions)


def read_own(folder: Path, source: str, target: str) -> dict[str, Pairs]:
    """All splits of aligned text of one's own that are there."""
    splits = {"train": load_pairs("parallel-text", source, target, "train", folder)}
    for name in ("validation", "test"):
        try:
            splits[name] = load_pairs("parallel-text", source, target, name, folder)
        except DataError:
            if any(folder.glob(f"{name}.*")):
                raise
    return splits


def _check_digest(data: ParallelText, folder: Path) -> None:
    if not data.digest:
        return
    found = digest_of(read_own(folder, data.source, data.target))
    if found != data.digest:
        raise DataError(
            f"the text in {folder} is not that of the recipe: its digest is {found}, not {data.digest}; put the "
            f"right text back, or set data.digest: {found} in the recipe, which makes it a different recipe"
        )


def _joined(data: TranslationDataset, part: str, where: Path | None) -> tuple[Pairs, dict[str, slice]]:
    """The pairs of all directions, one after another."""
    loaded = {
        f"{source}-{target}": load_pairs(data.name, source, target, part, where)
        for source, target in data.languages
    }
    ends = list(accumulate(map(len, loaded.values()), initial=0))
    parts = {name: slice(*bounds) for name, bounds in zip(loaded, pairwise(ends), strict=True)}
    return join_pairs(*loaded.values()), parts
