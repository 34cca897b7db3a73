"""``softtargets bench``: how fast things are, against what people use today."""

from __future__ import annotations

import typer

from softtargets.cli.bench_calibration import calibration
from softtargets.cli.bench_losses import losses
from softtargets.cli.bench_training import training

app = typer.Typer(help="Benchmarks: ours against others, as ratios of one run.", no_args_is_help=True)
app.command()(losses)
app.command()(training)
app.command()(calibration)
