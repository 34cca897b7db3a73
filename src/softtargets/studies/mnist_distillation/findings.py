"""What the distillation study says: the table, the figure, and the claims that they test."""

from __future__ import annotations

from softtargets.claims import Claim, judge, published
from softtargets.report import Section, Table
from softtargets.studies.mnist_distillation import figures
from softtargets.studies.mnist_distillation.claims import (
    HARD_TEACHER,
    SMOOTHED_TEACHER,
    STUDENT_OF_HARD,
    STUDENT_OF_SMOOTHED,
    claims,
)
from softtargets.studies.mnist_distillation.curves import OF_HARD
from softtargets.studies.mnist_distillation.grid import ALPHAS
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import answered


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does a smoothed teacher teach worse?"""
    teachers, students = (one.verdict for one in judge(made)[:2])
    but = ", although its teacher makes fewer" if teachers == "reproduced" else ""
    return answered(
        students,
        f"Yes: the student of the smoothed teacher makes more errors than the student of the hard teacher{but}.",
        "No: the student of the smoothed teacher makes no more errors than the student of the hard teacher.",
        nothing="No: both teachers lead to students that are equally good.",
        whether="a smoothed teacher teaches worse",
    )


def _sections(results: Results) -> tuple[Section, ...]:
    one = results.first(role="teacher")
    recipe, examples = one.trial.recipe, one.run.provenance["examples"]
    return (
        Section.of(
            "Two teachers and a student of each",
            f"Teachers have two hidden layers of 1200 units and see {examples['train']:,} training digits, shifted "
            "by up to two pixels; students have 800 units a layer and see the digits as they are. A student's "
            "loss is 0.4 times the cross-entropy with the labels plus 0.6 times half the squared difference "
            "between its logits and its teacher's.",
            "In both papers the teacher with label smoothing is better than the one with dropout, and its student is "
            "worse. The claims above say which of this our networks confirm.",
            _error_table(results),
        ),
        Section.of(
            "Four curves on one axis",
            "The mass that a student's targets put on wrong digits can be raised in two ways: by a temperature on "
            "the predictions of a hard teacher, or by smoothing the labels the teacher learns from. Measured by the "
            "index gamma both lie on one axis, with networks trained on smoothed labels, large (M1) and small (M2), "
            "beside them. Here students learn from the teacher's probabilities alone, at a temperature of 1 of their "
            "own, so that the targets are all that differs.",
            "M1 at alpha 0 has no dropout here, so that along each curve only one thing varies; the replication's "
            "teacher at alpha 0 has dropout, as the one in the table above.",
            figures.distillation(results),
            _alpha_table(results),
            _temperature_table(results),
        ),
        Section.of(
            "What differs from the papers",
            f"Mini-batches are of {recipe.batch} examples (the replication: 512; Müller et al. do not say), and "
            f"matrix products are computed in {recipe.precision}. Initial weights have a standard deviation of "
            "0.03, as in the replication; Müller et al. print a variance of 0.03.",
            "In the table logits are matched with logits, as Müller et al. describe it. The replication's code "
            "matches the student's logits with the teacher's probabilities, so its students solve another problem "
            "and its two rows of students can be compared with ours in direction only.",
            "In the table, the gradients of our students are clipped to a norm of 1, which neither paper does. Without "
            "clipping, at the papers' learning rate of 1, the squared differences to a hard teacher's logits make the "
            "weights overflow within the first steps. Clipping may act more on students of the hard teacher, whose "
            "logits are larger; how much that changes their errors was not measured.",
            "The teacher with hard targets has dropout of 0.5 on its hidden layers only. That is the replication's "
            "choice; Müller et al. say “dropout” and no more.",
            "In the figure the soft part of the loss is the cross-entropy with softened probabilities, which is "
            "what Müller et al. use for their figure 5 (from ResNet-56 to AlexNet on CIFAR-10); the replication's "
            "figure 7 for these networks has the mean squared error there. Gamma is computed on the training digits "
            "as they are, as in the replication's code.",
            "Teachers see shifted digits and students do not, as in the papers. So what a student has from its "
            "teacher, and a student alone has not, may be the shifts. Where students with a teacher are compared with "
            "students alone, this study cannot separate the two.",
            "All training digits are trained on, so “at its best” in the figure means best on the "
            f"{examples['test']:,} test digits, which flatters every curve a little. Claims about the best point of a "
            "curve choose it with the first seed and judge it on the others. One test digit is "
            f"{100 / examples['test']:.2g} points of error; differences are taken seed by seed.",
        ),
    )


def _error_table(results: Results) -> Table:
    names = {
        "teacher, hard targets and dropout": ("teacher-error/mnist/hard", HARD_TEACHER),
        "teacher, label smoothing 0.1": ("teacher-error/mnist/smoothed", SMOOTHED_TEACHER),
        "student of the teacher with hard targets": ("student-error/mnist/hard", STUDENT_OF_HARD),
        "student of the teacher with smoothing": ("student-error/mnist/smoothed", STUDENT_OF_SMOOTHED),
    }
    rows = (
        {
            "net": name,
            "paper": published(f"muller-2019/{key}").value,
            "replication": published(f"wagner-2023/{key}").value,
            "ours": results.sample("error", **labels),
        }
        for name, (key, labels) in names.items()
    )
    return Table.of(
        "errors",
        "Test error on MNIST.",
        "net: network | paper .2%: Müller et al. 2019 | replication .2%: replication 2023 | ours .2%",
        rows,
        "Ours: mean ± standard deviation over seeds, after the last epoch.",
    )


def _alpha_table(results: Results) -> Table:
    rows = (
        {
            "alpha": alpha,
            "teacher": results.sample("error", role="teacher", alpha=alpha),
            "alone": results.sample("error", role="baseline", alpha=alpha),
            "gamma": results.sample("gamma", role="student", alpha=alpha, temperature=1.0),
            "student": results.sample("error", role="student", alpha=alpha, temperature=1.0),
        }
        for alpha in ALPHAS
    )
    return Table.of(
        "by_alpha",
        "Test error over the strength of smoothing.",
        "alpha .2f | teacher .2%: M1: teacher | alone .2%: M2: student alone | "
        "student .2%: M4: student of that teacher, T = 1 | gamma .4f: gamma of that teacher's targets",
        rows,
        "Mean ± standard deviation over seeds.",
    )


def _temperature_table(results: Results) -> Table:
    rows = (
        {
            "temperature": labels["temperature"],
            "student": results.sample("error", **labels),
            "gamma": results.sample("gamma", **labels),
        }
        for labels in OF_HARD.points
    )
    return Table.of(
        "by_temperature",
        "Test error over the teacher's temperature.",
        "temperature .0f | student .2%: M3: student of the hard teacher | gamma .4f: gamma of its targets",
        rows,
        "Mean ± standard deviation over seeds.",
    )
