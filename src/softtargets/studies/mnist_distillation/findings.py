"""What the distillation study says: the table, the figure, and the claims that they test."""

from __future__ import annotations

from softtargets.claims import published
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


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    return Findings(sections=_sections(results), claims=claims(results))


def _sections(results: Results) -> tuple[Section, ...]:
    one = results.first(role="teacher")
    recipe, examples = one.trial.recipe, one.run.provenance["examples"]
    return (
        Section.of(
            "Two teachers and a student of each",
            f"Teachers have two hidden layers of 1200 units and are trained on {examples['train']:,} digits, shifted "
            "by up to two pixels. Students have layers of 800 units and are trained on the digits without shifts. A "
            "student's loss is 0.4 times the cross-entropy with the labels plus 0.6 times half the squared difference "
            "between its logits and its teacher's.",
            "Müller et al. report that the teacher with label smoothing is more accurate than the one with dropout, "
            "and that its student is less accurate.",
            _error_table(results),
        ),
        Section.of(
            "Four curves on one axis",
            "There are two ways to put more mass on the wrong digits of a student's targets: a temperature on the "
            "outputs of a hard teacher, or label smoothing of the teacher. The index gamma puts both on one axis, "
            "together with large (M1) and small (M2) models that are trained on smoothed labels. Here students learn "
            "from the teacher's probabilities alone, at a temperature of 1 of their own, so that only the targets "
            "differ.",
            "M1 at alpha 0 has no dropout here, so that only one thing varies along each curve. The replication's "
            "teacher at alpha 0 has dropout, like the one in the table above.",
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
            "matches the student's logits with the teacher's probabilities. Its students solve another problem, and "
            "its two rows of students can be compared with ours in direction only. In the table the norm of our "
            "students' gradients is clipped at 1. Without that, at the papers' learning rate of 1, the squared "
            "differences to a hard teacher's logits make the weights overflow within the first steps.",
            "In the figure the soft part of the loss is the cross-entropy with softened probabilities, which is "
            "what Müller et al. use for their figure 5 (from ResNet-56 to AlexNet on CIFAR-10). The replication uses "
            "the mean squared error for its figure 7, which is about these models. gamma is computed on the training "
            "digits without shifts, as in the replication's code.",
            "Teachers are trained on shifted digits and students are not, as in the papers. A student with a teacher "
            "may therefore be better than a student alone because of the shifts, and not because of the soft targets. "
            "This study does not separate the two.",
            "There is no validation set, so “at its best” in the figure means best on the "
            f"{examples['test']:,} test digits, which makes every curve look slightly better than it is. Claims about "
            "the best point of a curve choose it with the first seed and judge it on the others. One test digit is "
            f"{100 / examples['test']:.2g} points of error; differences are taken between runs of the same seed.",
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
        "net: model | paper .2%: Müller et al. 2019 | replication .2%: replication 2023 | ours .2%",
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
