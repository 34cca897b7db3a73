"""``python -m benchmarks.executors --address HOST:PORT``: one study of tiny runs, in turns by processes and by Ray.

    ray start --head --num-cpus 4 --include-dashboard=false
    python -m benchmarks.executors --address auto --write

Each turn is a whole command in a directory of its own, from the start of Python to the page: workers are started in
every turn, by either. The cluster is there before, as clusters are.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import typer

from benchmarks.machine import describe

RESULTS = Path(__file__).parent / "results.json"
SEEDS = 13  # 208 runs
WORKERS = 4


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.executors", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--address", default="auto", help="of a running cluster with 4 CPUs (default: auto)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"16 runs each (default: {SEEDS})")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name} beside the program")
    asked = parser.parse_args(arguments)
    found = measured(asked.address, asked.rounds, asked.seeds)
    command = f"python -m benchmarks.executors --rounds {asked.rounds} --seeds {asked.seeds}"
    about = describe(torch.device("cpu"), command, ["ray"])
    for name, seconds in found["seconds"].items():
        typer.echo(f"{name:<10} {'  '.join(f'{one:.1f}' for one in seconds)} s")
    typer.echo(f"overhead of Ray, fastest turns: {found['overhead']:+.1%}")
    if asked.write:
        RESULTS.write_text(json.dumps({**about, **found}, indent=1) + "\n", encoding="utf-8")


def measured(address: str, rounds: int, seeds: int) -> dict[str, Any]:
    """Seconds of every turn, and by how much Ray's fastest is longer than that of plain processes."""
    ways = {"processes": (), "ray": ("--executor", "ray", "--address", address)}
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(rounds):
        for name in list(ways)[:: 1 if turn % 2 == 0 else -1]:  # nobody is always first
            seconds[name].append(_seconds(seeds, ways[name]))
    overhead = min(seconds["ray"]) / min(seconds["processes"]) - 1
    return {"runs": 16 * seeds, "workers": WORKERS, "seconds": seconds, "overhead": overhead}


def _seconds(seeds: int, way: Sequence[str]) -> float:
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "softtargets", "study", "run", "quickstart", "--device", "cpu"]
        command += ["--seeds", str(seeds), "--workers", str(WORKERS), "--runs-dir", f"{directory}/runs"]
        command += ["--out", f"{directory}/page", *way]
        begun = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        return time.monotonic() - begun


if __name__ == "__main__":
    main()
