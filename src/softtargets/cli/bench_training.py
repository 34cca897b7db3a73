"""``softtargets bench training``: our engine against a plain eager loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
from softtargets.cli.options import DataDir, Json

if TYPE_CHECKING:
    from softtargets.bench.training import Results


def training(
    device: Device = "auto",
    nets: Annotated[
        str | None,
        typer.Option(help="Of fcn, cnn, alexnet, resnet56, resnet18; all or none (on a CPU fcn,cnn)."),
    ] = None,
    packs: Annotated[
        str | None,
        typer.Option(
            metavar="N,...",
            help="How many runs train together (stacked 1,16,64,128, streams 1,4,16; on a CPU 1,4).",
        ),
    ] = None,
    arrangements: Annotated[
        str | None,
        typer.Option(
            help="Of stacked (computed as one), streams (side by side) (both for fcn, cnn, alexnet)."
        ),
    ] = None,
    batch: Annotated[int | None, typer.Option(min=1, help="Images a step (128; on a CPU 32).")] = None,
    batches: Annotated[int | None, typer.Option(min=1, help="Steps an epoch (100; on a CPU 4).")] = None,
    precision: Annotated[
        str | None, typer.Option(help="Of ours: bf16, tf32 or fp32 (bf16; on a CPU fp32).")
    ] = None,
    eager_precision: Annotated[
        str | None, typer.Option(metavar="bf16", help="Also an eager loop in bf16, beside that in fp32/TF32.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.0, help="How long each turn lasts (2; on a CPU 0.2).")
    ] = None,
    accuracy: Annotated[
        bool, typer.Option("--accuracy", help="Also whether both reach the same accuracy on real data.")
    ] = False,
    data: Annotated[
        str | None, typer.Option(help="Of --accuracy: digits, mnist or cifar10 (digits).")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Of --accuracy (digits 30, mnist 10, cifar10 20).")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=2, help="Of --accuracy, on each side (5).")] = None,
    data_dir: DataDir = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the files go [./benchmarks/training/DEVICE].")
    ] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    source: From = None,
    as_json: Json = False,
) -> None:
    """Images per second of whole trainings, one run and many at a time, against a plain eager PyTorch loop."""
    check_switches(source, resume, overwrite)
    if source is not None:
        from softtargets.bench.training import Results

        _show(Results.load(source), out or source.parent, source, as_json)
        return
    words: dict[str, Any] = {
        "nets": nets,
        "packs": packs,
        "arrangements": arrangements,
        "batch": batch,
        "batches": batches,
        "precision": precision,
        "eager_precision": eager_precision,
        "seconds": seconds,
        "data": data,
        "epochs": epochs,
        "seeds": seeds,
    }
    options: dict[str, Any] = {"--device": None if device == "auto" else device}
    options |= {f"--{name.replace('_', '-')}": value for name, value in words.items()}
    options |= {"--data-dir": data_dir, "--out": out}
    command = command_line("training", options, ["--accuracy"] if accuracy else [])

    from softtargets.bench.training import plan

    plan("cpu", **words, accuracy=accuracy)  # a misspelt word is refused before torch is asked for anything

    from softtargets.bench.sessions import RESULTS
    from softtargets.bench.training.running import default_directory, run
    from softtargets.bench.training.tables import summary
    from softtargets.training import choose_device

    chosen = choose_device(device)
    directory = out or default_directory(chosen)
    wanted = plan(chosen.type, **words, accuracy=accuracy)
    how: dict[str, Any] = {"data_dir": data_dir, "resume": resume, "overwrite": overwrite}
    with progress(summary, "starting") as watcher:
        results = until_interrupted(
            lambda: run(wanted, directory, chosen, command, watcher=watcher, **how),
            directory / RESULTS,
            command,
        )
    _show(results, directory, directory / RESULTS, as_json)


def _show(results: Results, directory: Path, path: Path, as_json: bool) -> None:
    """Write what is made from the results, print the tables and where everything is."""
    from softtargets.bench.training.tables import accuracy_overview, notes, overview
    from softtargets.bench.training.writing import write_files

    sections = []
    if results.cases:
        heading = "images per second of all runs together, augmentation and evaluation included"
        sections.append((heading, overview(results)))
    if results.accuracy:
        heading = "test accuracy of the same training, mean and standard deviation over seeds"
        sections.append((heading, accuracy_overview(results)))
    print_results(results, [path, *write_files(results, directory)], sections, notes(results), as_json)
