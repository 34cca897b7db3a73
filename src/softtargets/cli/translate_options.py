"""Options of the commands that translate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

Src = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Source sentences, one per line, plain or .gz; line n belongs to line n of --tgt.",
        show_default="none: give --src and --tgt, --tsv or --corpus",
    ),
]
Tgt = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="The translations of --src, one per line.",
        show_default="none; needed with --src",
    ),
]
Tsv = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Instead of --src and --tgt: one file with source and translation in two tab-separated columns.",
        show_default="none",
    ),
]
HELD_OUT = "5 % of the pairs, at most 2,000, are held out"
ValidSrc = Annotated[
    Path | None, Option(metavar="FILE", help="Source sentences of a validation set.", show_default=HELD_OUT)
]
ValidTgt = Annotated[
    Path | None, Option(metavar="FILE", help="Their translations.", show_default="needed with --valid-src")
]
TestSrc = Annotated[
    Path | None, Option(metavar="FILE", help="Source sentences of a test set.", show_default=HELD_OUT)
]
TestTgt = Annotated[
    Path | None, Option(metavar="FILE", help="Their translations.", show_default="needed with --test-src")
]
Corpus = Annotated[
    str | None,
    Option(
        help="Instead of your own text: the corpus multi30k, tatoeba, iwslt14, iwslt17 or wmt14.",
        show_default="your own text",
    ),
]
From = Annotated[
    str | None,
    Option(
        "--from",
        metavar="LANGUAGE",
        help="With --corpus: the language to translate from (en, de, fr, ...).",
        show_default="the corpus's",
    ),
]
To = Annotated[
    str | None,
    Option(
        "--to",
        metavar="LANGUAGE",
        help="With --corpus: the language to translate into.",
        show_default="the corpus's",
    ),
]
Loss = Annotated[
    str,
    Option(
        help="Where the training target comes from: label_smoothing, labo, cross_entropy, confidence_penalty, ... "
        "(softtargets recipe parts regulariser). Its options are set by --set regulariser.NAME=VALUE."
    ),
]
Alpha = Annotated[
    float | None,
    Option(
        help="The loss's alpha: for label_smoothing the mass that is moved away from the label.",
        show_default="the loss's own",
    ),
]
Size = Annotated[
    str | None,
    Option(
        help="Size of the model: tiny, small, iwslt or base.",
        show_default="by the number of pairs on a GPU; tiny on a CPU",
    ),
]
Vocabulary = Annotated[
    int | None,
    Option(
        min=5,
        help="Number of word pieces in the vocabulary that both languages share, special symbols included.",
        show_default="by the amount of text, 2,000 to 32,000; with --corpus the corpus's own",
    ),
]
Lowercase = Annotated[bool, Option("--lowercase", help="Lowercase all text.")]
Epochs = Annotated[
    int | None,
    Option(
        min=1,
        help="How often the model sees the training text.",
        show_default="by the amount of text, 3 to 100",
    ),
]
Batch = Annotated[
    int | None,
    Option(
        min=1,
        help="Tokens in a batch on either side, padding included.",
        show_default="4096; less for small texts, at least 512",
    ),
]
Seed = Annotated[int, Option(min=0, help="Seed of everything that is random.")]
DryRun = Annotated[
    bool,
    Option("--dry-run", help="Print the recipe and the choices that were made; write and train nothing."),
]
RunWord = Annotated[
    str,
    Argument(
        metavar="RUN",
        help="A run of translate train: its id, the first 4 or more digits of the id, or its directory.",
    ),
]
Device = Annotated[
    str, Option(help="Where to compute: cpu, cuda, cuda:1, ...; auto uses a GPU if there is one.")
]
Beam = Annotated[int, Option(min=1, help="Hypotheses that beam search follows; 1 is greedy.")]
LengthPenalty = Annotated[
    float,
    Option(
        help="The exponent of the length penalty: 0 ranks by probability alone, larger values favour longer "
        "translations."
    ),
]
Penalty = Annotated[
    str,
    Option(
        help="What divides the log-probability of a translation: length ** P (length) or ((5 + length) / 6) ** P "
        "(google), where P is --length-penalty."
    ),
]
Temperature = Annotated[float, Option(help="Logits are divided by this before the softmax.")]
