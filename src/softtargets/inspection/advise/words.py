"""The advice in plain words: a verdict, what to beware of, and what theory does not say."""

from __future__ import annotations

import math
import re

from softtargets.inspection.advise.finding import USUAL, Advice, Outlook
from softtargets.inspection.advise.uniformity import FAR
from softtargets.inspection.shared.numbers import Estimate, between, count, number, percent
from softtargets.report import Tone, Verdict

JUDGED = {"clean": "clean test labels", "noisy": "test labels as noisy as these"}
CERTAIN = 0.9995  # a bound that says nothing
LOOSE = 0.05  # share of wrong labels that would be worth knowing of
WIDE = 0.1  # width of an interval from which its ends say more than its estimate
STRONGER = "A stronger model would tell more."


DIFFICULT = (
    " The estimate is for labels that are wrong at random. If people gave wrong labels mostly to difficult examples, "
    "more are wrong, up to the end of the interval."
)


def verdict_on(found: Outlook) -> Verdict:
    """The advice in a few sentences."""
    if not isinstance(found, Advice):
        return Verdict("care", "We cannot tell how many labels are wrong", tuple(_unknown(found)))
    return Verdict(*_headline(found), (_noise(found), *_cautions(found), *_advised(found)))


def _unknown(found: Outlook) -> list[str]:
    """A bound, why there is no more, and what would help."""
    reason = re.sub(r"(?<=\d)%", " %", found.assessment.reason)
    return [bound_words(found), reason, remedy(found), suspects_words(found)]


def bound_words(found: Outlook) -> str:
    """How many labels are wrong at most; rounded up, so that it stays a bound."""
    if found.bound >= CERTAIN:
        return "These predictions do not even give an upper bound."
    return f"At most {rounded_up(found.bound)} of the labels are wrong."


def rounded_up(bound: float) -> str:
    """A bound in per cent that stays one.

    >>> rounded_up(0.791), rounded_up(0.0312)
    ('80 %', '3.2 %')
    """
    digits = 0 if bound >= 0.1 else 1
    return percent(math.ceil(round(bound * 10 ** (2 + digits), 6)) / 10 ** (2 + digits), digits)


def remedy(found: Outlook) -> str:
    """What would make it known how many labels are wrong."""
    if found.trained:
        return (
            f"{STRONGER} Train longer (--epochs), on more examples (--limit) or on a GPU, or give the out-of-fold "
            "probabilities of your own best model: softtargets advise PREDICTIONS.npz."
        )
    return (
        f"{STRONGER} Train it on four fifths of the examples, predict the remaining fifth, and repeat that five times, "
        "so that each example is predicted by a model that was not trained on it (softtargets.noise.out_of_fold)."
    )


def steps(found: Outlook) -> tuple[str, ...]:
    """How to get out-of-fold probabilities of a stronger model."""
    ours = (
        "The models trained here are small, so that they take minutes. Set --epochs, --limit and --device to train "
        "them longer, on more examples or on a GPU."
    )
    own = (
        "softtargets.noise.out_of_fold calls your own training once for each fold and puts the predictions together: "
        "give it a function that trains on some examples and returns the probabilities of the others. Save them with "
        "the labels by numpy.savez, as probs and labels, and run softtargets advise on that file."
    )
    checked = (
        "Or check a hundred randomly chosen labels by hand: the share of wrong ones estimates the error rate to "
        "within about 10 points, without any model."
    )
    return (ours, own, checked) if found.trained else (own, checked)


def suspects_words(found: Outlook) -> str:
    """How long the list of suspicious labels is."""
    if not len(found.suspects):
        return "The model predicts every label as it was given, so no label is suspicious."
    caution = "" if isinstance(found, Advice) else " Many of these may be errors of the model."
    return (
        f"The model predicts another label for {count(len(found.suspects), 'example')}.{caution} Check them by hand, "
        f"the most suspicious first: the page shows the first ones, and {found.suspects.file} lists them all."
    )


