"""``python -m benchmarks.noise``: does the estimate of label noise hold what it promises, on real images?

Trains models out of fold on images whose labels are known, asks `assess_noise` and `suspicious_examples`, and writes
the tables of docs/noise.md. Predictions are kept, so that an interrupted command goes on where it was, and a change of
the estimate costs a minute. Training all of it wants a GPU (``--device cuda``); on a CPU use ``--limit 5000``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import typer

from benchmarks.noise import coverage, ranking
from benchmarks.noise.cases import DATASETS, MODELS, Case, all_cases
from benchmarks.noise.predictions import predicted

PAGE = Path(__file__).parents[2] / "docs" / "noise.md"
ROWS = Path(__file__).parent / "coverage.csv"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing, measure, write."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    whole = set(asked.datasets) == set(DATASETS) and set(asked.models) == set(MODELS) and asked.limit is None
    if asked.write and not whole:
        parser.error(
            "--write replaces the tables of docs/noise.md, so it wants all datasets and models and no --limit"
        )
    rows = []
    for case in all_cases():
        if case.dataset in asked.datasets and case.model in asked.models:
            if asked.no_training and not (asked.predictions / f"{case.name}.npz").exists():
                continue
            rows.append(
                coverage.assessed(case, predicted(case, asked.predictions, asked.device, asked.limit))
            )
            row = rows[-1]
            typer.echo(f"{case.name}: {100 * row.truth:.1f} % wrong; {row.cell()} {row.reason}")
    ranked = [
        (
            f"{dataset}, {noise}",
            ranking.precisions(predicted(case, asked.predictions, asked.device, asked.limit)),
        )
        for dataset, several, model in ranking.CASES
        for noise in several
        for case in [Case(dataset, noise, model)]
        if dataset in asked.datasets and (asked.predictions / f"{case.name}.npz").exists()
    ]
    parts = {
        "summary": coverage.summary(rows),
        "coverage": coverage.table(rows),
        "ranking": ranking.table(ranked),
    }
    typer.echo("\n\n".join(parts.values()))
    if asked.write:
        if not find_spec("cleanlab"):
            typer.echo(
                "cleanlab is not installed: the table of rankings in docs/noise.md stays as it was", err=True
            )
            del parts["ranking"]
        PAGE.write_text(written(PAGE.read_text(), parts))
        coverage.write_rows(ROWS, rows)


def written(page: str, parts: dict[str, str]) -> str:
    """The page with its generated parts replaced.

    >>> written("a <!-- x -->old<!-- end --> b", {"x": "new"})
    'a <!-- x -->\\n\\nnew\\n\\n<!-- end --> b'
    """
    for name, text in parts.items():
        before, begin, rest = page.partition(f"<!-- {name} -->")
        _, end, after = rest.partition("<!-- end -->")
        if not end:
            sys.exit(f"docs/noise.md has no place for the {name}")
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.noise",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--datasets", nargs="+", default=DATASETS, choices=DATASETS, metavar="NAME", help=", ".join(DATASETS))
    add("--models", nargs="+", default=MODELS, choices=MODELS, metavar="NAME", help=", ".join(MODELS))
    add("--limit", type=int, help="examples of a dataset, at most")
    add("--device", default="cpu", choices=("cpu", "cuda"), help="where networks are trained (default: cpu)")
    add(
        "--predictions",
        type=Path,
        default=Path("data/noise-predictions"),
        help="where out-of-fold predictions are kept (default: %(default)s)",
    )
    add("--no-training", action="store_true", help="only cases whose predictions are there")
    add("--write", action="store_true", help="write docs/noise.md and benchmarks/noise/coverage.csv")
    return parser


if __name__ == "__main__":
    main()
