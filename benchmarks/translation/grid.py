"""What is to be measured: sizes x packs, LABO's step, decoding; and against whom. No torch: refusals come at once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from benchmarks.bench import BenchGrid
from benchmarks.translation.results import (
    COMPILED,
    EAGER,
    HUGGING_FACE,
    LABO,
    OURS,
    SMOOTHING,
    DecodingCase,
    StepCase,
    TrainingCase,
)
from benchmarks.translation.sizes import SIZES
from benchmarks.words import counts, names, one
from softtargets.exceptions import SofttargetsError

PRECISIONS = ("bf16", "tf32", "fp32")
DEFAULT_SIZES = {"cuda": "replication,iwslt", "cpu": "tiny"}
# Where a pack is asked for something, it is worth looking at many.
DEFAULT_PACKS = {"cuda": {"replication": "1,2,4,8,16"}, "cpu": {}}
OTHER_PACKS = {"cuda": "1,4", "cpu": "1,2"}
DEFAULT_TOKENS = {"cuda": 4096, "cpu": 256}
DEFAULT_PAIRS = {"cuda": None, "cpu": 64}
DEFAULT_PRECISION = {"cuda": "bf16", "cpu": "fp32"}
DEFAULT_SECONDS = {"cuda": 1.5, "cpu": 0.2}
DEFAULT_DECODED = {"cuda": "multi30k", "cpu": "tiny"}
DEFAULT_SENTENCES = {"cuda": 1000, "cpu": 12}
DEFAULT_LENGTH = {"cuda": 32, "cpu": 5}
DEFAULT_BATCHES = {"cuda": "256,1000", "cpu": "12"}
REPEATS = 3


def grid(
    device: str,
    *,
    sizes: Annotated[
        str | None,
        Option(help=f"Of {', '.join(SIZES)}; all or none (replication,iwslt; on a CPU tiny)."),
    ] = None,
    packs: Annotated[
        str | None,
        Option(
            metavar="N,...",
            help="How many runs train together (replication 1,2,4,8,16, others 1,4; on a CPU 1,2).",
        ),
    ] = None,
    tokens: Annotated[
        int | None, Option(min=64, help="Tokens of a batch on either side (4096; on a CPU 256).")
    ] = None,
    precision: Annotated[
        str | None, Option(help="Of everybody: bf16, tf32 or fp32 (bf16; on a CPU fp32).")
    ] = None,
    compiled: Annotated[
        bool,
        Option("--compiled", help="Also the eager loop under torch.compile, which compiles for minutes."),
    ] = False,
    labo: Annotated[
        bool, Option("--labo/--no-labo", help="Also LABO's step beside label smoothing's.")
    ] = True,
    decoded: Annotated[
        str | None,
        Option(help="For which sizes decoding is measured; all or none (multi30k; on a CPU tiny)."),
    ] = None,
    beam: Annotated[int, Option(min=1, help="Hypotheses of each sentence.")] = 5,
    length: Annotated[int | None, Option(min=1, help="Tokens of every translation (32; on a CPU 5).")] = None,
    sentences: Annotated[
        int | None, Option(min=1, help="Sentences that are decoded (1000; on a CPU 12).")
    ] = None,
    rival_batches: Annotated[
        str | None,
        Option(metavar="N,...", help="Sentences that Hugging Face has at a time (256,1000; on a CPU 12)."),
    ] = None,
    synthetic: Annotated[
        bool, Option("--synthetic", help="Made-up sentences with lengths like Multi30k's: needs no data.")
    ] = False,
    pairs: Annotated[
        int | None, Option(min=1, help="Training pairs of an epoch (all 28,189; on a CPU 64).")
    ] = None,
    seconds: Annotated[
        float | None, Option(min=0.0, help="How long each turn lasts (1.5; on a CPU 0.2).")
    ] = None,
    data_dir: Annotated[
        Path | None, Option(help="Where Multi30k is [env SOFTTARGETS_DATA; else a user cache].")
    ] = None,
) -> BenchGrid:
    """Read the words of a command line; `device` is a kind of device, ``cuda`` or ``cpu``.

    >>> [str(case) for case in grid("cuda", sizes="iwslt", packs="1,4", labo=False, decoded="none").cases]
    ['iwslt, 1 run, batches of 4096 tokens bf16, multi30k', 'iwslt, 4 runs, batches of 4096 tokens bf16, multi30k']
    """
    how = (
        tokens or DEFAULT_TOKENS[device],
        one("--precision", precision, PRECISIONS, DEFAULT_PRECISION[device]),
    )
    most = pairs or DEFAULT_PAIRS[device]
    data = f"{'synthetic' if synthetic else 'multi30k'}{f' {most} pairs' if most else ''}"
    chosen = names("--sizes", sizes, SIZES, DEFAULT_SIZES[device], everything=True, nothing=True)
    translating = names("--decoded", decoded, SIZES, DEFAULT_DECODED[device], everything=True, nothing=True)
    # Size by size, so that a run that is cut short has whole panels; small packs first.
    cases: list[Any] = []
    for size in chosen:
        together = packs or DEFAULT_PACKS[device].get(size, OTHER_PACKS[device])
        cases += [TrainingCase(size, *how, data, runs) for runs in counts("--packs", together)]
        cases += [StepCase(size, *how, data)] if labo else []
    search = beam, length or DEFAULT_LENGTH[device], sentences or DEFAULT_SENTENCES[device], how[1], data
    cases += [DecodingCase(size, *search) for size in translating]
    if not cases:
        raise SofttargetsError("nothing to measure: --sizes none makes sense only with --decoded")
    batches = counts("--rival-batches", rival_batches, DEFAULT_BATCHES[device])
    rivals = (EAGER, *((COMPILED,) if compiled else ()))
    return BenchGrid(
        tuple(cases),
        {
            TrainingCase: (OURS, *rivals),
            StepCase: (SMOOTHING, LABO),
            DecodingCase: (OURS, *(f"{HUGGING_FACE} {batch}" for batch in batches)),
        },
        seconds=DEFAULT_SECONDS[device] if seconds is None else seconds,
        repeats=REPEATS,
        data_dir=data_dir,
    )
