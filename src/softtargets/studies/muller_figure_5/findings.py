"""What the study says: the pilot, the figure, tables, and the claims that they test."""

from __future__ import annotations

from softtargets.claims import Claim, judge
from softtargets.report import Section, Table
from softtargets.studies.muller_figure_5 import figures
from softtargets.studies.muller_figure_5.claims import MEASURE, claims, protocol_of
from softtargets.studies.muller_figure_5.grid import PILOT_SEEDS, PROTOCOLS, VIEW, VIEWS, Protocol
from softtargets.studies.muller_images import TRAINED
from softtargets.studies.results import Results
from softtargets.studies.study import Findings
from softtargets.studies.words import SMALL_DECIDES_NOTHING, answered, signed

# Points that another view must gain on stored logits in the pilot to be chosen: it makes training many times slower.
WORTH_IT = 0.5


def findings(results: Results) -> Findings:
    """Figure, tables and claims."""
    made = claims(results)
    return Findings(_sections(results, protocol_of(results)), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does a smoothed teacher teach worse?"""
    if not made:
        return SMALL_DECIDES_NOTHING
    *_, last = judge(made)
    return answered(
        last.verdict,
        "Yes: students of smoothed teachers are less accurate than students of a teacher with hard targets.",
        "No: students of smoothed teachers are at least as accurate as students of a teacher with hard targets.",
        nothing="No: smoothed teachers and the teacher with hard targets lead to students that are equally good.",
        whether="a smoothed teacher teaches worse",
    )


def _sections(results: Results, protocol: Protocol) -> tuple[Section, ...]:
    teacher, student = protocol.teacher, protocol.student
    if results.outcomes:  # with what a user has set
        teacher, student = (
            next((o.trial.recipe for o in results.where(role=role).outcomes), base)
            for role, base in (("teacher", teacher), ("baseline", student))
        )
    return (
        Section.of(
            "Four curves on one axis",
            f"Teachers are trained for {teacher.epochs} epochs and students for {student.epochs}, with the same "
            "procedure whatever their targets are. The mass that targets put on wrong classes can be raised in two "
            "ways: by a temperature on the predictions of a teacher with hard targets (M3), or by smoothing the "
            "labels that the teacher learns from (M4). Teachers (M1) and students alone (M2), trained on smoothed "
            "labels, stand beside them. Students learn from their teacher's probabilities alone, at a temperature of "
            "1 of their own.",
            figures.distillation(results, protocol),
            _alpha_table(results, protocol),
            _temperature_table(results, protocol),
        ),
        Section.of(
            "What the teacher is asked about",
            "AlexNet learns from crops of 24 x 24 with changed brightness and contrast, ResNet-56 from padded crops of "
            "32 x 32. The papers do not say which of these a teacher is asked about. It may be shown the student's "
            "image, which is not what it was trained on; a view of its own of the same image, new in every epoch; or "
            "the image without augmentation, once, so that its logits can be stored.",
            f"The curves above use {figures.NAMES[VIEW]}. The rule was fixed before the pilot was trained: the "
            "view whose students are best, on average over both teachers, if it gains at least "
            f"{WORTH_IT:g} points on stored logits, and stored logits otherwise, since they cost nothing. "
            + _chosen(results, protocol),
            figures.pilot(results, protocol),
        ),
        Section.of(
            "What differs from the papers",
            *((_SMALL,) if protocol is PROTOCOLS["small"] else TRAINED),
            "Accuracies are those of 10,000 held-out training images after the last epoch, as in Müller et al., who "
            "show the lowest, mean and highest of 5 seeds. The replication trains on all 50,000 images, measures on "
            "the test set, cuts crops of 24 x 24 for both networks, and asks the teacher about the student's image.",
            "Gamma is computed on the training images without augmentation; the replication computes it on augmented "
            "ones. The paper's temperatures are 1, 2, 3, 4, 8, 12 and 16, the replication's the same without 3.",
            "The replication's published code saves the teachers of alpha 0.45, 0.6 and 0.75 under the names of those "
            "of 0, 0.15 and 0.3, so its curves M3 and M4 may be of other teachers than it says.",
            f"Students of the pilot are trained for {protocol.pilot_epochs} epochs with seeds "
            f"{PILOT_SEEDS[0]} and {PILOT_SEEDS[1]}; their teachers are those of the first seed of the curves.",
        ),
    )


_SMALL = (
    "This is the small size: fully connected networks on 2,000 digits of MNIST, shifted by up to two pixels for "
    "the teacher and one for the student. It shows how the figure is made; the papers' statements are about "
    "ResNet-56 and AlexNet on CIFAR-10, the full size."
)


def _chosen(results: Results, protocol: Protocol) -> str:
    """What the rule makes of the pilot."""
    cells = [{"role": "pilot", "alpha": alpha, "temperature": t} for alpha, t in protocol.pilot]
    gains = {
        view: results.gain(
            MEASURE, [({**c, "view": view}, {**c, "view": "stored"}) for c in cells], scale=100
        )
        for view in VIEWS
    }
    if not all(sample.n for sample in gains.values()):
        return "The pilot has not been run yet."
    ahead = max(gains, key=lambda view: gains[view].mean)
    picked = ahead if gains[ahead].mean >= WORTH_IT else "stored"
    said = " and ".join(
        f"{signed(gains[view].mean)} points with {figures.NAMES[view]}" for view in VIEWS if view != "stored"
    )
    verdict = (
        "So the rule chooses what the curves use."
        if picked == VIEW
        else f"So the rule would choose {figures.NAMES[picked]}, and the curves above are not those of its choice."
    )
    return f"In the pilot students gain {said} on stored logits. {verdict}"


def _alpha_table(results: Results, protocol: Protocol) -> Table:
    rows = (
        {
            "alpha": alpha,
            "teacher": results.sample(MEASURE, role="teacher", alpha=alpha),
            "alone": results.sample(MEASURE, role="baseline", alpha=alpha),
            "student": results.sample(MEASURE, role="student", alpha=alpha, temperature=1.0),
            "gamma": results.sample("gamma", role="student", alpha=alpha, temperature=1.0),
        }
        for alpha in protocol.alphas
    )
    return Table.of(
        "by_alpha",
        "Accuracy on held-out images over the strength of smoothing.",
        "alpha .2f | teacher .2%: M1: teacher | alone .2%: M2: student alone | "
        "student .2%: M4: student of that teacher, T = 1 | gamma .4f: gamma of that teacher's targets",
        rows,
        "Mean ± standard deviation over seeds.",
    )


def _temperature_table(results: Results, protocol: Protocol) -> Table:
    _, _, of_hard, _ = protocol.scenarios
    rows = (
        {"temperature": labels["temperature"]}
        | {
            "student": results.sample(MEASURE, **labels),
            "test": results.sample("accuracy", **labels),
            "gamma": results.sample("gamma", **labels),
        }
        for labels in of_hard.points
    )
    return Table.of(
        "by_temperature",
        "Students of the hard teacher over its temperature.",
        "temperature .0f | student .2%: M3: accuracy, held-out images | test .2%: accuracy, test set | "
        "gamma .4f: gamma of its targets",
        rows,
        "Mean ± standard deviation over seeds.",
    )