def _headline(found: Advice) -> tuple[Tone, str]:
    if found.purpose != "classify":
        what = {"teacher": "Train a teacher", "transfer": "Train a model for transfer"}[found.purpose]
        return "care", f"{what} without label smoothing"
    tone: Tone = "care" if found.estimate.warnings else "good"
    if found.is_negligible and found.error_rate.high > LOOSE:
        return "care", "We find almost no wrong labels, but cannot rule out more"
    if found.is_negligible:
        return tone, "We find almost no wrong labels, so label noise is no reason to smooth"
    if found.may_be_clean:
        return "care", "The labels may all be right: we cannot tell whether any are wrong"
    wrong = found.error_rate
    digits = 0 if wrong.value >= 0.1 else 1
    if wrong.high - wrong.low > WIDE:
        headline = (
            f"Between {between(wrong.low, wrong.high, 0).replace(' to ', ' and ')} of the labels are wrong"
        )
    else:
        headline = f"About {percent(wrong.value, digits)} of the labels are wrong"
    return tone if found.uniformity.is_uniform else "care", headline


def _noise(found: Advice) -> str:
    wrong = found.error_rate
    return (
        f"We estimate that {percent(wrong.value)} of the labels are wrong (95 % interval "
        f"{between(wrong.low, wrong.high)}). The model agrees with {percent(found.accuracy)} of the labels."
        f"{DIFFICULT if wrong.high - wrong.low > WIDE else ''}"
    )


def _cautions(found: Advice) -> list[str]:
    """Why the estimate may be worse than its interval says."""
    if not found.estimate.warnings:
        return []
    told = " ".join(f"{one[0].upper()}{one[1:]}." for one in found.estimate.warnings)
    return [f"Check some labels by hand before you rely on this. {told}"]


def _advised(found: Advice) -> list[str]:
    told = [] if found.purpose == "classify" else [PURPOSE_WARNINGS[found.purpose]]
    if found.recommends:
        told += [_recommended(found), _losses(found)]
    elif found.purpose == "classify":
        told += [remedy(found)] if found.error_rate.high > LOOSE else []
        told += [] if found.trained else [OUT_OF_FOLD]
        told.append(NO_REASON)
    if not found.uniformity.is_uniform and not found.is_negligible:
        told.append(
            f"The noise is not uniform: {shape_words(found)} A matrix of targets describes it better than one number."
        )
    return [*told, calibrating(found), suspects_words(found)]


OUT_OF_FOLD = (
    "This holds for predictions of examples that the model was not trained on. A model that has seen these labels "
    "repeats the wrong ones, and they look right."
)
NO_REASON = (
    "Smoothing can still improve accuracy or calibration on clean labels. Compare alpha = 0 with alpha = 0.1 on "
    "held-out examples if that is what you are after."
)


def with_interval(one: Estimate, digits: int = 3) -> str:
    """A number and its 95 % interval.

    >>> with_interval(Estimate(0.25, 0.2, 0.3), 2)
    '0.25 (95 % interval 0.20 to 0.30)'
    """
    return f"{number(one.value, digits)} (95 % interval {between(one.low, one.high, digits, share=False)})"


def _recommended(found: Advice) -> str:
    return (
        f"For {JUDGED[found.test_labels]}, theory recommends alpha = {with_interval(found.alpha_all)}, shared among "
        "all classes as in PyTorch. If it is shared among the other classes only, alpha is "
        f"{number(found.alpha_others.value)}. This is best for a network that memorises every label. A network that "
        f"is stopped early or sees augmented examples needs less, possibly none: try {_tries(found.alpha_all.value)} "
        "on held-out examples."
    )


def _tries(alpha: float) -> str:
    digits = 2 if alpha >= 0.02 else 3
    return f"0, {alpha / 2:.{digits}f} and {alpha:.{digits}f}"


def _losses(found: Advice) -> str:
    best, usual, none = (found.expected[name] for name in ("recommended", "usual", "none"))
    without = f"{number(none.by_heart.value)} without smoothing"
    if math.isinf(none.by_heart.value):
        without = (
            "without smoothing the loss grows without bound, as the network becomes confident of wrong labels"
        )
    return (
        f"For a network that memorises every label, the expected test loss is {number(best.by_heart.value)} nats with "
        f"this alpha, {number(usual.by_heart.value)} with the usual alpha = {USUAL}, and {without}. For one that "
        f"memorises none, it is {number(best.averaged.value)} with this alpha and {number(none.averaged.value)} "
        "without smoothing."
    )


def calibrating(found: Advice) -> str:
    """Whether to calibrate afterwards: always, on labels of the kind that will judge."""
    kind = (
        "with clean labels (noisy ones would make the model underconfident)"
        if found.test_labels == "clean"
        else "with labels as noisy as those the model will be judged by"
    )
    return (
        f"Calibrate the model afterwards in any case: fit a temperature to held-out examples {kind}. "
        "softtargets calibrate HELD_OUT.npz does it, and so does softtargets.calibration.fit_temperature."
    )


