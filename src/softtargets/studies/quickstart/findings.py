"""What the quickstart says: the story of Müller et al. 2019 on real digits, and how far it carries."""

from __future__ import annotations

from softtargets.claims import Claim, Region, Sample, published
from softtargets.report import Column, Section, Table
from softtargets.studies.quickstart import figures
from softtargets.studies.quickstart.grid import ALPHAS
from softtargets.studies.study import Findings, Results

HARD, SMOOTHED = {"role": "net", "alpha": 0.0}, {"role": "net", "alpha": 0.1}
SAME_ALPHA_AS_PAPER = {"role": "net", "alpha": 0.05}
HARD_TEACHER, SMOOTHED_TEACHER = {"role": "teacher", "alpha": 0.0}, {"role": "teacher", "alpha": 0.1}
STUDENT_OF_HARD = {"role": "student", "alpha": 0.0, "temperature": 4.0}
STUDENT_OF_SMOOTHED = {"role": "student", "alpha": 0.1, "temperature": 1.0}


def findings(results: Results) -> Findings:
    """Tables, figures and claims."""
    return Findings(sections=_sections(results), claims=_claims(results))


def _sections(results: Results) -> tuple[Section, ...]:
    return (
        Section(
            "Accuracy and calibration",
            (
                "Small nets were trained on 200 of scikit-learn's handwritten digits with more and more label "
                "smoothing: a share alpha of each target is taken from the true digit and spread evenly over all "
                "ten. All of them fit their training set; on 500 test digits they err on about one in ten.",
                "With hard targets the nets are over-confident and a temperature above 1 repairs them. A little "
                "smoothing does much of the same without a temperature, but the dose that suits CIFAR-100 is "
                "already too much here: digits are easy, and from alpha 0.1 on the nets are under-confident, as "
                "the 2023 replication found for its nets on MNIST.",
            ),
            (figures.sweep(results), figures.reliability_diagram(results), _net_table(results)),
        ),
        Section(
            "Where the penultimate layer puts the digits",
            (
                "Each class has a template, a row of the last layer's weights. Through the templates of three "
                "classes passes a plane; projected onto it, the activations show how the net arranges its "
                "examples. Smoothing pulls the training examples of a class together; held-out digits stay "
                "spread, because they are not memorised.",
            ),
            (figures.template_planes(results),),
        ),
        Section(
            "Distillation",
            (
                "A smoothed teacher is the better classifier, and still the worse teacher: having pulled its "
                "classes together it no longer says how much one digit resembles another, and that is what a "
                "student could have learnt from it. A temperature on the hard teacher's outputs brings such "
                "resemblances out.",
            ),
            (figures.distillation(results),),
        ),
        Section(
            "What digits cannot show",
            (
                "There are 1,797 images in all. With 500 test digits the accuracy of one net is known to about "
                "1.4 points, and an ECE of 15 bins is itself inflated by one or two hundredths because most bins "
                "hold few examples; only differences between nets, seed by seed, are judged here.",
                "The paper's own figures come from other data and larger nets, so the claims below compare the "
                "direction of each effect, not its size. Translation, ImageNet and the mutual-information "
                "curves need data that does not ship with a Python package.",
            ),
        ),
    )


def _net_table(results: Results) -> Table:
    keys = ("accuracy", "nll", "ece", "temperature", "ece_scaled", "spread_train", "spread_test")
    nets = results.where(role="net")
    rows = tuple({"alpha": a} | {key: nets.sample(key, alpha=a) for key in keys} for a in ALPHAS)
    columns = (
        Column("alpha", "alpha", 2),
        Column("accuracy", "accuracy", percent=True),
        Column("nll", "NLL"),
        Column("ece", "ECE at T = 1"),
        Column("temperature", "fitted T", 2),
        Column("ece_scaled", "ECE at fitted T"),
        Column("spread_train", "cluster spread, training"),
        Column("spread_test", "cluster spread, held out"),
    )
    caption = (
        "Mean ± standard deviation over seeds, on 500 test digits. Cluster spread is the within-class deviation "
        "on the plane of three templates over the mean distance between class centres."
    )
    return Table("nets", "All nets.", columns, rows, caption)


