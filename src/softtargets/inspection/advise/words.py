"""The advice in plain words: a verdict, what to beware of, and what theory does not say."""

from __future__ import annotations

import math

from softtargets.inspection.advise.finding import USUAL, Advice
from softtargets.inspection.advise.uniformity import FAR
from softtargets.inspection.shared.numbers import Estimate, count, estimated, number, percent
from softtargets.report import Tone, Verdict

# So few wrong labels cannot be told from none: the share of right ones was found within 0.01 in simulations, where
# everything that the estimate assumes did hold.
NEGLIGIBLE = 0.02

JUDGED = {"clean": "clean test labels", "noisy": "test labels as noisy as these"}


def verdict_on(found: Advice) -> Verdict:
    """The advice in a few sentences."""
    sentences = [_noise(found)]
    if found.is_memorised:
        sentences.insert(0, _memorised(found))
    elif not found.is_learnable:
        sentences.append(
            "A target that owns up to so much noise says nothing about the class: repair the labels, or leave out "
            "their source, before any smoothing."
        )
    else:
        sentences += _advised(found)
    return Verdict(*_headline(found), tuple(sentences))


def _advised(found: Advice) -> list[str]:
    told = [] if found.purpose == "classify" else [PURPOSE_WARNINGS[found.purpose]]
    told.append(_recommended(found))
    if found.recommends:
        told.append(_losses(found))
    if not found.uniformity.is_uniform:
        shape = shape_words(found)
        told.append(f"The noise is not uniform: {shape} A matrix fits it better than one number, see below.")
    if found.estimate.warnings:
        told.append(
            "The estimate itself warns, see below: take it for a hint, and check some labels by hand."
        )
    return [*told, calibrating(found)]


def is_negligible(found: Advice) -> bool:
    """Whether there are too few wrong labels to tell them from mistakes of the model."""
    return 1 - found.clean_rate.value < NEGLIGIBLE


def _headline(found: Advice) -> tuple[Tone, str]:
    if found.is_memorised:
        return "bad", "These predictions look learned by heart: they cannot show wrong labels"
    if not found.is_learnable:
        return "bad", "Labels are right no more often than chance: smoothing cannot help"
    if found.purpose != "classify":
        what = {"teacher": "A teacher", "transfer": "To be transferred from"}[found.purpose]
        return "care", f"{what}: train it without label smoothing"
    tone: Tone = "care" if found.estimate.warnings else "good"
    if is_negligible(found):
        return tone, "Hardly any label is wrong: noise asks for no smoothing"
    wrong = 1 - found.clean_rate.value
    share = percent(wrong, 0 if wrong >= 0.1 else 1)
    headline = f"Smooth with alpha up to {found.alpha_all.value:.2f}: about {share} of labels are wrong"
    return tone if found.uniformity.is_uniform else "care", headline


def _noise(found: Advice) -> str:
    right = found.clean_rate
    wrong = estimated(Estimate(1 - right.value, 1 - right.high, 1 - right.low))
    few = " So few can hardly be told from mistakes of the model." if is_negligible(found) else ""
    return f"An estimated {wrong} of the labels are wrong (95 % interval in brackets).{few}"


def _memorised(found: Advice) -> str:
    return (
        f"The model agrees with {percent(found.accuracy, 2)} of the labels. It was probably trained on these examples, "
        "and a net that has learned its labels by heart makes all of them look right. Predict each example with a "
        "model that was trained on others: five folds will do. Nothing below is to be believed until then."
    )


def _recommended(found: Advice) -> str:
    alpha = found.alpha_all
    value = f"alpha = {estimated(alpha, 3, share=False)}"
    others = f"{number(found.alpha_others.value, 3)} if it is shared among the other classes only"
    what = f"theory recommends {value}, shared among all classes as in PyTorch; {others}."
    if not found.recommends:
        return f"Were it not for that: for {JUDGED[found.test_labels]} {what}"
    return (
        f"For {JUDGED[found.test_labels]} {what} It is the most that noise asks for, by a net that learns every label "
        "by heart; one that does not, since it is stopped early or sees augmented examples, needs less, down to none. "
        f"Try {_tries(alpha.value)} on examples held out."
    )


def _tries(alpha: float) -> str:
    digits = 2 if alpha >= 0.02 else 3
    return f"0, {alpha / 2:.{digits}f} and {alpha:.{digits}f}"


def _losses(found: Advice) -> str:
    best, usual, none = (found.expected[name] for name in ("recommended", "usual", "none"))
    without = f"without any {number(none.by_heart.value)}"
    if math.isinf(none.by_heart.value):
        without = "without any it grows without end, as a net becomes sure of wrong labels"
    return (
        f"Learned by heart, the expected test loss is {number(best.by_heart.value)} nats with it, "
        f"{number(usual.by_heart.value)} with the usual alpha = {USUAL}, and {without}. A net that learns no single "
        f"label by heart would have {number(best.averaged.value)} with it and {number(none.averaged.value)} without."
    )