# What smoothing does to a teacher, and to a model that others are transferred from.
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
        what = f"labels of {called(shape.clean)} are right"
    if shape.together:
        return (
            f"{what} in {percent(shape.share.value)} of cases. Uniform noise would make it {percent(shape.expected)}. "
            "One class alone would not show it, but all of them together do."
        )
    share = (
        f"{percent(shape.share.value)} of cases (95 % interval {between(shape.share.low, shape.share.high)})"
    )
    return f"{what} in {share}. Uniform noise would make it {percent(shape.expected)}."


def uniformity_words(found: Advice) -> str:
    """Whether one number describes the noise, and how that was tested."""
    shape = found.uniformity
    test = (
        "We compare each entry of the noise matrix with uniform noise of the same rate, with intervals wide enough for "
        "all entries at once. We also compare the wrong labels of all classes together with an even spread. Noise "
        f"counts as not uniform if either differs and rows differ by more than {percent(FAR, 0)} on average, which is "
        f"about how well they are known. Here rows differ by {percent(shape.distance)}."
    )
    if shape.is_uniform and not shape.contradicted and shape.distance > FAR:
        return (
            "Nothing shows that the noise is not uniform. The estimated matrix looks different, by no more than chance "
            f"and mistakes of the model explain. {test}"
        )
    if shape.is_uniform and not shape.contradicted:
        return f"The noise is indistinguishable from uniform noise, so one alpha is enough. {test}"
    if shape.is_uniform:
        return f"The noise is close enough to uniform for one alpha: {shape_words(found)} {test}"
    return f"The noise is not uniform: {shape_words(found)} {test}"


def warnings_on(found: Outlook) -> list[str]:
    """What a reader must know before using the numbers."""
    told = []
    if found.examples < found.understood.examples and not found.trained:
        told.append(
            f"Estimated from a sample of {count(found.examples, 'example')} of {found.understood.examples:,}, chosen "
            "by a hash of their row number; the same file gives the same sample."
        )
    if isinstance(found, Advice) and found.recommends:
        told.append(REJECTING)
    return told


REJECTING = (
    "Do you reject uncertain cases or hand them to a person? Then label smoothing costs you: the confidence of a "
    "network trained with it separates right from wrong predictions less well (Xia et al., ICLR 2025). Train without "
    "smoothing, or select cases by normalised logits, which softtargets calibrate tries."
)


NOT_SAID = (
    "The theory is about the test loss. The best alpha for accuracy is a different one: Chen et al. found a wide "
    "discrepancy on MNIST (figure 8), and have no theory for it. If you are judged by accuracy, choose alpha on "
    "held-out examples.",
    "The error can have two minima over p (figure 10). On MNIST with a clean rate of 85 % or less, the lower one "
    "was at small p, and no smoothing was the other. Weak smoothing in between (p of 0.95 or 0.9) cost up to 8 "
    "points of accuracy compared with no smoothing (figure 11). A search in small steps from alpha = 0 does not "
    "reach the lower minimum.",
    "The theory assumes a network that memorises every label. With early stopping smoothing may not be needed at all "
    "(appendix A.1, figure 9).",
    "Label noise is not the only reason to smooth. On clean labels smoothing can improve accuracy and calibration "
    "(Müller et al. 2019, sections 1 and 3). That is not in this theory, and a recommendation near 0 does not "
    "contradict it.",
)

FAILURES = (
    "Predictions must be out of fold: from models that were not trained on the example. A model that has memorised "
    "its labels makes them all look right. We notice this only if the model predicts nearly all labels.",
    "Labels that are wrong because an example looks like another class are indistinguishable from errors of the model. "
    "People "
    "make such mistakes; the interval allows for some of them.",
    "In each class, the right label must be the most frequent one.",
)

MEMORISED = (
    "The theory assumes a network that memorises every label, so each wrong label costs as much as its target "
    "withholds from the right one. Without smoothing the target withholds everything, hence the infinite loss: no "
    "network gets there, but the more confident a network becomes of wrong labels, the worse its loss. The other "
    "extreme is a network that memorises no label and predicts for each class the average of its targets. Such a "
    "network gains nothing from smoothing."
)
