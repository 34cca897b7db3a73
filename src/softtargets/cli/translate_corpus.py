"""The text that ``translate train`` is given: files of the user, or a corpus of the catalogue."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from softtargets.exceptions import RecipeError, SofttargetsError, nearest

if TYPE_CHECKING:
    from softtargets.data import Pairs
    from softtargets.recipes import TranslationDataset

_FIELDS = {"source": "--from", "target": "--to", "alpha": "--alpha"}
_FIELDS |= {"vocabulary": "--vocabulary", "data.vocabulary": "--vocabulary"}


@dataclass(frozen=True)
class Text:
    """What is trained on: the data of the recipe, the training pairs, own text to be kept, and where it came from."""

    data: TranslationDataset
    train: Pairs
    own: dict[str, Pairs] | None
    told: str


def as_option(error: RecipeError) -> SofttargetsError:
    """The same, about the option that the field comes from."""
    option = _FIELDS.get(error.field, error.field)
    return SofttargetsError(f"{option}: {error.message}" if option else error.message)


def corpus_text(context: typer.Context) -> Text:
    """A corpus of the catalogue."""
    from softtargets.data import join_pairs, load_pairs
    from softtargets.recipes import TranslationDataset, build, kinds

    asked = context.params
    name = asked["corpus"]
    files = ("src", "tgt", "tsv", "valid_src", "valid_tgt", "test_src", "test_tgt")
    for one in files:
        if asked[one] is not None:
            raise SofttargetsError(
                f"and --corpus cannot be used together: {name} has its own text", argument=one
            )
    known = [kind for kind in kinds(TranslationDataset) if kind != "parallel-text"]
    if name not in known:
        raise SofttargetsError(
            f"must be one of {', '.join(known)}, not {name}{nearest(name, known)}; for your own text, give --src and "
            "--tgt",
            argument="corpus",
        )
    wanted = {"source": asked["from_language"], "target": asked["to_language"]}
    wanted |= {"vocabulary": asked["vocabulary"], "lowercase": asked["lowercase"] or None}
    try:
        data = build(TranslationDataset, {"name": name, **{k: v for k, v in wanted.items() if v is not None}})
    except RecipeError as error:
        raise as_option(error) from None
    direction = " and ".join(f"{one} to {other}" for one, other in data.languages)
    train = join_pairs(*(load_pairs(name, *pair, "train", asked["data_dir"]) for pair in data.languages))
    return Text(data, train, None, f"Text: {name}, {direction}, {len(train):,} training pairs.")


def own_text(context: typer.Context) -> Text:
    """Files of the user, with held-out pairs where no validation or test set is given."""
    from softtargets.data import hold_out, read_tsv, text_name
    from softtargets.recipes import ParallelText
    from softtargets.training import vocabulary_for

    asked = context.params
    for one in ("from_language", "to_language"):
        if asked[one] is not None:
            raise SofttargetsError(
                "is only for --corpus; with your own files, --src is the language to translate from and --tgt the "
                "one to translate into",
                argument=one,
            )
    if asked["tsv"] is not None:
        if asked["src"] is not None or asked["tgt"] is not None:
            raise SofttargetsError("has both languages; leave out --src and --tgt", argument="tsv")
        pairs, files = read_tsv(asked["tsv"]), f"{asked['tsv']}"
    else:
        found = _side_by_side(asked, "src", "tgt")
        if found is None:
            raise SofttargetsError(
                "there is no text to train on: give --src and --tgt, or --tsv, or --corpus (multi30k, tatoeba, "
                "iwslt14, iwslt17, wmt14)"
            )
        pairs, files = found, f"{asked['src']} and {asked['tgt']}"
    if not len(pairs):
        raise SofttargetsError(f"{files} has no sentence pairs")
    if pairs.sources == pairs.targets:
        raise SofttargetsError(
            f"{files}: source and target are the same text; they must be in different languages"
        )
    splits = {"validation": _side_by_side(asked, "valid_src", "valid_tgt")}
    splits["test"] = _side_by_side(asked, "test_src", "test_tgt")
    missing = tuple(name for name, split in splits.items() if split is None)
    whole = hold_out(pairs, missing) | {name: split for name, split in splits.items() if split is not None}
    folder, digest = text_name(whole)
    pieces = asked["vocabulary"] or vocabulary_for(whole["train"])
    data = ParallelText(
        corpus=folder,
        source="source",
        target="target",
        digest=digest,
        vocabulary=pieces,
        lowercase=asked["lowercase"],
    )
    counts = " and ".join(
        f"{len(whole[name]):,} {'is' if len(whole[name]) == 1 else 'are'} "
        f"{'held out' if name in missing else 'given'} for {name}"
        for name in ("validation", "test")
    )
    return Text(data, whole["train"], whole, f"Text: {len(pairs):,} sentence pairs of {files}; {counts}.")


def _side_by_side(asked: dict[str, Any], source: str, target: str) -> Pairs | None:
    """The pairs of two files that come together, or None where neither is given."""
    from softtargets.data import read_parallel

    one, other = asked[source], asked[target]
    if one is None and other is None:
        return None
    for name, path, beside in ((source, one, target), (target, other, source)):
        if path is None:
            raise SofttargetsError(f"is missing; it goes with --{beside.replace('_', '-')}", argument=name)
    if Path(one) == Path(other):
        raise SofttargetsError(
            f"and --{target.replace('_', '-')} are the same file, {one}; give one file for each language",
            argument=source,
        )
    pairs = read_parallel(one, other)
    if not len(pairs):
        raise SofttargetsError(f"{one} and {other} have no sentences")
    return pairs
