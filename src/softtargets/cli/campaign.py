"""``softtargets campaign``: run, status, cost, pages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from math import isnan, nan
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from softtargets.cli import campaign_cost, executing, following, options, printable, resumable
from softtargets.cli.command_line import command_line
from softtargets.cli.output import print_json
from softtargets.exceptions import CampaignError

if TYPE_CHECKING:
    from softtargets.campaign import EntryStatus, Group, Outlook, Session

app = typer.Typer(help="Train a ranked list of studies whenever a GPU is available.", no_args_is_help=True)

File = Annotated[
    Path,
    Argument(
        metavar="[FILE]", help="The YAML file with the ranked studies.", show_default="results/campaign.yaml"
    ),
]
_FILE = Path("results") / "campaign.yaml"


@app.command()
def run(
    context: typer.Context,
    file: File = _FILE,
    time_for: options.For = None,
    device: options.Device = "auto",
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
    pack: Annotated[
        Path | None,
        Option(
            metavar="FILE.zip",
            help="Pack all finished runs of the campaign into this file, after each group of runs and at the end. "
            "Runs that were merged from such a file are left out.",
            show_default="no file is written",
        ),
    ] = None,
    extras: Annotated[
        list[str] | None,
        Option(
            "--with",
            metavar="WHAT",
            help="Also pack weights, predictions or (at the end) checkpoints, with which another machine resumes "
            "unfinished runs. May be repeated.",
            show_default="none",
        ),
    ] = None,
    reserve: Annotated[
        float,
        Option(
            min=0.0,
            help="Seconds of the time of --for that are reserved for writing checkpoints, measuring and packing.",
        ),
    ] = 30.0,
    workers: options.Workers = None,
    executor: executing.ExecutorName = "local",
    address: executing.Address = None,
    ranks: executing.Ranks = None,
    cpus_per_worker: executing.CpusPerWorker = None,
    gpus_per_worker: executing.GpusPerWorker = None,
    memory_per_worker: executing.MemoryPerWorker = None,
    sharing: Annotated[
        int,
        Option(
            min=1,
            help="How many of these commands share the campaign, each on its own device. No command takes more than "
            "its share of similar runs at a time.",
        ),
    ] = 1,
    checkpoint_seconds: options.CheckpointSeconds = 30.0,
) -> None:
    """Train the runs that are missing, highest-ranked first.

    Runs that can be finished within the time of --for go first. If none can, the highest-ranked run is started and
    leaves a checkpoint. Finished runs are measured for their studies. Nothing is computed twice, and several of
    these commands can work on the same directory of runs. Ctrl-C is safe, and so is kill -9.
    """
    begun = time.monotonic()
    end = options.deadline(time_for, begun)
    if end is not None and end - begun <= reserve:
        raise CampaignError(
            f"--for {time_for} leaves no time for training: {reserve:g} s of it are reserved for writing (--reserve)"
        )
    from softtargets.campaign import Session, has_room, load_campaign, outlook, outlook_elsewhere
    from softtargets.cli.console import watching
    from softtargets.runs import EXTRAS, check_pack_name, is_untraceable_copy
    from softtargets.training import choose_device

    if pack is not None:
        check_pack_name(pack)
    if unknown := set(extras or ()) - set(EXTRAS):
        raise CampaignError(f"--with must be one of {', '.join(EXTRAS)}, not {min(unknown)}")
    if is_untraceable_copy():
        _say(
            "This copy of the code has no .git, so runs cannot say which commit trained them. Copy .git too, or set "
            "SOFTTARGETS_COMMIT to what `git rev-parse HEAD` prints where the code is from."
        )
    campaign = load_campaign(file)
    seen = {"campaign": following.digest([file.read_text(encoding="utf-8")])}
    following.follow(device, runs_dir, data_dir, executor=executor, workers=workers, facts=seen)
    sizes = {"cpus_per_worker": cpus_per_worker, "gpus_per_worker": gpus_per_worker}
    sizes["memory_per_worker"] = memory_per_worker
    engine = executing.chosen(executor, device, address=address, ranks=ranks, **sizes)
    again = f"Go on with: {command_line(context)}"
    with resumable(lambda: f"everything so far is saved. {again}"), engine:
        where, devices = engine.reach(device, workers)
        # Where a GPU of another machine trains, times are estimated for that.
        elsewhere = not engine.here and where == "cuda"
        store = options.run_store(runs_dir)
        look = outlook_elsewhere if elsewhere else partial(outlook, device=device if engine.here else where)
        session = Session(
            look(campaign, store),
            end=end,
            reserve=reserve,
            data_dir=data_dir,
            workers=executing.worker_count(engine, workers, device),
            sharing=sharing,
            checkpoint_seconds=checkpoint_seconds,
            pack=pack,
            include=tuple(extras or ()),
            watching=watching,
            say=_say,
            engine=engine,
            devices=devices,
            measured_on=None if engine.here else "auto",
            beside=engine.here and has_room(choose_device(device)),
        )
        session.run()
    for line in _ended(session, again):
        typer.echo(line)


@app.command()
def status(
    file: File = _FILE,
    time_for: Annotated[
        str | None,
        Option(
            "--for",
            metavar="TIME",
            help="Also show what a session of this length would train: 90s, 9m, 1h30m.",
            show_default="only the status is shown",
        ),
    ] = None,
    runs_dir: options.RunsDir = None,
    as_json: options.Json = False,
) -> None:
    """Show what is done, what is missing and how long it takes.

    Lists the entries with their cells, the claims that wait for these cells, and the estimated minutes on this
    machine's GPU. Without a GPU here, minutes are for the one in the table of speeds beside the campaign.
    """
    seconds = None if time_for is None else options.seconds_of(time_for)
    from softtargets.campaign import coming, entry_statuses, load_campaign, outlook_elsewhere, totals

    campaign = load_campaign(file)
    found = outlook_elsewhere(campaign, options.run_store(runs_dir))
    entries, groups = entry_statuses(found), None if seconds is None else coming(found, seconds)
    if as_json:
        return print_json(_as_json(found, entries, totals(found), groups))
    for line in _standing(found, entries):
        typer.echo(printable(line))
    if groups is not None:
        typer.echo("")
        for line in _coming(found, groups, str(time_for)):
            typer.echo(printable(line))


@app.command()
def cost(
    file: File = _FILE,
    gpus: Annotated[
        str, Option(metavar="N,...", help="How many GPUs share the campaign; several numbers are compared.")
    ] = "1,8,64",
    left: Annotated[
        bool, Option("--left", help="Count only what is left to train, not the whole campaign.")
    ] = False,
    runs_dir: options.RunsDir = None,
    as_json: options.Json = False,
) -> None:
    """Estimate how long the campaign takes on several GPUs.

    Prints the GPU hours of each study, the time until everything is trained (runs packed as each GPU would take
    them, teachers before their students), the longest chain of teachers and students, and how much of the estimate
    is guessed. All GPUs are assumed to be like the one in this machine; without one, like the one in the table of
    speeds beside the campaign. Runs of unknown length are named and counted.
    """
    counts = campaign_cost.numbers_of(gpus)
    from softtargets.campaign import campaign_cost as computed
    from softtargets.campaign import from_nothing, load_campaign, outlook_elsewhere

    found = outlook_elsewhere(load_campaign(file), options.run_store(runs_dir))
    told = computed(found if left else from_nothing(found), counts)
    if as_json:
        return print_json(campaign_cost.as_json(found, told))
    for line in campaign_cost.lines(found, told):
        typer.echo(printable(line))


@app.command()
def pages(
    file: File = _FILE,
    out: Annotated[Path, Option(help="The directory to write to, with one directory for each study.")] = Path(
        "results"
    ),
    study: Annotated[
        str | None, Option(help="Only the page of this study.", show_default="all studies of the campaign")
    ] = None,
    device: options.Device = "auto",
    runs_dir: options.RunsDir = None,
    data_dir: options.DataDir = None,
) -> None:
    """Write the pages of all studies that have runs, and the atlas.

    Nothing is trained: cells without a run are “not run yet”. The logs and predictions of a page's runs are written
    beside the page. If a page fails, it is named and the others are still written. What teachers say of their training
    examples is kept in teachers/ for as long as students wait for it.
    """
    from softtargets.atlas import write_atlas
    from softtargets.campaign import choose_pages, load_campaign, write_lessons, write_pages
    from softtargets.report import plural

    campaign = load_campaign(file)
    chosen = choose_pages(campaign, study)
    store = options.run_store(runs_dir)
    _, failed = write_pages(chosen, store, out, _say, data_dir=data_dir, device=device)
    if lessons := write_lessons(campaign, store, out):
        _say(f"{plural(len(lessons), 'teacher')} whose students are still to be trained: {lessons[0].parent}")
    typer.echo(f"atlas: {write_atlas(out, out)}")
    if failed:
        raise CampaignError(f"{len(failed)} of {len(chosen)} pages failed: {'; '.join(failed)}")


def _say(line: str) -> None:
    typer.echo(printable(line), err=True)


def _ended(session: Session, again: str) -> Iterator[str]:
    """What a session has come to, and how to go on."""
    from softtargets.campaign import totals
    from softtargets.report import plural

    outlook = session.outlook
    outlook.look()
    counted, seconds, source = totals(outlook)
    failed = sum(outlook.states[key].status == "failed" for key in session.trained)
    ended = f"{plural(len(session.trained), 'run')} ended"
    yield f"{ended}{f', {failed} of them failed' if failed else ''}."
    if session.pack is not None and session.pack.exists():
        yield f"packed: {session.pack} ({session.pack.stat().st_size / 1e6:.1f} MB)"
    left = counted["missing"] + counted["interrupted"] + counted["running"]
    if not left:
        yield f"Nothing is left to train: {counted['done']} of {sum(counted.values())} cells are done."
        return
    begun = f" ({counted['interrupted']} begun)" if counted["interrupted"] else ""
    yield f"{plural(left, 'cell')} left{begun}, {_minutes(seconds, source)} on {outlook.speeds.device}."
    if session.skipped:
        yield f"{plural(len(session.skipped), 'cell')} of these cannot be trained here, as said above."
    if left > len(session.skipped):
        yield again


def _minutes(seconds: float | None, source: str) -> str:
    """
    >>> _minutes(90, "table"), _minutes(90, "guessed"), _minutes(None, "guessed")
    ('about 1.5 min', 'about 1.5 min (guessed)', 'an unknown time')
    """
    if seconds is None:
        return "an unknown time"
    return f"about {seconds / 60:.1f} min{' (guessed)' if source == 'guessed' else ''}"


_COLUMNS = ("#", "study", "size", "seeds", "done", "cut", "bad", "claims", "min", "sum")


def _standing(outlook: Outlook, entries: list[EntryStatus]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [_COLUMNS]
    total = 0.0
    for one in entries:
        total += nan if one.seconds is None else one.seconds
        rows.append(_standing_of(one, total))
    widths = [max(len(row[column]) for row in rows) for column in range(len(_COLUMNS))]
    for row in rows:
        cells = (
            cell.ljust(width) if name in ("study", "size") else cell.rjust(width)
            for name, cell, width in zip(_COLUMNS, row, widths, strict=True)
        )
        yield " ".join(cells).rstrip()
    yield ""
    yield "done: finished cells of all; cut: interrupted, or running elsewhere;"
    yield "bad: failed or damaged; claims: not run yet on the study's page, of all;"
    yield "min: estimated minutes; sum: of all entries so far; ?: guessed or unknown."
    yield f"Estimated for {outlook.speeds.device}."
    if outlook.campaign.planned:
        yield from wrap(f"Planned, not written yet: {', '.join(outlook.campaign.planned)}.", 79)


def _standing_of(one: EntryStatus, total: float) -> tuple[str, ...]:
    """The row of an entry; `total` are the seconds of all up to it, not a number if nobody can tell."""
    settings, cells = one.entry.settings, one.cells
    minutes = "?" if one.seconds is None else f"{one.seconds / 60:.0f}{'?' * (one.source == 'guessed')}"
    counts = (cells["interrupted"] + cells["running"], cells["failed"] + cells["damaged"])
    return (
        *(str(one.entry.rank), one.entry.study.name, settings.size or "–", str(settings.seeds)),
        f"{cells['done']}/{one.total}",
        *(str(count or "–") for count in counts),
        *(f"{one.waiting}/{one.claims}", minutes, "?" if isnan(total) else f"{total / 60:.0f}"),
    )


def _coming(outlook: Outlook, groups: list[Group], length: str) -> Iterator[str]:
    from softtargets.report import plural

    yield f"A session of {length} would train" if groups else f"A session of {length} would train nothing."
    for group in groups:
        cells = [outlook.cells[key] for key in group.ids]
        study = outlook.campaign.entries[outlook.rank(group.ids[0]) - 1].study.name
        recipe = cells[0].recipe
        yield (
            f"  {plural(len(cells), 'run')} of {study} ({recipe.data.name}, {recipe.model.name}): "
            f"{_minutes(group.seconds, '')}{'' if group.whole else ', started but not finished'}"
        )


def _as_json(
    outlook: Outlook, entries: list[EntryStatus], total: tuple[Any, Any, str], groups: list[Group] | None
) -> dict[str, Any]:
    counted, seconds, source = total
    return {
        "device": outlook.speeds.device,
        "cells": counted,
        "seconds": seconds,
        "source": source,
        "planned": outlook.campaign.planned,
        "entries": [
            {
                "rank": one.entry.rank,
                "study": one.entry.study.name,
                "page": one.entry.page,
                "size": one.entry.settings.size,
                "seeds": one.entry.settings.seeds,
                "why": one.entry.why,
                "cells": dict(one.cells),
                "claims": one.claims,
                "claims_waiting": one.waiting,
                "seconds": one.seconds,
                "source": one.source,
            }
            for one in entries
        ],
        "next": None if groups is None else [vars(group) for group in groups],
    }
