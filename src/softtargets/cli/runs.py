"""``softtargets runs``: list, show, verify, export, pack, merge, measure, delete."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from softtargets.cli.options import Json, RunId, RunsDir, assignments, run_store
from softtargets.cli.output import print_fields, print_json, print_section, print_table
from softtargets.exceptions import RunError, SofttargetsError

if TYPE_CHECKING:
    from softtargets.runs import ListedRun, Merged

app = typer.Typer(help="List, show, check, exchange and delete training runs.", no_args_is_help=True)

Where = Annotated[
    list[str] | None,
    Option(
        "--where",
        metavar="KEY=VALUE",
        help="Only runs whose recipe has this value, e.g. regulariser.alpha=0.1 or model=mlp. May be repeated.",
    ),
]


@app.command("list")
def list_(where: Where = None, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """List runs, newest first, with what they were trained on."""
    from softtargets.runs import check_filter

    wanted = assignments(where, "--where")
    store = run_store(runs_dir)
    entries = store.entries(wanted)
    if not entries and wanted:
        check_filter(store.entries(), wanted)
    if as_json:
        return print_json([asdict(entry) for entry in entries])
    if not entries:
        return typer.echo(f"no runs in {store.root}")
    rows = [
        (
            entry.id,
            _state(entry),
            _moment(entry.finished),
            *(_part(entry.recipe, slot) for slot in ("data", "model", "regulariser")),
            str(entry.recipe.get("seed", "")),
            _number(entry.summary.get("test_accuracy"), ".4f"),
            _number(entry.seconds, ".1f"),
        )
        for entry in entries
    ]
    headings = ("run", "status", "finished (UTC)", "data", "model", "regulariser", "seed")
    print_table((*headings, "test accuracy", "seconds"), rows)


@app.command()
def show(run: RunId, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """Show a run's recipe, its last metrics, and how it was made."""
    from softtargets.runs import ENGINES, read_measures

    store = run_store(runs_dir)
    found = store.get(run)
    entry = _entry(store.entries(), found.id)
    shown: dict[str, Any] = {"id": found.id, "directory": str(found.directory), "status": entry.status}
    if entry.light:
        shown["light"] = f"it was merged from a file, without {', '.join(sorted(found.left_out))}"
    if measured := read_measures(found):
        shown["measured by"] = ", ".join(measured)
    shown["recipe"] = found.recipe.to_dict()
    if entry.status in ("finished", "failed"):
        shown |= {"summary": found.summary, "provenance": found.provenance}
    if as_json:
        return print_json(shown)
    sections = {part: shown.pop(part) for part in ("recipe", "summary", "provenance") if shown.get(part)}
    if number := sections.get("provenance", {}).get("engine"):
        sections["provenance"]["engine"] = (
            f"{number}. {ENGINES.get(number, 'This version does not know it.')}"
        )
    print_fields(shown)
    for part, section in sections.items():
        typer.echo("")
        print_section(part, section)


@app.command()
def verify(
    run: Annotated[
        str | None,
        Argument(metavar="RUN", help="The run's id, or its first digits.", show_default="all runs"),
    ] = None,
    runs_dir: RunsDir = None,
) -> None:
    """Check that the files of finished runs are undamaged.

    Every file is compared with the checksum in the run's manifest.
    """
    from softtargets.report import plural
    from softtargets.runs import Run

    store = run_store(runs_dir)
    unwritten = ("running", "interrupted", "empty")
    written = (Run(store.root / entry.id) for entry in store.entries() if entry.status not in unwritten)
    chosen = list(written) if run is None else [store.get(run)]
    problems = []
    for item in chosen:
        try:
            problems += item.problems()
        except RunError as error:
            problems.append(str(error))
    for problem in problems:
        typer.echo(problem)
    if problems:
        raise RunError(f"{plural(len(problems), 'problem')} in {plural(len(chosen), 'run')}")
    light = sum(item.is_light for item in chosen)
    without = f" ({light} of them light, without weights)" if light else ""
    typer.echo(f"{plural(len(chosen), 'run')} checked{without}: all files are undamaged")


