"""Options of the commands that translate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

Src = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Sentences to translate from, one a line, plain or .gz; line by line those of --tgt.",
        show_default="none: give --src and --tgt, --tsv or --corpus",
    ),
]
Tgt = Annotated[
    Path | None,
    Option(metavar="FILE", help="Their translations, one a line.", show_default="none; comes with --src"),
]
Tsv = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="Instead: source and translation in two tab-separated columns.",
        show_default="none",
    ),
]
HELD_OUT = "5 % of the pairs, at most 2,000, are held out"
ValidSrc = Annotated[
    Path | None, Option(metavar="FILE", help="Sources of a validation set.", show_default=HELD_OUT)
]
ValidTgt = Annotated[
    Path | None, Option(metavar="FILE", help="Their translations.", show_default="with --valid-src")
]
TestSrc = Annotated[Path | None, Option(metavar="FILE", help="Sources of a test set.", show_default=HELD_OUT)]
TestTgt = Annotated[
    Path | None, Option(metavar="FILE", help="Their translations.", show_default="with --test-src")
]
Corpus = Annotated[
    str | None,
    Option(
        help="Instead of your own text a corpus: multi30k, tatoeba, iwslt14, iwslt17 or wmt14.",
        show_default="your own text",
    ),
]
From = Annotated[
    str | None,
    Option("--from", metavar="LANGUAGE", help="With --corpus: en, de, fr, ...", show_default="the corpus's"),
]
To = Annotated[
    str | None,
    Option(
        "--to", metavar="LANGUAGE", help="With --corpus: the other language.", show_default="the corpus's"
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
        help="Of the model: tiny, small, iwslt or base.",
        show_default="by the number of pairs on a GPU; tiny on a CPU",
    ),
]
Vocabulary = Annotated[
    int | None,
    Option(
        min=5,
        help="Pieces of words that both languages share, symbols included.",
        show_default="by the amount of text, 2,000 to 32,000; with --corpus the corpus's own",
    ),
]
Lowercase = Annotated[bool, Option("--lowercase", help="Lowercase all text.")]
Epochs = Annotated[
    int | None,
    Option(
        min=1, help="How often the training text is seen.", show_default="by the amount of text, 3 to 100"
    ),
]
Batch = Annotated[
    int | None,
    Option(
        min=1,
        help="Tokens in a batch on either side, padding included.",
        show_default="4096, of small texts less, at least 512",
    ),
]
Seed = Annotated[int, Option(min=0, help="Decides all that is random.")]
DryRun = Annotated[
    bool, Option("--dry-run", help="Print the recipe and what was chosen; write and train nothing.")
]
RunWord = Annotated[
    str,
    Argument(
        metavar="RUN", help="A run of translate train: its id, the first 4 or more digits, or its directory."
    ),
]
Device = Annotated[
    str, Option(help="Where to compute: cpu, cuda, cuda:1, ...; auto takes a GPU if there is one.")
]
Beam = Annotated[int, Option(min=1, help="Hypotheses that beam search follows; 1 is greedy.")]
LengthPenalty = Annotated[
    float,
    Option(
        help="The power in the length penalty: 0 ranks by probability alone, more favours long translations."
    ),
]
Penalty = Annotated[
    str,
    Option(
        help="What the log-probability of a translation is divided by: length ** the length penalty (length), or "
        "((5 + length) / 6) ** it (google)."
    ),
]
Temperature = Annotated[float, Option(help="Logits are divided by this before the softmax.")]
