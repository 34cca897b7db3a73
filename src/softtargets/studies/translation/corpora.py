"""The corpora of the translation studies of Müller et al. 2019: hard targets and label smoothing on each.

The paper trains on WMT'14, 4.5 million pairs. Where that is at hand, the size `wmt` trains as the paper does, and its
printed numbers are compared. Otherwise two smaller corpora show which way things go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from softtargets.recipes import Recipe, Tatoeba
from softtargets.studies import sizes
from softtargets.studies.grids import SMOOTHING_AXES, each_seed, smoothing
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Settings, Trial
from softtargets.studies.translation.protocols import MULTI30K, TATOEBA, WMT, sized
from softtargets.studies.words import counted

SMALL, FULL, PRINTED = SIZES = ("small", "full", "wmt")
SEEDS = 3
ALPHAS = (0.0, 0.1)
HARD, SOFT = ALPHAS
AXES = ("seed", "data", "data.name", "data.source", "data.target", *SMOOTHING_AXES)


@dataclass(frozen=True)
class Corpus:
    """What a page calls a corpus, and how models are trained on it."""

    key: str
    title: str
    recipe: Recipe


CORPORA = {
    corpus.key: corpus
    for corpus in (
        Corpus("multi30k", "Multi30k", MULTI30K),
        Corpus("tatoeba", "Tatoeba", TATOEBA.replace({"data": Tatoeba(source="en", target="de")})),
        Corpus("wmt14", "WMT'14", WMT),
    )
}
_OF_SIZE = {SMALL: ("multi30k",), FULL: ("multi30k", "tatoeba"), PRINTED: ("wmt14",)}


def trials(settings: Settings) -> list[Trial]:
    """Hard targets and smoothing on each corpus of the size, for each seed."""
    return [
        trial
        for key in _OF_SIZE[settings.size]
        for trial in each_seed(
            settings,
            sized(settings, CORPORA[key].recipe),
            [({"regulariser": smoothing(alpha)}, {"corpus": key, "alpha": alpha}) for alpha in ALPHAS],
        )
    ]


def corpora_in(results: Results) -> list[Corpus]:
    """Those of which there are runs."""
    there = {outcome.trial.labels["corpus"] for outcome in results.outcomes}
    return [corpus for key, corpus in CORPORA.items() if key in there]


def claimed(results: Results) -> list[Corpus]:
    """Those that claims are about: the paper's where it was trained on, otherwise our two."""
    return [CORPORA[key] for key in _OF_SIZE[PRINTED if size_of(results) == PRINTED else FULL]]


def by_protocol(results: Results) -> Results:
    """The runs that claims are about: of no small size, and without a user's changes."""
    return sizes.by_protocol(results, trials)


def shown_alpha(alpha: float) -> str:
    """``hard targets`` or ``label smoothing 0.1``."""
    return f"label smoothing {alpha:g}" if alpha else "hard targets"


def how_trained(results: Results) -> str:
    """What each model was trained and measured on, as far as it has been."""
    return " ".join(_trained(results.where(corpus=one.key), one.title) for one in corpora_in(results))


def _trained(results: Results, title: str) -> str:
    first = results.first()
    examples, recipe = first.run.provenance["examples"], first.trial.recipe
    length = counted(recipe.epochs, "epoch") if recipe.epochs else counted(recipe.steps or 0, "step")
    held_out = f"{examples['validation']:,} pairs held out and {examples['test']:,} for the test"
    return (
        f"{title}, English to German: {examples['train']:,} pairs for {length}, with {held_out} "
        f"({counted(len(results.seeds), 'seed')})."
    )


def deviations(results: Results, *more: str) -> tuple[str, ...]:
    """What differs from the paper, for the end of a page; paragraphs of the study itself come last."""
    known = {SMALL: _SMALL, FULL: _FULL, PRINTED: _PRINTED}[size_of(results)]
    return (*known, *(text for text in more if text))


_SMALL = (
    "This is the small size, for a CPU: a Transformer of 2 + 2 layers and width 64, 3,000 pairs of Multi30k, 1,000 "
    "pieces of words, 8 epochs. It shows how the page is made and decides nothing; such a model barely translates. "
    "With --set size=full models are trained that do.",
)
_FULL = (
    "The paper trains on WMT'14 English to German, 4.5 million pairs of news and parliament. We did not have it. "
    "Multi30k has 29,000 captions of pictures. Tatoeba has about 170,000 short sentences, split so that no English "
    "sentence is in two splits. So directions are judged here and no printed number: these are other models on other "
    "text. With WMT'14 at hand, --set size=wmt trains as the paper does and compares its numbers.",
    "On Multi30k the model has 4 + 4 layers of width 256 with dropout 0.3, and the mean of the last five epochs is "
    "measured. On Tatoeba it has 6 + 6 layers of width 512 with 1,024 inner units and dropout 0.3, and the "
    "checkpoint with the best BLEU on 1,000 validation sentences is measured. The paper's has 6 + 6 layers of width "
    "512 with 2,048 inner units, and is measured at its end.",
)
_PRINTED = (
    "Model, rate, length and smoothing are the paper's (transformer_base of tensor2tensor, 300,000 steps, appendix "
    "A.3). Pieces of words come from our tokeniser, and matrix products are in bf16.",
)


def per_corpus(corpora: Sequence[Corpus], said: Sequence[str]) -> str:
    """One sentence for each corpus; where all are the same, one for all of them.

    >>> per_corpus([CORPORA["multi30k"], CORPORA["tatoeba"]], ["yes", "no"])
    'On Multi30k yes. On Tatoeba no.'
    >>> per_corpus([CORPORA["multi30k"], CORPORA["tatoeba"]], ["yes", "yes"])
    'On Multi30k and on Tatoeba yes.'
    """
    groups: dict[str, list[str]] = {}
    for corpus, text in zip(corpora, said, strict=True):
        groups.setdefault(text, []).append(f"on {corpus.title}")
    told = (f"{' and '.join(places)} {text}." for text, places in groups.items())
    return " ".join(f"{text[0].upper()}{text[1:]}" for text in told)
