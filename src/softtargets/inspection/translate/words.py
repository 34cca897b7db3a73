"""What the measures of a translation model mean; the verdict is by the rules of `inspection.calibrate.words`."""

from __future__ import annotations

from softtargets.inspection.calibrate.words import judged
from softtargets.inspection.shared.measured import corrected_estimate
from softtargets.inspection.shared.numbers import between, count, number, percent
from softtargets.inspection.translate.finding import Assessment, TextScore
from softtargets.report import Verdict

TOKENS = (
    "Each token of the reference translations is predicted given the source sentence and the correct tokens before "
    "it. Padding is ignored, and the end of a sentence counts as a token."
)
DEPENDENT = "Intervals treat tokens as independent. Tokens of one sentence are not, so the true intervals may be wider."
SEQUENCES = (
    "A translation is one outcome among very many, so even a good model gives each of them a small probability. The "
    "first two rows compare the number of exact matches with the number that the probabilities promise. The rank "
    "correlation says whether more probable translations are also better ones."
)
TEMPERATURE = (
    "All logits are divided by the temperature before the softmax, both in beam search and for the measures of "
    "tokens. Do not choose a temperature by these numbers and quote them: that would be choosing on the test set. "
    "Choose on a validation set."
)
SAMPLE_NOTE = (
    "The interval is over sentences: it shows how the score would differ on other sentences of the same kind, not "
    "how it would differ after another training."
)


def verdict_on(found: Assessment) -> Verdict:
    """Can the probabilities be trusted, and how good are the translations."""
    tone, headline, sentences = judged(found.calibration, found.overconfidence)
    ece = corrected_estimate(found.calibration, "expected_calibration_error")
    plain = percent(found.calibration.expected_calibration_error)
    corrected = "" if percent(ece.value) == plain else f", corrected for scatter {percent(ece.value)}"
    return Verdict(
        tone,
        f"Token probabilities: {headline[0].lower()}{headline[1:]}",
        (
            trust(found),
            f"Token ECE: {plain}{corrected} (95 % interval {between(ece.low, ece.high)}), in "
            f"{len(found.calibration.reliability.counts)} bins over {count(len(found.tokens), 'token')}.",
            *sentences[1:],
            f"{bleu_words(found.text)} {SAMPLE_NOTE}",
        ),
    )


def trust(found: Assessment) -> str:
    """One plain sentence on whether the probabilities of tokens can be trusted."""
    _, headline, _ = judged(found.calibration, found.overconfidence)
    tokens = count(len(found.tokens), "token")
    if headline == "Well calibrated":
        return "The token probabilities can be trusted: tokens are right as often as the model says."
    if headline == "Too few examples to tell":
        return f"With {tokens} we cannot tell whether the token probabilities can be trusted."
    if headline == "Confident in the wrong places":
        return (
            "The token probabilities cannot be taken at their word: the model is too confident of some tokens and not "
            "confident enough of others."
        )
    than = "less" if found.overconfidence.above_zero else "more"
    return f"The token probabilities cannot be taken at their word: tokens are right {than} often than the model says."


def bleu_words(found: TextScore, signed: bool = False) -> str:
    """BLEU with its interval and, if `signed`, its signature, which is too long a word for a phone."""
    ends = found.bleu_interval
    signature = f"; {found.bleu.signature}" if signed else ""
    between_ends = between(ends.low, ends.high, share=False)
    return f"BLEU is {number(found.bleu.value, 1)} (95 % interval {between_ends}{signature})."


def likelihood_words(found: Assessment) -> str:
    """NLL and perplexity of tokens."""
    return (
        f"NLL is {number(found.tokens.nll, 3)} nats per token and perplexity {number(found.tokens.perplexity, 2)}, "
        f"over {count(len(found.tokens), 'token')}."
    )


def temperature_words(found: Assessment) -> list[str]:
    """Which temperature is best for what."""
    best = found.optima
    if best is None:
        return []
    decoded = ", ".join(f"{t:g}" for t in found.bleu_at)
    said = f"Among the temperatures used for decoding ({decoded}), BLEU is highest at {best.bleu:g}."
    lost = (
        f"Choosing the one with the lowest ECE ({best.ece:g}) costs {number(best.lost_by_ece, 2)} points of BLEU; "
        f"choosing the one with the lowest NLL ({best.nll:g}) costs {number(best.lost_by_nll, 2)}."
    )
    return [said, lost, TEMPERATURE]


def warnings_on(found: Assessment) -> list[str]:
    """What a reader must know before believing the numbers."""
    said = [f"{one}." for one in found.unknown]
    if found.unfinished:
        are = "translation was" if found.unfinished == 1 else "translations were"
        said.append(f"{found.unfinished:,} {are} cut off at the maximum length, before the end.")
    return said