@app.command()
def export(
    out: Annotated[
        Path | None,
        Argument(
            metavar="FILE",
            help="The file for the logs. A name in .jsonl gets a line of JSON per run, with the metrics of every "
            "epoch; .csv gets a row per run, with its last metrics. A further .gz compresses either.",
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        Option(
            metavar="FILE.npz",
            help="Also (or only) write the predictions of each finished model, in a few bytes per example; `runs "
            "measure` reads this file.",
            show_default="not written",
        ),
    ] = None,
    split: Annotated[str, Option(help="The split whose predictions are written.")] = "test",
    where: Where = None,
    runs_dir: RunsDir = None,
) -> None:
    """Export the logs and predictions of runs to files.

    Logs hold recipes, metrics and provenance. Finished and failed runs are exported, without their weights.
    """
    from softtargets.report import plural
    from softtargets.runs import Run, check_filter, export_predictions, exporter

    if out is None and predictions is None:
        raise RunError("nothing to write: give FILE for the logs, --predictions FILE.npz, or both")
    write = exporter(out) if out is not None else None
    wanted = assignments(where, "--where")
    store = run_store(runs_dir)
    chosen = [entry for entry in store.entries(wanted) if entry.status in ("finished", "failed")]
    if not chosen:
        check_filter(store.entries(), wanted)
        raise RunError(f"no finished runs to export in {store.root}")
    runs = {entry.id: Run(store.root / entry.id) for entry in chosen}
    damaged: list[str] = []
    if write is not None and out is not None:
        count = write(runs.values(), out, damaged)
        typer.echo(f"{plural(count, 'run')} in {out}")
    if predictions is not None:
        count = export_predictions(runs.values(), predictions, split)
        typer.echo(f"predictions of {plural(count, 'run')} in {predictions}")
    if damaged:
        raise RunError(f"{plural(len(damaged), 'damaged run')} left out: {damaged[0]}")


@app.command()
def pack(
    out: Annotated[Path, Argument(metavar="FILE.zip", help="The file to write.")],
    runs: Annotated[
        list[str] | None,
        Argument(metavar="[RUN]...", help="Ids of runs, or their first digits.", show_default="all runs"),
    ] = None,
    extras: Annotated[
        list[str] | None,
        Option(
            "--with",
            metavar="WHAT",
            help="Also pack weights, predictions (logits and activations) or checkpoints (of unfinished runs, which "
            "another machine can then resume). May be repeated.",
            show_default="none",
        ),
    ] = None,
    where: Where = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Pack runs into one small file for another machine.

    The file has logs, compact test predictions and what studies measured; weights only with --with weights. `runs
    merge` takes its runs into a directory of runs.
    """
    from softtargets.report import plural
    from softtargets.runs import Run, check_filter, check_pack_name, pack_runs

    check_pack_name(out)
    wanted = assignments(where, "--where")
    store = run_store(runs_dir)
    entries = store.entries(wanted)
    if not entries and wanted:
        check_filter(store.entries(), wanted)
    there = {entry.id for entry in entries}
    chosen = there if not runs else there & {store.get(word).id for word in runs}
    packed = pack_runs([Run(store.root / name) for name in chosen], out, extras or ())
    if as_json:
        print_json({"file": str(out), **vars(packed)})
    else:
        counts = {"finished": packed.finished, "failed": packed.failed, "unfinished": packed.unfinished}
        told = ", ".join(f"{len(found)} {word}" for word, found in counts.items() if found)
        number = len(packed.finished) + len(packed.failed) + len(packed.unfinished)
        typer.echo(f"{plural(number, 'run')} ({told}) in {out}, {packed.bytes / 1e6:.1f} MB")
    if packed.left_out:
        raise RunError(f"{plural(len(packed.left_out), 'damaged run')} left out: {packed.left_out[0]}")


@app.command()
def merge(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE|DIR...",
            help="Packs of runs (`runs pack`), results directories of studies, or directories of either.",
        ),
    ],
    replace: Annotated[
        bool,
        Option(
            "--replace",
            help="If the other machine's run has different numbers, take it instead of the run here, unless it "
            "failed or lacks weights that are here.",
        ),
    ] = False,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Merge runs from other machines into a directory of runs.

    A run that is already there stays and gets what it lacks. If two trainings of one recipe have different numbers,
    or a run is damaged, the run is named and the exit code is 2. If two versions of the engine that compute a recipe
    differently trained it, the newer version's run is kept. Runs that arrive without weights are light: studies use
    what was measured on them.
    """
    from softtargets.runs import Merged, merge_runs

    store, merged = run_store(runs_dir), Merged()
    for file in files:
        merged += merge_runs(file, store, replace)
    if as_json:
        print_json({**asdict(merged), "conflicts": [str(one) for one in merged.conflicts]})
    else:
        typer.echo(f"{_merged(merged)} in {store.root}")
        for sentence in (*map(str, merged.conflicts), *merged.refused):
            typer.echo(sentence)
        for run in merged.busy:
            typer.echo(
                f"run {run} is being written by another process; merge again when that process has ended"
            )
    if not merged.is_whole:
        raise RunError(_unmerged(merged))


def _merged(merged: Merged) -> str:
    """What came of merging, in a line."""
    words = {
        "added": merged.added,
        "upgraded": merged.upgraded,
        "replaced": merged.replaced,
        "kept, by a newer engine": merged.outdated,
        "already there": merged.unchanged,
        "with further measures": merged.measured,
        "to be resumed": merged.continued,
    }
    return ", ".join(f"{len(found)} {word}" for word, found in words.items() if found) or "no runs"


def _unmerged(merged: Merged) -> str:
    """What was not taken, in a line."""
    from softtargets.report import plural

    parts = []
    if merged.conflicts:
        parts.append(f"{plural(len(merged.conflicts), 'conflict')}: the runs that were here stay")
    if merged.refused:
        parts.append(f"{plural(len(merged.refused), 'run')} refused")
    if merged.busy:
        parts.append(f"{plural(len(merged.busy), 'run')} being written")
    return "not everything was merged: " + ", ".join(parts)


@app.command()
def measure(
    file: Annotated[
        Path, Argument(metavar="FILE.npz", help="The file that `runs export --predictions` wrote.")
    ],
    as_json: Json = False,
) -> None:
    """Recompute the metrics of runs from their predictions.

    Prints accuracy, error rate, likelihood and calibration error, from the file that `runs export --predictions`
    writes.
    """
    from softtargets.runs import recomputed

    found = recomputed(file)
    if as_json:
        return print_json(found)
    headings = ("accuracy", "error", "nll", "ece")
    rows = [(run, *(f"{numbers[name]:.5f}" for name in headings)) for run, numbers in found.items()]
    print_table(("run", *headings), rows)


@app.command()
def delete(
    run: RunId,
    yes: Annotated[bool, Option("--yes", "-y", help="Delete without asking.")] = False,
    runs_dir: RunsDir = None,
) -> None:
    """Delete a run and its files, after asking.

    A run that another process is writing is never deleted.
    """
    store = run_store(runs_dir)
    found = store.get(run)
    if not yes:
        if not sys.stdin.isatty():
            raise SofttargetsError(
                f"run {found.id} was not deleted: there is no terminal to ask on; add --yes to delete it without "
                "asking"
            )
        told = _described(_entry(store.entries(), found.id))
        if not typer.confirm(f"Delete run {found.id} ({told}) for good?", err=True):
            return typer.echo("nothing was deleted")
    typer.echo(f"deleted {store.delete(found.id)}")


def _entry(entries: list[ListedRun], identity: str) -> ListedRun:
    for entry in entries:
        if entry.id == identity:
            return entry
    raise RunError(f"run {identity} is gone: another process deleted it")


def _described(entry: ListedRun) -> str:
    """A run in a few words: what one needs to know before it is gone."""
    parts = [_part(entry.recipe, slot) for slot in ("data", "model", "regulariser")]
    seed = f"seed {entry.recipe['seed']}" if "seed" in entry.recipe else ""
    state = f"{_state(entry)} {_moment(entry.finished)}".strip()
    return ", ".join(word for word in (*parts, seed, state) if word)


def _state(entry: ListedRun) -> str:
    return f"{entry.status}, light" if entry.light else entry.status


def _moment(iso: str | None) -> str:
    """A moment to the minute.

    >>> _moment("2026-11-16T17:50:57+00:00")
    '2026-11-16 17:50'
    """
    return iso[:16].replace("T", " ") if iso else ""


def _number(value: object, form: str) -> str:
    return f"{value:{form}}" if isinstance(value, int | float) else ""


def _part(recipe: dict[str, object], slot: str) -> str:
    part = recipe.get(slot)
    if not isinstance(part, dict):
        return ""
    given = (part.get(key) for key in ("alpha", "temperature"))
    strength = next((f" {number}" for number in given if number is not None), "")
    return f"{part.get('name')}{strength}"
