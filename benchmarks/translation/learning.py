"""``python -m benchmarks.translation.learning``: whether what is fast also learns. Multi30k, three seeds, BLEU.

A 4+4 model of width 256 with label smoothing of 0.1 on 29,000 captions, English to German; the test set of 2016, cased
sacreBLEU, beam 5. Trainings that are cut go on when the command is called again. The recipe is that of the studies on
Multi30k, so that their runs are the same.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import typer

from softtargets.recipes import LabelSmoothing, Recipe
from softtargets.studies.translation.protocols import KEEP, MULTI30K

ASKED = 38.0


def recipe(seed: int, epochs: int | None = None, limit: int | None = None, **changes: Any) -> Recipe:
    """The training that is asked to reach 38 BLEU on average.

    >>> recipe(2).seed, recipe(2).model.width
    (2, 256)
    """
    made = MULTI30K.replace({"regulariser": LabelSmoothing(alpha=0.1), "seed": seed, "data.limit": limit})
    if epochs is not None:
        made = made.replace({"epochs": epochs, "average_last": min(made.average_last or 1, epochs)})
    return made.replace(changes) if changes else made


def translated(
    run: Any, device: str, data_dir: Path | None = None, beam: int = 5
) -> tuple[list[str], list[str]]:
    """Translations of the test set by the weights that a run kept, and the references."""
    from softtargets.training import choose_device
    from softtargets.training.building import build_model
    from softtargets.training.tasks import prepare

    chosen = choose_device(device)
    task: Any = prepare(run.recipe.data, chosen, data_dir)
    model: Any = build_model(run.recipe, task)
    model.load_state_dict(run.weights())
    found = task.translate(run.recipe, model.to(chosen), "test", beam=beam)
    return task.tokeniser.decode([best[0].tokens for best in found]), list(task.splits["test"].texts.targets)


def main(
    store: Annotated[Path, typer.Option(help="Where runs are kept.")] = Path("runs-translation"),
    minutes: Annotated[float, typer.Option(help="Training stops after so many, to go on next time.")] = 8.0,
    seeds: Annotated[int, typer.Option(min=1, help="How many trainings.")] = 3,
    epochs: Annotated[int | None, typer.Option(min=1, help="Of each [as in the studies].")] = None,
    limit: Annotated[int | None, typer.Option(help="Train on so many pairs only.")] = None,
    device: Annotated[str, typer.Option(help="auto (a GPU if there is one), cpu, cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where Multi30k is [env SOFTTARGETS_DATA].")] = None,
    out: Annotated[Path | None, typer.Option(help="Where translations go [STORE].")] = None,
) -> None:
    """Train, translate the test set and print BLEU of each seed and on average."""
    from softtargets.exceptions import SofttargetsError, Unfinished
    from softtargets.runs import RunStore
    from softtargets.training import train
    from softtargets.translation import bleu

    begun = time.monotonic()
    recipes = [recipe(seed, epochs, limit) for seed in range(seeds)]
    if device == "cpu":
        recipes = [each.replace({"precision": "fp32"}) for each in recipes]
    try:
        runs = train(
            recipes, RunStore(store), device=device, data_dir=data_dir, keep=KEEP, until=begun + 60 * minutes
        )
    except Unfinished as left:
        typer.echo(f"{left}; call again to go on")
        raise typer.Exit(3) from None
    trained = time.monotonic() - begun
    values: list[float] = []
    for run in runs:
        texts, references = translated(run, device, data_dir)
        file = (out or store) / f"multi30k-seed{run.recipe.seed}.json"
        file.write_text(json.dumps({"hypotheses": texts, "references": references}), encoding="utf-8")
        try:
            values.append(bleu(texts, references).value)
            typer.echo(f"seed {run.recipe.seed}: {bleu(texts, references)}")
        except SofttargetsError as error:  # sacreBLEU is not there: score the file elsewhere
            typer.echo(f"seed {run.recipe.seed}: {error}; translations are in {file}")
    typer.echo(f"trained for {trained:.0f} s in this call")
    if values:
        typer.echo(f"on average {fmean(values):.2f} (asked: {ASKED:g})")


if __name__ == "__main__":
    typer.run(main)
