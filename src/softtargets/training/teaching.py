"""Which images a teacher is asked about, whether it must be asked in every step, and whether it still can be.

A teacher that is asked once, about training examples as they are, need not be there itself: what its run stored of them
is all that a student learns from. Such predictions are its lessons; they are small, and travel without its weights.
"""

from __future__ import annotations

from dataclasses import replace

from softtargets.exceptions import RunError
from softtargets.recipes import Distillation, ImageDataset, Recipe
from softtargets.runs import Run

# The split whose predictions are a teacher's lessons.
LESSONS = "train"


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


def asks_for_lessons(student: Recipe) -> bool:
    """Whether all that a student asks of its teacher is what that says of their training examples, as they are.

    >>> from softtargets.recipes import MLP, Digits, Shift
    >>> teacher = Recipe(data=Digits(), model=MLP(), epochs=1, augmentation=(Shift(),))
    >>> student = teacher.replace({"regulariser": Distillation(teacher=teacher, view="stored")})
    >>> asks_for_lessons(student), asks_for_lessons(student.replace({"regulariser.view": "teacher"}))
    (True, False)
    >>> asks_for_lessons(student.replace({"data.validation": 100}))
    False
    """
    teacher = student.teacher
    if teacher is None or not isinstance(student.data, ImageDataset):
        return False
    return asked_through(student) is None and _examples(student) == _examples(teacher)


def asks_in_every_step(student: Recipe) -> bool:
    """Whether a teacher works along with its student: about words, or about images that are never the same again.

    >>> from softtargets.recipes import MLP, Digits, Shift
    >>> teacher = Recipe(data=Digits(), model=MLP(), epochs=1, augmentation=(Shift(),))
    >>> student = teacher.replace({"regulariser": Distillation(teacher=teacher)})
    >>> asks_in_every_step(student), asks_in_every_step(student.replace({"regulariser.view": "stored"}))
    (True, False)
    """
    if student.teacher is None:
        return False
    return asked_through(student) is not None or not isinstance(student.data, ImageDataset)


def has_lessons(run: Run) -> bool:
    """Whether a run stored what it says of its training examples."""
    return run.has_predictions(LESSONS)


def is_taught_by(student: Recipe, run: Run) -> bool:
    """Whether the finished run of its teacher is all that a student needs: with its weights, or with its lessons."""
    return not run.is_light or (asks_for_lessons(student) and has_lessons(run))


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
    if not has_lessons(run):
        raise RunError(
            f"run {run.id} cannot teach run {student.id}: it has neither weights nor predictions for its training "
            f"examples; {advice}"
        )
    if asked_through(student) is not None:
        raise RunError(
            f"run {run.id} cannot teach run {student.id}: it has no weights, which it needs to predict augmented "
            f"images; {advice}, or give the student regulariser.view: stored"
        )
    if not asks_for_lessons(student):
        raise RunError(
            f"run {run.id} cannot teach run {student.id}: it has no weights, and its predictions are not for the "
            f"student's training examples; {advice}"
        )


def _examples(recipe: Recipe) -> object:
    """What decides which images are trained on: all of the data but how they are standardised."""
    data = recipe.data
    return replace(data, standardise="unit") if isinstance(data, ImageDataset) else data
