"""``softtargets bench losses``: how fast the losses are, against what people use today."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softtargets.bench.losses.grid import SECONDS
from softtargets.cli.bench_options import (
    Device,
    From,
    Overwrite,
    Resume,
    check_switches,
    command_line,
    print_results,
    until_interrupted,
)
from softtargets.cli.bench_progress import progress
from softtargets.cli.options import Json

if TYPE_CHECKING:
    from softtargets.bench.losses import Results


def losses(
    device: Device = "auto",
    sizes: Annotated[
        str | None,
        typer.Option(
            metavar="NxK,...",
            help="Rows x classes (on a GPU 8192x32768,4096x131072,65536x1000,262144x100,128x100,128x10,2x10).",
        ),
    ] = None,
    dtypes: Annotated[
        str | None, typer.Option(help="Of bf16, fp16, fp32 (the first and last; on a CPU the last).")
    ] = None,
    names: Annotated[
        str | None,
        typer.Option(
            "--losses",
            help="Which, or all (label_smoothing,labo,confidence_penalty); also cross_entropy, focal, anti_focal, "
            "distillation, prior, matrix.",
        ),
    ] = None,
    rivals: Annotated[str | None, typer.Option(help="Of eager, compile, liger; or none (all three).")] = None,
    seconds: Annotated[float, typer.Option(min=0.0, help="How long to repeat each measurement.")] = SECONDS,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Also ours overwriting the logits with their gradient.")
    ] = False,
    linear: Annotated[
        bool, typer.Option("--linear", help="Also projection + loss in one, against materialised logits.")
    ] = False,
    linear_size: Annotated[
        str | None,
        typer.Option(metavar="NxDxK", help="Rows x hidden x classes of --linear (8192x4096x131072)."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where the files go [./benchmarks/losses/DEVICE].")] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    source: From = None,
    as_json: Json = False,
) -> None:
    """Time, memory and error of each loss, forward + backward, against torch eager, torch.compile and Liger."""
    check_switches(source, resume, overwrite)
    if source is not None:
        from softtargets.bench.losses import Results

        _show(Results.load(source), out or source.parent, source, as_json)
        return
    options: dict[str, Any] = {
        "--device": None if device == "auto" else device,
        "--sizes": sizes,
        "--dtypes": dtypes,
        "--losses": names,
        "--rivals": rivals,
        "--seconds": None if seconds == SECONDS else seconds,
        "--linear-size": linear_size,
        "--out": out,
    }
    flags = [word for word, on in (("--in-place", in_place), ("--linear", linear)) if on]
    command = command_line("losses", options, flags)

    from softtargets.bench.losses import plan

    words: dict[str, Any] = {
        "losses": names,
        "sizes": sizes,
        "dtypes": dtypes,
        "rivals": rivals,
        "linear_size": linear_size,
    }
    plan("cpu", **words, linear=linear)  # a misspelt word is refused before torch is asked for anything

    from softtargets.bench.losses.running import default_directory, run
    from softtargets.bench.losses.tables import summary
    from softtargets.bench.sessions import RESULTS
    from softtargets.training import choose_device

    chosen = choose_device(device)
    directory = out or default_directory(chosen)
    wanted = plan(chosen.type, **words, in_place=in_place, seconds=seconds, linear=linear)
    how = {"resume": resume, "overwrite": overwrite}
    with progress(summary, "measuring how fast memory is") as watcher:
        results = until_interrupted(
            lambda: run(wanted, directory, chosen, command, watcher=watcher, **how),
            directory / RESULTS,
            command,
        )
    _show(results, directory, directory / RESULTS, as_json)


def _show(results: Results, directory: Path, path: Path, as_json: bool) -> None:
    """Write what is made from the results, print the tables and where everything is."""
    from softtargets.bench.losses.tables import linear_overview, notes, overview
    from softtargets.bench.losses.writing import write_files

    sections = []
    if results.cases:
        heading = (
            "multiples of the floor, or time per call where launches dominate; memory in units of the logits"
        )
        sections.append((heading, overview(results)))
    if results.linear:
        heading = "projection and loss, as multiples of the three matrix products"
        sections.append((heading, linear_overview(results)))
    print_results(results, [path, *write_files(results, directory)], sections, notes(results), as_json)
