"""``softtargets translate``: train a model that translates, translate with it, and score translations."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from softtargets.cli import options, translate_train
from softtargets.cli import page_commands as pages
from softtargets.cli import translate_options as given
from softtargets.cli.command_line import naming_options
from softtargets.cli.output import print_json, print_table
from softtargets.cli.text_lines import STANDARD, refuse_output, text_lines, warnings_told, writing
from softtargets.exceptions import RunError, SofttargetsError

if TYPE_CHECKING:
    from softtargets.runs import Run
    from softtargets.translation import Hypothesis, Penalty, Translator

app = typer.Typer(help="Train translation models, translate, score translations.", no_args_is_help=True)
app.command()(translate_train.train)
# Lines that are translated before they are written; within them sentences of similar length go together.
BLOCK = 1 << 14


@app.command()
def decode(
    context: typer.Context,
    run: given.RunWord,
    source: Annotated[
        str,
        Option(
            "--in",
            metavar="FILE",
            help="Sentences to translate, one per line, plain or .gz; - is standard input.",
        ),
    ] = STANDARD,
    out: Annotated[
        str, Option(metavar="FILE", help="The file for the translations, one per line; - is standard output.")
    ] = STANDARD,
    beam: given.Beam = 5,
    length_penalty: given.LengthPenalty = 1.0,
    penalty: given.Penalty = "length",
    temperature: given.Temperature = 1.0,
    nbest: Annotated[
        int,
        Option(
            min=1,
            help="How many translations to write of each sentence, at most as many as the beam. If there are more "
            "than 1, each line has rank, score and text, separated by tabs.",
        ),
    ] = 1,
    scores: Annotated[
        bool, Option("--scores", help="Write before each translation its ranking score and a tab.")
    ] = False,
    sample: Annotated[
        bool,
        Option(
            "--sample",
            help="Sample translations from the model instead of searching for the most probable one.",
        ),
    ] = False,
    top_k: Annotated[
        int | None,
        Option(
            min=1,
            help="With --sample: draw only from this many of the most probable tokens.",
            show_default="all tokens",
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, help="With --sample: the seed of the random draws.")] = 0,
    device: given.Device = "auto",
    overwrite: pages.Overwrite = False,
    runs_dir: options.RunsDir = None,
) -> None:
    """Translate lines of text with a trained model.

    Each line is translated into one line, in the same order; an empty line stays empty. Progress goes to standard
    error. Only the run is needed: its tokeniser is stored with its weights.
    """
    with naming_options(context):
        if sample and nbest > 1:
            raise SofttargetsError(
                "must be 1 with --sample, which draws one translation of each sentence", argument="nbest"
            )
        if top_k is not None and not sample:
            raise SofttargetsError("needs --sample: beam search always looks at all tokens", argument="top_k")
        form = checked_penalty(penalty)
        refuse_output(out, overwrite)
        translator = loaded(run, device, runs_dir)
        lines = text_lines(source)

        from softtargets.inspection.translate import Unknown

        unknown = Unknown(translator.tokeniser)

        def translate(block: Sequence[str], first: int, told: Callable[[int, int], None]) -> list[list[Any]]:
            from softtargets.translation import decode as search
            from softtargets.translation import sample_translations

            encoded = translator.tokeniser.encode(block)
            unknown.add(block, encoded)
            if not sample:
                return search(
                    translator.model,
                    encoded,
                    beam,
                    length_penalty,
                    temperature,
                    nbest=nbest,
                    penalty=form,
                    progress=told,
                )
            drawn = sample_translations(
                translator.model, encoded, temperature, top_k, seed, first=first, progress=told
            )
            return [[one] for one in drawn]

        with writing(out) as write, pages.progress() as told, warnings_told():
            for first in range(0, len(lines), BLOCK):
                ahead = partial(_further, told, first, len(lines))
                found = translate(lines[first : first + BLOCK], first, ahead)
                write("".join(written(one, translator, nbest, scores) for one in found))
            if said := unknown.told("line"):
                warnings.warn(said, stacklevel=1)


def _further(told: pages.Told, before: int, every: int, done: int, _: int) -> None:
    told("translating", before + done, every)


def written(found: Sequence[Hypothesis], translator: Translator, nbest: int, scores: bool) -> str:
    """The lines for one sentence."""
    texts = translator.tokeniser.decode([one.tokens for one in found])
    rows = zip(found, texts, strict=True)
    if nbest > 1:
        return "".join(f"{rank}\t{one.score:.6f}\t{text}\n" for rank, (one, text) in enumerate(rows, 1))
    return "".join(f"{one.score:.6f}\t{text}\n" if scores else f"{text}\n" for one, text in rows)


@app.command()
def score(
    context: typer.Context,
    first: Annotated[
        str,
        Argument(
            metavar="HYP|RUN", help="A file of translations, one per line (- is standard input); or a run."
        ),
    ],
    reference: Annotated[
        Path | None,
        Argument(metavar="REF", help="The reference translations of HYP.", show_default="needed with HYP"),
    ] = None,
    src: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="With a run: the sentences to translate.", show_default="needed with a run"
        ),
    ] = None,
    ref: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="With a run: the reference translations of --src.",
            show_default="needed with a run",
        ),
    ] = None,
    lowercase: Annotated[
        bool, Option("--lowercase", help="Ignore case, as papers on IWSLT often do.")
    ] = False,
    beam: given.Beam = 5,
    length_penalty: given.LengthPenalty = 1.0,
    penalty: given.Penalty = "length",
    temperatures: Annotated[
        str,
        Option(
            metavar="LIST",
            help="With a run: temperatures that logits are divided by, for BLEU, NLL and ECE over temperature. Each "
            "needs a search of its own.",
        ),
    ] = "0.8,1,1.2",
    bins: pages.Bins = 15,
    out: Annotated[
        Path | None,
        Option(
            help="With a run: the directory that the page goes to.",
            show_default="./reports/translate-RUN-SRC",
        ),
    ] = None,
    device: given.Device = "auto",
    runs_dir: options.RunsDir = None,
    as_json: options.Json = False,
) -> None:
    """Score translations, or a translation model.

    Compares HYP with REF line by line: BLEU and chrF with 95 % intervals and the signature of sacreBLEU. With a
    run, --src and --ref, translates --src first and writes a page that says how good the translations are and
    whether the model's probabilities can be trusted.
    """
    started = time.monotonic()
    with naming_options(context):
        if src is None and ref is None:
            return score_files(first, reference, lowercase=lowercase, as_json=as_json)
        if reference is not None:
            raise SofttargetsError(
                f"{reference} is one file too many; give HYP and REF, or a run with --src and --ref"
            )
        for name, path, other in (("src", src, "ref"), ("ref", ref, "src")):
            if path is None:
                raise SofttargetsError(f"is missing; it goes with --{other}", argument=name)

        from softtargets.data import read_parallel
        from softtargets.inspection.shared import check_bins
        from softtargets.inspection.translate import finding, page

        check_bins(bins)
        wanted = temperatures_of(temperatures)
        assert src is not None
        assert ref is not None
        pairs = read_parallel(src, ref)
        if not len(pairs):
            raise SofttargetsError(f"{src} and {ref} have no sentences")
        found_run = run_of(first, runs_dir)
        translator = loaded(first, device, runs_dir)
        directory = out or pages.own_directory(f"translate-{found_run.id}", source=src)
        with pages.making(directory) as told, warnings_told():
            found = finding.assess(
                translator,
                pairs.sources,
                pairs.targets,
                temperatures=wanted,
                beam=beam,
                length_penalty=length_penalty,
                penalty=checked_penalty(penalty),
                bins=bins,
                lowercase=lowercase,
                told=told,
            )
    made = pages.signed(
        page.translate_page(found, found_run.id), context, started, source=src, references=ref
    )
    if as_json:
        return pages.as_json(
            made, directory, {"run": found_run.id, **found.numbers()}, warnings=made.warnings
        )
    opening = f"run {found_run.id}, {found.text.sentences:,} sentences, beam {beam}"
    pages.as_text(made, directory, opening, [("metric", "value (95 % interval)"), *page.summary_rows(found)])


def score_files(hypotheses: str, reference: Path | None, *, lowercase: bool, as_json: bool) -> None:
    """BLEU and chrF of two files."""
    from softtargets.data import read_lines
    from softtargets.inspection.translate.finding import score_text
    from softtargets.inspection.translate.page import score_rows

    if reference is None:
        raise SofttargetsError("the references are missing; give HYP and REF, or a run with --src and --ref")
    texts, wanted = text_lines(hypotheses), read_lines(reference)
    if len(texts) != len(wanted):
        called = "standard input" if hypotheses == STANDARD else hypotheses
        raise SofttargetsError(
            f"{called} has {len(texts):,} lines but {reference} has {len(wanted):,}; there must be one translation for "
            "each reference"
        )
    found = score_text(texts, wanted, lowercase)
    if as_json:
        return print_json(found.numbers())
    print_table(("score", "value (95 % interval)", "signature"), score_rows(found))


def temperatures_of(text: str) -> list[float]:
    """Temperatures as people list them.

    >>> temperatures_of("0.8, 1,1.2")
    [0.8, 1.0, 1.2]
    """
    try:
        found = [float(word) for word in text.split(",") if word.strip()]
    except ValueError:
        found = []
    if not found or not all(0 < one < float("inf") for one in found):
        raise SofttargetsError(
            f"must be numbers above 0, separated by commas, such as 0.8,1,1.2, not {text!r}",
            argument="temperatures",
        )
    return list(dict.fromkeys(found))


def checked_penalty(word: str) -> Penalty:
    """One of the two forms of the length penalty."""
    forms: dict[str, Penalty] = {"length": "length", "google": "google"}
    if word not in forms:
        raise SofttargetsError(f"must be length or google, not {word}", argument="penalty")
    return forms[word]


def run_of(word: str, runs_dir: Path | None) -> Run:
    """The run that a word means: its id, the beginning of that, or its directory."""
    run, _ = options.find_run(word, runs_dir)
    if run is None:
        raise RunError(
            f"there is no run '{word}' in {options.run_store(runs_dir).root}; give a run's id, the first 4 or more "
            "digits of an id, or a run's directory; softtargets runs list shows all"
        )
    return run


def loaded(word: str, device: str, runs_dir: Path | None) -> Translator:
    """The model of a run, ready to translate."""
    run = run_of(word, runs_dir)

    from softtargets.training import load_translator

    return load_translator(run, device)
