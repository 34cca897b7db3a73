"""How pages about LABO's translations tell what was trained, and which runs count for claims."""

from __future__ import annotations

from collections.abc import Mapping

from softtargets.claims import Published, published, sources
from softtargets.report import Line
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from softtargets.studies.labo_translation.protocol import READINGS
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.translation.protocols import TAU, WARM_UP

NAMES: Mapping[str, str] = {
    "hard": "hard targets",
    "ls": "LS",
    "unigram": "unigram smoothing",
    "cp": "CP",
    "fl": "FL",
    "afl": "AFL",
    "labo-literal": "LABO, equation 16 as printed",
    "labo-fixed": "LABO, alpha fixed at 0.1",
    "labo-reversed": "LABO, alpha reversed",
}
# For sentences.
SAID = {
    **NAMES,
    "labo-literal": "LABO as printed",
    "labo-fixed": "LABO with alpha fixed at 0.1",
    "labo-reversed": "LABO with alpha reversed",
}
# For ticks, where long names would run into their neighbours.
SHORT = {**NAMES, "labo-literal": "LABO", "labo-fixed": "fix", "labo-reversed": "rev"}
LOOKS: Mapping[str, tuple[str, Line]] = {
    "hard": (GREY, "dashed"),
    "ls": (ORANGE, "dashed"),
    "unigram": (PURPLE, "solid"),
    "cp": (PURPLE, "dotted"),
    "fl": (SKY, "dotted"),
    "afl": (SKY, "dashed"),
    "labo-literal": (BLUE, "solid"),
    "labo-fixed": (GREEN, "solid"),
    "labo-reversed": (RED, "solid"),
}
LANGUAGES = {"de": "German", "en": "English", "fr": "French"}
CORPORA = {"small": "Tatoeba", "full": "Tatoeba", "iwslt": "IWSLT'14", "wmt": "WMT'14"}
# The corpus whose printed numbers stand beside ours.
_PRINTED = {"full": "iwslt14", "iwslt": "iwslt14", "wmt": "wmt14"}


def pair_name(pair: str) -> str:
    """A direction in words.

    >>> pair_name("de-en")
    'German to English'
    """
    source, target = pair.split("-")
    return f"{LANGUAGES[source]} to {LANGUAGES[target]}"


def paper_name(method: str) -> str:
    """What the paper's tables call a method: all readings are its LABO.

    >>> paper_name("labo-fixed"), paper_name("ls")
    ('labo', 'ls')
    """
    return method.partition("-")[0]


def claimed_size(results: Results) -> str:
    """The size that the claims of a page are about: the small one decides nothing."""
    return "full" if size_of(results) == "small" else size_of(results)


def printed_key(size: str, pair: str) -> str:
    """Where BLEU of this direction is printed; of Tatoeba that of IWSLT'14."""
    return f"lu-2023/bleu/{_PRINTED[size]}-{pair}"


def printed_bleu(size: str, pair: str, method: str) -> float | None:
    """What table 1 prints; nothing at the small size, nor for readings that the paper does not have.

    >>> printed_bleu("full", "de-en", "labo-literal"), printed_bleu("full", "de-en", "labo-fixed")
    (35.2, None)
    """
    if size not in _PRINTED or method in READINGS[1:] or method == "unigram":
        return None
    return published(f"{printed_key(size, pair)}/{paper_name(method)}").value


def printed_for(size: str, pairs: tuple[str, ...], *names: str) -> tuple[Published, ...]:
    """What the paper printed of some methods, in these directions."""
    return tuple(one for pair in pairs for one in sources(printed_key(size, pair), *names))


def which_labo(size: str, warm_up: int | None = None) -> str:
    """A sentence with the settings of LABO."""
    steps = WARM_UP[size] if warm_up is None else warm_up
    return (
        f"LABO has tau = {TAU:g}, one of the two that the paper tried (1.15 and 1.25), rho = 0.5, and {steps:,} steps "
        "of warm-up with uniform smoothing of 0.1. Equation 16 as printed moves the share 1 − 0.5 H(p)/log K of the "
        "mass, most where the model is confident. The reversed reading moves 0.5 H(p)/log K, and the third "
        "one a fixed 0.1."
    )


