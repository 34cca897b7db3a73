"""What a study of the plane says: figures 5 to 11, and where the theory holds."""

from __future__ import annotations

from softtargets.claims import Sample
from softtargets.report import Column, Section, Table
from softtargets.studies.chen_plane import figures
from softtargets.studies.chen_plane.claims import CLOSE, claims, counted
from softtargets.studies.chen_plane.grid import Scope
from softtargets.studies.chen_plane.optima import Grid
from softtargets.studies.study import Findings, Results


def findings(scope: Scope, results: Results) -> Findings:
    """Figures, a table and claims."""
    grid = Grid(results)
    return Findings(
        sections=_sections(scope, grid), claims=claims(grid, _classes(results), scope.losses_only)
    )


def _sections(scope: Scope, grid: Grid) -> tuple[Section, ...]:
    one = grid.results.first()
    recipe, run, size = one.trial.recipe, one.run, str(one.trial.labels["size"])
    examples, classes = run.provenance["examples"], _classes(grid.results)
    bounds = f"{grid.rates[0]:g} to {grid.rates[-1]:g}"
    first = (
        f"{scope.dataset}, {size} size: {examples['train']:,} training images and {run.provenance['parameters']:,} "
        f"weights ({recipe.model.name}), {int(run.summary['epoch'])} epochs, {len(grid.rates)} clean rates from "
        f"{bounds} and {len(grid.masses)} values of p, {counting(len(grid.seeds), 'seed')}. "
        f"{examples['test']:,} test images.{_not_the_papers(size)}",
        "The theory supposes that a net gives each example the target it was trained on, wrong labels included, and "
        "that a test example fares like a training example. Both are measured: how many of the given training labels "
        "the net gives back, and where the test loss lies between that of a net that has learned all by heart "
        "(position 1) and one that has learned only what labels are on the average (position 0). The formula itself "
        "is about the training images, judged by their clean labels: their loss is measured too. What it lies away "
        "from the prediction the net has not learned by heart; what the test loss lies away from it is generalisation.",
    )
    return (
        Section(
            "Loss over the plane",
            (*first, _where(grid), *_on_training_images(grid)),
            (figures.landscape(grid, classes), _table(grid)),
        ),
        Section(
            "Slices, clean and corrupted test labels",
            (
                "The loss against corrupted test labels is the mean over all ways to corrupt them, computed from what "
                "the net says of the clean test set: no draw adds its chance.",
            ),
            (figures.slices(grid, classes),),
        ),
        Section(
            "Which p is best",
            (
                "Predicted is the p of the lowest loss; nothing is predicted about accuracy. The best epoch, for each "
                "net, is that of its highest test accuracy."
                + (" The paper shows this for MNIST only." if scope.losses_only else ""),
            ),
            (figures.best_smoothing(grid, classes), figures.accuracy_over_p(grid)),
        ),
        Section("What differs from the paper", scope.apart[size]),
    )


def counting(count: int, what: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def _not_the_papers(size: str) -> str:
    if size == "full":
        return ""
    return " Verdicts on this page are about these nets; those of the paper are trained with --set size=full."


def _where(grid: Grid) -> str:
    """In how many cells the prediction is off by more than it may, and what is the matter there."""
    cells = counted(grid)
    off = [cell for cell in cells if abs(cell.deviation) > CLOSE]
    if not off:
        return f"In all {len(cells)} cells up to p = 0.9 the measured loss is within {CLOSE:.0%} of the predicted one."
    below = [cell for cell in off if cell.deviation < 0]
    said = (
        f"In {len(off)} of {len(cells)} cells up to p = 0.9 the measured loss is more than {CLOSE:.0%} away from the "
        f"predicted one: {len(below)} times below it, {len(off) - len(below)} times above."
    )
    if below:
        # Without noise there is no way between the two.
        position = Sample.of(cell.position for cell in below if cell.a < 1).mean
        by_heart = Sample.of(cell.by_heart for cell in below).mean
        said += (
            f" Where it is below, nets give back {by_heart:.0%} of their training labels, wrong ones included, but the "
            f"loss on test images lies at {position:.2f} on the way from averaging to learning by heart."
        )
    if above := [cell for cell in off if cell.deviation > 0]:
        error = Sample.of(1 - cell.accuracy - (1 - cell.a) for cell in above).mean
        said += (
            f" Where it is above, the net errs on the test set by {100 * error:.1f} points more than its training "
            "labels are wrong, which the theory leaves out: it knows no error but that of the labels."
        )
    return said.replace("%", " %")


def _on_training_images(grid: Grid) -> tuple[str, ...]:
    """How the prediction fares where the theory makes it: on the images the net was trained on."""
    cells = [cell for cell in counted(grid) if cell.trained == cell.trained]
    if not cells:
        return ()
    close = sum(abs(cell.trained) <= CLOSE for cell in cells)
    trained, tested = (
        Sample.of(abs(value) for value in values).mean
        for values in ((cell.trained for cell in cells), (cell.deviation for cell in cells))
    )
    said = (
        f"On training images the loss against clean labels is within {CLOSE:.0%} of the prediction in {close} of "
        f"{len(cells)} cells, and {trained:.0%} away from it in the mean; on test images {tested:.0%}."
    )
    return (said.replace("%", " %"),)


def _table(grid: Grid) -> Table:
    cells = counted(grid)
    rows = []
    for a in grid.rates:
        mine = [cell for cell in cells if cell.a == a]
        if not mine:
            continue
        worst = max(mine, key=lambda cell: abs(cell.deviation))
        rows.append(
            {
                "a": a,
                "mean": Sample.of(abs(cell.deviation) for cell in mine).mean,
                "worst": worst.deviation,
                "where": worst.p,
                "trained": Sample.of(abs(cell.trained) for cell in mine).mean,
                "by_heart": Sample.of(cell.by_heart for cell in mine).mean,
                "position": Sample.of(cell.position for cell in mine).mean,
                "explained": Sample.of(abs(cell.explained) for cell in mine).mean,
            }
        )
    columns = (
        Column("a", "clean rate a", 2),
        Column("mean", "mean distance", percent=True),
        Column("worst", "largest deviation", percent=True),
        Column("where", "at p", 2),
        Column("trained", "mean distance on training images", percent=True),
        Column("by_heart", "training labels given back", percent=True),
        Column("position", "position", 2),
        Column("explained", "mean distance with the accuracy for a", percent=True),
    )
    return Table(
        "deviations",
        "How far the measured loss lies from the prediction of the alpha type, p up to 0.9.",
        columns,
        tuple(rows),
        "Means over seeds. Position 1 is learned by heart, 0 averaging, and above 1 is worse than both. The last "
        "column puts the net's test accuracy "
        "in the place of a: what is left of the distance then is how sure the net is, not how often it is right.",
    )


def _classes(results: Results) -> int:
    return int(results.first().run.predictions("test").logits.shape[-1])