def calibrating(found: Advice) -> str:
    """Whether to calibrate afterwards: always, on labels of the kind that will judge."""
    kind = (
        "with clean labels (noisy ones would make it less sure than it should be)"
        if found.test_labels == "clean"
        else "with labels as noisy as those it will be judged by"
    )
    return (
        f"Calibrate afterwards, whatever you choose: fit a temperature to examples held out, {kind}. "
        "softtargets calibrate HELD_OUT.npz does it, and so does softtargets.calibration.fit_temperature."
    )


# What smoothing does to a teacher, and to a net that others are transferred from.
PURPOSE_WARNINGS = {
    "teacher": (
        "Teachers trained with label smoothing produce worse students, even where they are more accurate themselves "
        "(Müller et al. 2019, section 4: a student on MNIST with 0.91 % errors instead of 0.74 %). Smoothing draws "
        "each class together and erases what an example resembles, which is what a student learns from. Train the "
        "teacher on hard labels, with forward correction if many are wrong (below), and soften its outputs by a "
        "temperature when distilling."
    ),
    "transfer": (
        "Label smoothing impairs transfer (Kornblith et al. 2018, as reported by Müller et al. 2019, section 5): it "
        "erases differences within classes that another task may need. Train the source on hard labels, with forward "
        "correction if many are wrong (below), and smooth, if at all, when fine-tuning on the final task."
    ),
}


def shape_words(found: Advice) -> str:
    """The entry of T that contradicts uniform noise most, in words."""
    shape, called = found.uniformity, found.understood.called
    what = f"{called(shape.clean)} is labelled {called(shape.label)}"
    if shape.clean == shape.label:
        what = f"labels of {called(shape.clean)} stay right"
    return f"{what} in {estimated(shape.share)} of cases, where uniform noise would make it {percent(shape.expected)}."


def uniformity_words(found: Advice) -> str:
    """Whether one number describes the noise, and how that was tested."""
    shape = found.uniformity
    test = (
        "Tested by comparing each entry of the matrix, its interval widened so that all of them hold together with "
        "95 %, with what uniform noise of the same rate has there; and rows must differ by more than "
        f"{percent(FAR, 0)} on the average, since they are hardly known better. They differ by "
        f"{percent(shape.distance)}."
    )
    if shape.is_uniform and not shape.contradicted:
        return f"Nothing speaks against uniform noise, so that one number is enough. {test}"
    if shape.is_uniform:
        return f"Noise is close enough to uniform for one number ({shape_words(found)[:-1]}). {test}"
    return f"Noise is not uniform: {shape_words(found)} {test}"


def warnings_on(found: Advice) -> list[str]:
    """What a reader must know before believing the numbers."""
    told = [f"{one[0].upper()}{one[1:]}." for one in found.estimate.warnings]
    if found.examples < found.understood.examples and not found.trained:
        told.append(
            f"Estimated from a sample of {count(found.examples, 'example')} of {found.understood.examples:,}, chosen "
            "by a hash of their place; the same file gives the same sample."
        )
    if found.recommends and not is_negligible(found):
        told.append(REJECTING)
    return told


REJECTING = (
    "If you reject uncertain cases or hand them to a person: a network trained with label smoothing tells its mistakes "
    "worse by its confidence (Xia et al., ICLR 2025), so train without it or choose them by normalised logits, which "
    "softtargets calibrate tries."
)


NOT_SAID = (
    "Theory is about the test loss. The smoothing that is best for accuracy is another one: Chen et al. found a wide "
    "discrepancy on MNIST (figure 8), and have no theory of it. If accuracy is what you are judged by, choose on "
    "examples held out.",
    "The error may have two minima over p (figure 10): on MNIST with a clean rate of 85 % or less, the lowest was at "
    "small p, no smoothing was another, and weak smoothing in between (p of 0.95 or 0.9) cost up to 8 % of accuracy "
    "compared to none (figure 11). A search in small steps from 0 does not find the other side.",
    "It takes a net that learns every label by heart. With early stopping smoothing may not be needed at all "
    "(appendix A.1, figure 9).",
    "Noise is not the only reason to smooth. On clean labels smoothing can improve accuracy and calibration (Müller et "
    "al. 2019, sections 1 and 3); that is not in this theory, and a recommendation near 0 does not contradict it.",
)

FAILURES = (
    "Predictions must be out of fold: from models that were not trained on the example. A net that has learned its "
    "labels by heart makes them all look right, and an estimate cannot tell, unless nearly all are predicted.",
    "Noise must depend on the class only. If hard examples are mislabelled more often, the matrix is at best an "
    "average, and hard but rightly labelled examples may be taken for wrong ones.",
    "In each class the right label must be the most frequent one, and the model must tell classes apart: where it is "
    "right in fewer than three quarters of cases, the assumed shape of its predictions decides instead of the data.",
    "The interval is for the choice of examples only. What a method assumes and does not hold is not in it; compare "
    "the methods in the table.",
)

HEART = (
    "The theory takes a net that has learned every label by heart, so that each wrong label costs what the target "
    "denies the right one. Without smoothing that is everything, hence the infinite loss: no net gets there, but the "
    "surer it grows of wrong labels, the worse its loss. The other extreme has learned no label by heart and says of "
    "each class what its targets are on the average; to such a net smoothing does no good."
)