def what_differs(size: str, warm_up: int | None = None, text: str = "") -> tuple[str, ...]:
    """How the training differs from the paper's, as paragraphs; `text` is what is said of another corpus."""
    if size == "small":
        return (
            "This is the small size, which shows that everything works and decides nothing: two layers of width 64 on "
            "6,000 sentence pairs of Tatoeba for 4 epochs, in fp32. Such a model translates badly whatever it is "
            "trained with. BLEU is that of 200 sentences. --set size=full trains the real models, on a GPU.",
            which_labo(size, warm_up),
        )
    return (text or _TEXT[size], _TRAINING[size], _OWN, which_labo(size, warm_up), _CHECKPOINT)


def how_trained(size: str) -> tuple[str, ...]:
    """The training of German to English, for pages beyond the papers."""
    if size == "small":
        return (
            "This is the small size: two layers of width 64 on 6,000 sentence pairs of Tatoeba for 4 epochs. It shows "
            "how the page is made and decides nothing. BLEU is that of 200 sentences, NLL and ECE are of all.",
        )
    return (
        "Models translate German to English, trained on 154,195 pairs of Tatoeba: 6 + 6 layers of width 512, dropout "
        "0.3, 20 epochs, the training of Lu et al. (2023) for IWSLT. The checkpoint is that with the best BLEU on "
        "1,000 validation sentences. Translations are by beam search with beam 5. NLL and ECE are of the next token "
        "after a correct prefix, on the test set.",
    )


_CHECKPOINT = (
    "The weights are those of the checkpoint with the best BLEU on 1,000 validation sentences, decoded greedily. The "
    "paper takes “the best performance on the validation set” and does not say by what. Validation loss would not do: "
    "LABO's targets lower the likelihood, so that the best loss may be that of the warm-up, which is label smoothing. "
    "Translations of the test set are by beam search with beam 5 and length penalty 1, scored by sacreBLEU "
    "(13a). The paper names fairseq and BLEU-4, not the tokenisation."
)
_OWN = (
    "Label smoothing has the paper's 0.1. Of the other methods the paper prints no hyper-parameters. Ours are a "
    "confidence penalty of 0.1, focal loss with gamma 1 and its weight outside the gradient, and anti-focal loss with "
    "gamma 1 and alpha 0.5."
)
_TEXT: Mapping[str, str] = {
    "full": (
        "The paper's text is not at hand, so Tatoeba stands in for IWSLT. It has everyday sentences, ten tokens long "
        "on average, which is shorter than sentences of talks; 154,195 pairs are trained on from German to English. "
        "They are split by their English side, so that no test sentence was trained on. BLEU of the two corpora is not "
        "comparable: only directions are judged, not numbers. The text is cased, in 8,000 pieces."
    ),
    "iwslt": (
        "The text is the paper's: IWSLT'14 as fairseq prepares it, lowercased, in 10,000 pieces. The paper does not "
        "print how many pieces it has."
    ),
    "wmt": (
        "The text is the paper's, WMT'14, in 32,000 pieces, which the paper does not print. newstest2013 chooses the "
        "checkpoint and newstest2014 tests it. The paper holds out 39,414 pairs instead (appendix D)."
    ),
}
_TRAINING: Mapping[str, str] = {
    "full": (
        "The model and its training are the paper's: 6 + 6 layers, dropout 0.3, Adam (0.9, 0.98) at 5e-4 with 1,000 "
        "steps of warm-up, weight decay 1e-4, batches of 4,096 tokens. Width 512, inner 1,024 and 4 heads are those of "
        "fairseq's recipe for IWSLT; that one matrix holds all embeddings is ours. There are 20 epochs, not 150, and "
        "matrix products are in bf16. LABO's warm-up is 4 epochs, as many as we estimate for the paper's 5,000 steps "
        "on IWSLT, but a fifth of this training and about a thirtieth of theirs."
    ),
    "iwslt": (
        "As the paper says: 6 + 6 layers, dropout 0.3, Adam (0.9, 0.98) at 5e-4 with 1,000 steps of warm-up, weight "
        "decay 1e-4, batches of 4,096 tokens, 150 epochs. Ours: width 512 with inner 1,024 and 4 heads, as in "
        "fairseq's recipe for IWSLT, and matrix products in bf16."
    ),
    "wmt": (
        "As the paper says: 6 + 6 layers, dropout 0.3, Adam (0.9, 0.98) at 7e-4 with 1,000 steps of warm-up, weight "
        "decay 1e-4, batches of 4,096 tokens, 50 epochs. Ours: width 512 with inner 2,048 and 8 heads, and matrix "
        "products in bf16."
    ),
}
