"""What confidences mean, in plain words; the verdict is by the rules of `softtargets.inspection.calibrate.words`."""

from __future__ import annotations

from softtargets.inspection.calibrate.rejecting import handed_over
from softtargets.inspection.calibrate.words import judged, training_hint
from softtargets.inspection.confidences.finding import ConfidenceDiagnosis
from softtargets.inspection.shared.numbers import count
from softtargets.inspection.shared.two_passes import FEWEST
from softtargets.report import Verdict

NO_CORRECTION = (
    "No correction can be fitted to this file. A temperature changes a confidence by an amount that depends on the "
    "scores of the other classes, and this file does not have those."
)
WHAT_TO_SAVE = (
    "To fit one, save the logits of some held-out predictions, a few thousand tokens for instance: an array (tokens, "
    "vocabulary), or (sentences, length, vocabulary) with --ignore-index for padding."
)
NOT_KNOWN = (
    "Likelihood, Brier score, class-wise errors and top-5 accuracy need the scores of all classes, so they are "
    "unknown."
)
DEPENDENT = (
    "Intervals treat predictions as independent. Tokens of one sentence are not, so the true intervals may be "
    "wider."
)
READ = "If this is not what you meant, say so with --confidence, --correct, --prediction or --label."


def verdict_on(found: ConfidenceDiagnosis) -> Verdict:
    """Is the confidence to be believed, how well do we know, and why there is no correction."""
    tone, headline, sentences = judged(found.calibration, found.overconfidence)
    sentences = [*sentences, NO_CORRECTION]
    if found.examples >= FEWEST:
        sentences.append(handed_over(found.selection))
    if hint := training_hint(found.calibration):
        tone = "care" if tone == "good" else tone
        sentences.append(hint)
    return Verdict(tone, headline, tuple(sentences))


def lead(found: ConfidenceDiagnosis) -> str:
    """What is on the page."""
    of = f" of {count(found.sequences, 'sequence')}" if found.sequences else ""
    return (
        f"Can the confidence of these predictions be trusted? {count(found.examples, 'prediction')}{of}. All "
        "intervals are 95 % intervals."
    )
