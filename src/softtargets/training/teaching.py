"""Which images a teacher is asked about, whether it must be asked in every step, and whether it still can be."""

from __future__ import annotations

from dataclasses import replace

from softtargets.exceptions import RunError
from softtargets.recipes import Distillation, ImageDataset, Recipe
from softtargets.runs import Run


def asked_through(recipe: Recipe) -> Recipe | None:
    """The recipe through whose augmentation a teacher sees the student's images: the student's or its own.

    None where it sees them as they are, which is the same in every epoch, so that it is asked once; also for recipes
    without a teacher.

    >>> from softtargets.recipes import MLP, Digits, Shift
    >>> teacher = Recipe(data=Digits(), model=MLP(), epochs=1, augmentation=(Shift(),))
    >>> student = teacher.replace({"augmentation": (), "regulariser": Distillation(teacher=teacher)})
    >>> asked_through(student) is None, asked_through(student.replace({"regulariser.view": "teacher"})) == teacher
    (True, True)
    """
    soft = recipe.regulariser
    if not isinstance(soft, Distillation) or soft.view == "stored":
        return None
    through = soft.teacher if soft.view == "teacher" else recipe
    return through if through.augmentation else None


def has_weights(run: Run) -> bool:
    """Whether a run kept its weights: runs that travel light leave them behind."""
    return "weights.safetensors" in run.manifest["files"]


def check_can_teach(student: Recipe, run: Run) -> None:
    """Refuse a finished teacher without weights, unless what it stored of its training examples is all that is asked.

    run:  that of the student's teacher.
    """
    if run.status != "finished" or has_weights(run):
        return
    advice = f"delete it with `softtargets runs delete {run.id}`, and it is trained again"
    if not run.has_predictions("train"):
        raise RunError(
            f"run {run.id} cannot teach run {student.id}: it has neither weights nor predictions for its training "
            f"examples; {advice}"
        )
    if asked_through(student) is not None:
        raise RunError(
            f"run {run.id} cannot teach run {student.id}: it has no weights, which it needs to predict augmented "
            f"images; {advice}, or give the student regulariser.view: stored"
        )
    if _examples(student) != _examples(run.recipe):
        raise RunError(
            f"run {run.id} cannot teach run {student.id}: it has no weights, and its predictions are not for the "
            f"student's training examples; {advice}"
        )


def _examples(recipe: Recipe) -> object:
    """What decides which images are trained on: all of the data but how they are standardised."""
    data = recipe.data
    return replace(data, standardise="unit") if isinstance(data, ImageDataset) else data
