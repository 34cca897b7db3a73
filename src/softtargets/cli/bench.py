"""``softtargets bench``: how fast the losses are, against what people use today."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softtargets.bench.losses.grid import SECONDS
from softtargets.bench.watching import Watcher
from softtargets.cli import Interrupted
from softtargets.cli.options import Json
from softtargets.cli.output import print_json, print_table
from softtargets.exceptions import SofttargetsError

if TYPE_CHECKING:
    from softtargets.bench import Results
    from softtargets.bench.losses.results import CaseResult, LinearResult

app = typer.Typer(help="Benchmarks: ours against others, as ratios of one run.", no_args_is_help=True)


@app.command()
def losses(
    device: Annotated[
        str, typer.Option(help="auto (a GPU if there is one), cpu, cuda, cuda:1, ...")
    ] = "auto",
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
    resume: Annotated[bool, typer.Option("--resume", help="Measure only what is not there yet.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Measure all again.")] = False,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="RESULTS.JSON", help="Measure nothing: tables and pictures again."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Time, memory and error of each loss, forward + backward, against torch eager, torch.compile and Liger."""
    if source is not None:
        from softtargets.bench import Results

        if resume or overwrite:
            raise SofttargetsError("--from measures nothing: leave out --resume and --overwrite")
        _show(Results.load(source), out or source.parent, source, as_json)
        return
    if resume and overwrite:
        raise SofttargetsError("--resume and --overwrite exclude each other")
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
    command = _command(options, flags)

    from softtargets.bench import plan

    words: dict[str, Any] = {
        "losses": names,
        "sizes": sizes,
        "dtypes": dtypes,
        "rivals": rivals,
        "linear_size": linear_size,
    }
    plan("cpu", **words, linear=linear)  # a misspelt word is refused before torch is asked for anything

    from softtargets.bench.losses.running import RESULTS, default_directory, run
    from softtargets.training import choose_device

    chosen = choose_device(device)
    directory = out or default_directory(chosen)
    wanted = plan(chosen.type, **words, in_place=in_place, seconds=seconds, linear=linear)
    try:
        with _progress() as watcher:
            results = run(
                wanted, directory, chosen, command, resume=resume, overwrite=overwrite, watcher=watcher
            )
    except KeyboardInterrupt:
        raise Interrupted(
            f"interrupted; what was measured is in {directory / RESULTS}. Go on with: {command} --resume"
        ) from None
    _show(results, directory, directory / RESULTS, as_json)


def _show(results: Results, directory: Path, path: Path, as_json: bool) -> None:
    """Write what is made from the results, print the table and where everything is."""
    from softtargets.bench.losses.tables import linear_overview, notes, overview
    from softtargets.bench.losses.writing import write_files

    files = [path, *write_files(results, directory)]
    if as_json:
        print_json({"files": [str(file) for file in files], "results": results.to_dict()})
        return
    if results.cases:
        typer.echo(
            "multiples of the floor, or time per call where launches dominate; memory in units of the logits\n"
        )
        print_table(*overview(results))
    if results.linear:
        typer.echo("\nprojection and loss, as multiples of the three matrix products\n")
        print_table(*linear_overview(results))
    lines = notes(results)
    for line in ["", *lines] if lines else []:
        typer.echo(line)
    typer.echo("")
    for file in files:
        typer.echo(str(file))


def _command(options: dict[str, Any], flags: list[str]) -> str:
    """The command that measures this again, without what is at its default."""
    words = ["softtargets", "bench", "losses"]
    for option, value in options.items():
        words += [option, str(value)] if value is not None else []
    return shlex.join(words + flags)


def _progress() -> _Lines:
    """What suits standard error."""
    return _Bar() if sys.stderr.isatty() else _Lines()


class _Lines(Watcher):
    """One line per case."""

    def __init__(self) -> None:
        self._total = self._done = 0
        self._begun = time.monotonic()

    def __enter__(self) -> _Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def planned(self, total: int, done: int) -> None:
        self._total, self._done = total, done
        self._say(f"{total} cases" + (f", {done} of them measured before" if done else ""))

    def started(self, case: str) -> None:
        self._begun = time.monotonic()

    def finished(self, result: CaseResult | LinearResult) -> None:
        from softtargets.bench.losses.tables import summary

        self._done += 1
        seconds = time.monotonic() - self._begun
        self._say(f"[{self._done}/{self._total}] {summary(result)}  {seconds:.1f} s")

    def _say(self, line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class _Bar(_Lines):
    """The same lines above a bar that says what is being measured and how long it will take."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        super().__init__()
        self._bar = Progress(
            BarColumn(bar_width=28),
            TextColumn("{task.completed} of {task.total}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("measuring how fast memory is", total=None)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def planned(self, total: int, done: int) -> None:
        super().planned(total, done)
        self._bar.update(self._task, total=total, completed=done)

    def started(self, case: str) -> None:
        super().started(case)
        self._bar.update(self._task, description=case)

    def finished(self, result: CaseResult | LinearResult) -> None:
        super().finished(result)
        self._bar.update(self._task, completed=self._done)

    def _say(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False)
