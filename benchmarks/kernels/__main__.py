"""``python -m benchmarks.kernels STUDY``: which kernels a step of a study's training consists of.

Trains the recipe of a run of the study through the engine's own classes, alone and in packs, on random images or on its
corpus, and prints how fast each pack is. Then profiles some steps of the smallest pack and lists their kernels.

    python -m benchmarks.kernels labo-table-1 --size full --only pair=de-en --only method=ls --runs 1,4
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from benchmarks.kernels.measure import Profile, profiled, short, timed
from benchmarks.kernels.packs import arranged, check_numbers, matching, material, packs, undisturbed
from benchmarks.machine import describe
from benchmarks.tables import csv_of
from benchmarks.text import duration
from benchmarks.words import counts
from softtargets.cli.output import print_table
from softtargets.exceptions import SofttargetsError
from softtargets.storage import make_directory, write_atomically, write_json
from softtargets.studies import STUDIES, find_study
from softtargets.training import choose_device
from softtargets.training.precision import float32_products

# Steps that are timed and profiled, unless told: on a GPU and on a CPU.
_STEPS, _STEPS_CPU = 100, 5
_PROFILED, _PROFILED_CPU = 20, 2


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write; a user's mistake is one line and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser = _parser()
    asked = parser.parse_args(words)
    try:
        _measure(asked, shlex.join(["python", "-m", "benchmarks.kernels", *words]))
    except SofttargetsError as error:
        parser.exit(2, f"error: {error}\n")


def _measure(asked: argparse.Namespace, command: str) -> None:
    sizes = counts("--runs", asked.runs)
    study = find_study(STUDIES, asked.study)
    trials = matching(study, asked.size, dict(map(_label, asked.only)))
    trial, device = trials[0], choose_device(asked.device)
    on_gpu = device.type == "cuda"
    steps = asked.steps or (_STEPS if on_gpu else _STEPS_CPU)
    few = asked.profiled or (_PROFILED if on_gpu else _PROFILED_CPU)
    if not on_gpu:
        typer.echo("no GPU is used: times are those of the CPU, and of torch's operators instead of kernels")
    labels = ", ".join(f"{key} {value}" for key, value in trial.labels.items() if value != "")
    typer.echo(f"{study.name}: {labels}" + (f" (the first of {len(trials)} runs)" if trials[1:] else ""))

    recipe = undisturbed(trial.recipe)
    task, teacher = material(recipe, max(steps, few) + 2, device, asked.data_dir)
    found, unit = arranged(recipe, task, device), recipe.data.unit
    how = "stacked" if found.stacked else "streams"
    if sizes[-1] > found.runs:
        typer.echo(f"the engine would train at most {found.runs} of these runs together on this device")
    speeds: list[dict[str, Any]] = []
    with float32_products(recipe.precision):
        for runs, pack, set_up in packs(recipe, task, teacher, device, sizes):
            speed = timed(pack, steps, device)
            check_numbers(pack)
            speeds.append({"runs": runs, **asdict(speed), "set_up_seconds": set_up})
            begun = "" if set_up is None else f", set up in {set_up:.1f} s"
            typer.echo(
                f"{_counted(runs, 'run')} ({how}): {speed.units_per_second:,.0f} {unit}/s, "
                f"{duration(speed.step_seconds)} a step{begun}"
            )
        profile = profiled(pack, few, device)  # the last of them, which is the smallest
    _show(profile, runs, few, "kernels" if on_gpu else "operators", asked.top)
    if asked.out:
        content = {
            "kind": "softtargets kernels",
            **describe(device, command),
            "study": study.name,
            "labels": dict(trial.labels),
            "recipe": trial.recipe.to_dict(),
            "arrangement": how,
            "unit": unit,
            "steps": steps,
            "packs": speeds,
            "profile": {
                "runs": runs,
                "steps": few,
                "wall_microseconds": profile.wall,
                "kernels": _lines(profile),
            },
        }
        _write(asked.out, content, _lines(profile))


def _label(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not (key and equals):
        raise SofttargetsError(f"--only: '{word}' is not KEY=VALUE; write for example method=ls")
    return key, value


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _show(profile: Profile, runs: int, steps: int, what: str, top: int) -> None:
    head = f"\n{_counted(runs, 'run')}, {_counted(steps, 'step')} profiled"
    spent = f"{profile.busy:,.0f} µs of {what} in {profile.wall:,.0f} µs a step"
    typer.echo(f"{head}: {spent}, {profile.launches:,.1f} {what} a step\n")
    rows = [
        [f"{kernel.microseconds:,.1f}", f"{kernel.launches:,.1f}", f"{kernel.each:,.1f}", short(kernel.name)]
        for kernel in profile.kernels[:top]
    ]
    print_table(["µs a step", "a step", "µs each", what], rows)
    if len(profile.kernels) > top:
        rest = sum(kernel.microseconds for kernel in profile.kernels[top:])
        typer.echo(f"and {len(profile.kernels) - top} more with {rest:,.1f} µs a step (--top)")


def _lines(profile: Profile) -> list[dict[str, Any]]:
    return [
        {
            "kernel": kernel.name,
            "microseconds_per_step": round(kernel.microseconds, 3),
            "launches_per_step": round(kernel.launches, 3),
            "microseconds_each": round(kernel.each, 3),
        }
        for kernel in profile.kernels
    ]


def _write(directory: Path, content: dict[str, Any], lines: list[dict[str, Any]]) -> None:
    make_directory(directory)
    write_atomically(directory / "kernels.csv", csv_of(lines, "kernel").encode())
    write_json(directory / "kernels.json", content)
    typer.echo(f"\n{directory / 'kernels.csv'}\n{directory / 'kernels.json'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kernels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("study", help="as in `softtargets study list`")
    add("--size", help="of the study, if it has several (default: its first)")
    add(
        "--only", action="append", default=[], metavar="KEY=VALUE", help="a label of the run; may be repeated"
    )
    add("--runs", default="1", metavar="N,N", help="sizes of packs (default: 1)")
    add("--steps", type=_count, help=f"timed steps of each pack (default: {_STEPS}; on a CPU {_STEPS_CPU})")
    add("--profiled", type=_count, help=f"profiled steps (default: {_PROFILED}; on a CPU {_PROFILED_CPU})")
    add("--top", type=_count, default=20, help="kernels in the table (default: 20)")
    add("--device", default="auto", help="auto (a GPU if there is one), cpu, cuda, ... (default: auto)")
    add("--data-dir", type=Path, help="where corpora are [env SOFTTARGETS_DATA]")
    add("--out", type=Path, metavar="DIR", help="where kernels.csv and kernels.json are written")
    return parser


def _count(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"'{word}' is not a whole number from 1")
    return int(word)


if __name__ == "__main__":
    main()
