"""What the distillation study says: the table, the figure, and the claims they bear out or do not."""

from __future__ import annotations

from softtargets.claims import Claim, Published, Sample, above, below, published, sources
from softtargets.report import Section, Table
from softtargets.studies.mnist_distillation import figures
from softtargets.studies.mnist_distillation.curves import BASELINES, OF_HARD, OF_SMOOTHED, best
from softtargets.studies.mnist_distillation.grid import ALPHAS, TABLE_ALPHAS
from softtargets.studies.results import Results, Row, over
from softtargets.studies.study import Findings
from softtargets.studies.words import percent

HARD_TEACHER, SMOOTHED_TEACHER = over(role=["table teacher"], alpha=TABLE_ALPHAS)
STUDENT_OF_HARD, STUDENT_OF_SMOOTHED = over(role=["table student"], alpha=TABLE_ALPHAS)

# What is asked of the teachers' test errors, in %.
HIGHEST_HARD, HIGHEST_SMOOTHED = 0.80, 0.68


def findings(results: Results) -> Findings:
    """Table, figure and claims."""
    return Findings(sections=_sections(results), claims=_claims(results))


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
            "Müller et al. came upon their question this way: the teacher with label smoothing is better than the "
            "one with dropout, and its student is worse.",
            _error_table(results),
        ),
        Section.of(
            "Four curves on one axis",
            "The mass that a student's targets put on wrong digits can be raised in two ways: by a temperature on "
            "what a hard teacher says, or by smoothing the labels the teacher learns from. Measured by the index "
            "gamma both lie on one axis, with nets trained on smoothed labels, large (M1) and small (M2), beside "
            "them. Here students learn from the teacher's probabilities alone, at a temperature of 1 of their own, "
            "so that the targets are all that differs.",
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
            "and its two rows of students can be compared with ours in direction only. The norm of our students' "
            "gradients is clipped at 1 in the table: without that, at the papers' learning rate of 1, the squared "
            "differences to a hard teacher's logits make the weights overflow within the first steps.",
            "In the figure the soft part of the loss is the cross-entropy with softened probabilities, which is "
            "what Müller et al. use for their figure 5 (from ResNet-56 to AlexNet on CIFAR-10); the replication's "
            "figure 7 for these nets has the mean squared error there. gamma is computed on the training digits "
            "as they are, as in the replication's code.",
            f"All training digits are trained on, so “at its best” means best on the {examples['test']:,} test digits, "
            f"which flatters every curve a little. One test digit is {100 / examples['test']:.2g} points of error; so "
            "differences are taken seed by seed, and judged over all seeds.",
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
        "net | paper .2%: Müller et al. 2019 | replication .2%: replication 2023 | ours .2%",
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


def _claims(results: Results) -> tuple[Claim, ...]:
    alone = best(results, BASELINES.points)
    of_hard = best(results, OF_HARD.points)
    of_smoothed = best(results, OF_SMOOTHED.points[1:])

    def error(labels: Row) -> str:
        return percent(results.sample("error", **labels).mean, 2)

    def both(first: Row, second: Row) -> str:
        return f"{error(first)}, then {error(second)} error"

    def difference(this: Row, that: Row) -> Sample:
        return _in_percent(results.difference("error", this, that))

    return (
        Claim(
            "A teacher with label smoothing of 0.1 errs less than one with hard targets and dropout.",
            _both_papers("teacher-error/mnist/hard", "teacher-error/mnist/smoothed"),
            "error of the smoothed teacher minus the dropout teacher's, points",
            *below(0, difference(SMOOTHED_TEACHER, HARD_TEACHER)),
            both(HARD_TEACHER, SMOOTHED_TEACHER),
        ),
        Claim(
            "The student of the smoothed teacher errs more than the student of the dropout teacher.",
            _both_papers("student-error/mnist/hard", "student-error/mnist/smoothed"),
            "error of the smoothed teacher's student minus the dropout teacher's student, points",
            *above(0, difference(STUDENT_OF_SMOOTHED, STUDENT_OF_HARD)),
            both(STUDENT_OF_HARD, STUDENT_OF_SMOOTHED),
            "Logits are matched; the replication matches logits with probabilities.",
        ),
        Claim(
            "Students of a hard teacher, at the best temperature, beat the same net without a teacher, at the best "
            "alpha.",
            _both_papers("distillation/hard"),
            f"error at T = {of_hard['temperature']:g} minus error alone at alpha {alone['alpha']:g}, points",
            *below(0, difference(of_hard, alone)),
            f"{error(alone)} alone, then {error(of_hard)} with the teacher",
            "Both chosen by their mean error on the test digits.",
        ),
        Claim(
            "Students of smoothed teachers, at the best alpha, are worse than students of a hard teacher at the best "
            "temperature.",
            _both_papers("distillation/smoothed"),
            f"error at alpha {of_smoothed['alpha']:g} minus error at T = {of_hard['temperature']:g}, points",
            *above(0, difference(of_smoothed, of_hard)),
            f"{error(of_hard)} of the hard teacher, then {error(of_smoothed)}",
            "Both chosen by their mean error on the test digits; alpha above 0.",
        ),
        Claim(
            f"The teacher with label smoothing of 0.1 errs on at most {HIGHEST_SMOOTHED:.2f} %.",
            _both_papers("teacher-error/mnist/smoothed"),
            "error of the smoothed teacher, %",
            *below(HIGHEST_SMOOTHED, _in_percent(results.sample("error", **SMOOTHED_TEACHER))),
            error(SMOOTHED_TEACHER),
            "Between the paper's figure and the replication's.",
        ),
        Claim(
            f"The teacher with hard targets and dropout errs on at most {HIGHEST_HARD:.2f} %.",
            _both_papers("teacher-error/mnist/hard"),
            "error of the dropout teacher, %",
            *below(HIGHEST_HARD, _in_percent(results.sample("error", **HARD_TEACHER))),
            error(HARD_TEACHER),
            "Between the paper's figure and the replication's.",
        ),
    )


def _both_papers(*keys: str) -> tuple[Published, ...]:
    return sources("muller-2019", *keys) + sources("wagner-2023", *keys)


def _in_percent(sample: Sample) -> Sample:
    return Sample.of(100 * value for value in sample.values)