def _tuned_alpha(results: Results) -> float:
    """The strength a user would choose: best calibrated on the validation digits."""
    nets = results.where(role="net")
    return min(ALPHAS[1:], key=lambda alpha: nets.sample("ece_validation", alpha=alpha).mean)


def _claims(results: Results) -> tuple[Claim, ...]:
    tuned = _tuned_alpha(results)
    return (
        Claim(
            "Nets trained with hard targets are over-confident: the best temperature is above 1.",
            (published("muller-2019/temperature/cifar100/hard"),),
            "fitted temperature",
            results.sample("temperature", **HARD),
            Region(low=1),
            digits=2,
        ),
        Claim(
            "Temperature scaling lowers the calibration error of hard targets.",
            (published("muller-2019/ece/cifar100/hard"), published("muller-2019/ece/cifar100/scaled")),
            "ECE with fitted T minus ECE with T = 1",
            _scaling_gain(results),
            Region(high=0),
        ),
        Claim(
            "Label smoothing of 0.05 lowers the calibration error.",
            (published("muller-2019/ece/cifar100/hard"), published("muller-2019/ece/cifar100/smoothed")),
            "ECE at alpha 0.05 minus ECE at alpha 0",
            results.difference("ece", SAME_ALPHA_AS_PAPER, HARD),
            Region(high=0),
            "The paper's alpha for CIFAR-100; digits are easier and want less.",
        ),
        Claim(
            "Label smoothing of a suitable strength lowers the calibration error.",
            (published("muller-2019/ece/imagenet/hard"), published("muller-2019/ece/imagenet/smoothed")),
            f"ECE at alpha {tuned:g} minus ECE at alpha 0",
            results.difference("ece", {"role": "net", "alpha": tuned}, HARD),
            Region(high=0),
            "The alpha with the lowest ECE on the validation digits, judged on the test digits.",
        ),
        Claim(
            "Label smoothing costs no accuracy worth mentioning.",
            (
                published("muller-2019/accuracy/cifar10/hard"),
                published("muller-2019/accuracy/cifar10/smoothed"),
            ),
            "accuracy at alpha 0.1 minus accuracy at alpha 0",
            results.difference("accuracy", SMOOTHED, HARD),
            Region(low=-0.01),
            "“Worth mentioning” is one point of accuracy.",
        ),
        Claim(
            "Label smoothing pulls training examples of a class into tighter clusters.",
            (published("muller-2019/clusters/cifar10"),),
            "cluster spread at alpha 0.1 minus at alpha 0, training set",
            results.difference("spread_train", SMOOTHED, HARD),
            Region(high=0),
        ),
        Claim(
            "A smoothed teacher classifies better than one with hard targets.",
            (
                published("muller-2019/teacher-error/mnist/hard"),
                published("muller-2019/teacher-error/mnist/smoothed"),
            ),
            "teacher accuracy at alpha 0.1 minus at alpha 0",
            results.difference("accuracy", SMOOTHED_TEACHER, HARD_TEACHER),
            Region(low=0),
        ),
        Claim(
            "The student of the smoothed teacher is worse than the student of the hard one.",
            (
                published("muller-2019/student-error/mnist/hard"),
                published("muller-2019/student-error/mnist/smoothed"),
            ),
            "accuracy of the smoothed teacher's student (T = 1) minus the hard teacher's (T = 4)",
            results.difference("accuracy", STUDENT_OF_SMOOTHED, STUDENT_OF_HARD),
            Region(high=0),
            "Temperatures fixed beforehand: the paper's 1 for smoothed teachers, and 4 from the middle of its list.",
        ),
    )


def _scaling_gain(results: Results) -> Sample:
    return results.sample("ece_scaled", **HARD).minus(results.sample("ece", **HARD))
