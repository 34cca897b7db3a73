"""BLEU and chrF as sacreBLEU computes them, with the signature that makes a score comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from softtargets.exceptions import SofttargetsError

References = Sequence[str] | Sequence[Sequence[str]]


@dataclass(frozen=True)
class Score:
    """A score from 0 to 100, how it was computed, and what it consists of.

    `signature` is sacreBLEU's: report it beside the value. `details` of BLEU are the precisions (`precision_1` to
    `precision_4`, in per cent), the `brevity_penalty` and the lengths in tokens; of chrF the order of its n-grams.
    """

    value: float
    signature: str
    details: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.value:.1f} ({self.signature})"


def bleu(hypotheses: Sequence[str], references: References, lowercase: bool = False) -> Score:
    """Corpus BLEU (Papineni et al. 2002) of detokenised text, as ``sacrebleu`` (Post 2018) gives it by default.

    The tokeniser is 13a; precisions of 0 are smoothed exponentially. `references` are one text for each hypothesis, or
    several lists of such texts, one list for each translator. `lowercase` ignores case (``sacrebleu -lc``), which
    papers on IWSLT often do. An empty hypothesis is allowed and counts as no words. Needs ``softtargets[translation]``.

    >>> found = bleu(["the cat sat on the mat"], ["the cat sat on a mat"])
    >>> round(found.value, 2), found.signature.split("|")[:4]
    (53.73, ['nrefs:1', 'case:mixed', 'eff:no', 'tok:13a'])
    """
    hyps, refs = checked_texts(hypotheses, references)
    metric = sacrebleu_metrics().BLEU(lowercase=lowercase)
    found = metric.corpus_score(hyps, refs)
    details = {f"precision_{n}": float(value) for n, value in enumerate(found.precisions, 1)}
    details |= {
        "brevity_penalty": float(found.bp),
        "hypothesis_length": float(found.sys_len),
        "reference_length": float(found.ref_len),
    }
    return Score(float(found.score), str(metric.get_signature()), details)


def chrf(hypotheses: Sequence[str], references: References, lowercase: bool = False) -> Score:
    """Corpus chrF2 (Popović 2015): F-score of character n-grams up to 6, recall weighted twice, as sacreBLEU gives it.

    Arguments are those of `bleu`.

    >>> round(chrf(["the cat sat on the mat"], ["the cat sat on a mat"]).value, 2)
    72.08
    """
    hyps, refs = checked_texts(hypotheses, references)
    metric = sacrebleu_metrics().CHRF(lowercase=lowercase)
    found = metric.corpus_score(hyps, refs)
    details = {"characters": float(found.char_order), "words": float(found.word_order)}
    return Score(float(found.score), str(metric.get_signature()), details)


def sentence_scores(
    hypotheses: Sequence[str], references: References, metric: str = "chrf", lowercase: bool = False
) -> list[float]:
    """The score of each sentence by itself, 0 to 100: "chrf", or "bleu" with sacreBLEU's effective order.

    Sentence BLEU is noisy: of short sentences prefer chrF.

    >>> [round(x, 1) for x in sentence_scores(["a cat", "dogs"], ["a cat", "cats"])]
    [100.0, 6.2]
    """
    hyps, refs = checked_texts(hypotheses, references)
    kinds = sacrebleu_metrics()
    if metric not in ("chrf", "bleu"):
        raise SofttargetsError(f"must be chrf or bleu, not {metric}", argument="metric")
    scorer = (
        kinds.CHRF(lowercase=lowercase) if metric == "chrf" else kinds.BLEU(lowercase, effective_order=True)
    )
    return [
        float(scorer.sentence_score(one, list(several)).score)
        for one, several in zip(hyps, zip(*refs, strict=True), strict=True)
    ]


def checked_texts(hypotheses: Sequence[str], references: References) -> tuple[list[str], list[list[str]]]:
    """Hypotheses, and one list of references for each translator, all of the same length; or a refusal."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise SofttargetsError("hypotheses and references must be lists of sentences, not a single text")
    hyps = list(hypotheses)
    given: list[Any] = list(references)
    streams: list[list[str]] = [list(one) for one in given] if _several(given) else [given]
    if not hyps:
        raise SofttargetsError("there is nothing to score: the list of hypotheses is empty")
    for place, stream in enumerate(streams):
        which = "" if len(streams) == 1 else f" of list {place}"
        if len(stream) != len(hyps):
            raise SofttargetsError(
                f"there must be one reference{which} for each of the {len(hyps)} hypotheses, not {len(stream)}; "
                "several translators are several lists"
            )
        _refuse_others(stream, f"reference{which}")
    _refuse_others(hyps, "hypothesis")
    return hyps, streams


def _several(given: Sequence[Any]) -> bool:
    return bool(given) and isinstance(given[0], list | tuple)


def _refuse_others(texts: Sequence[Any], what: str) -> None:
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise SofttargetsError(
                f"{what} {place} must be text, not {type(text).__name__}; join its tokens first"
            )


def sacrebleu_metrics() -> Any:
    """The package's metrics, or one line that says what to install."""
    try:
        import sacrebleu.metrics
    except ImportError as error:
        raise SofttargetsError(
            f"scores of translations need sacrebleu, which cannot be imported ({error}); "
            "pip install 'softtargets[translation]'"
        ) from None
    return sacrebleu.metrics
