"""What section 5.3 of the replication says of its figure 5, properly computed and as its code computes it."""

from __future__ import annotations

from softtargets.claims import Claim, above, below, published, sources, zone
from softtargets.studies.results import Results
from softtargets.studies.translation.curves import at
from softtargets.studies.translation.replication import SEEDS, by_protocol
from softtargets.studies.wagner_figure_5.measures import ALPHAS, HIGH, LOW

# Differences too small to count: of temperatures, and of NLL in nats per token. An increase of BLEU is half a point or
# more, as in table 1 of Müller et al.
SAME_TEMPERATURE, SAME_NLL, INCREASE = 0.05, 0.01, 0.5
# How near the replication's change of the temperature ours must come; its own is read off a curve, in tenths.
MARGIN = 0.2
_T = "wagner-2023/temperature/multi30k-transformer"
_CODE = "as in the replication"


def claims(results: Results) -> tuple[Claim, ...]:
    """Each statement twice where the code computes something else than the text says."""
    own = by_protocol(results, ALPHAS)
    return (*_temperatures(own), _bleu(own), *_likelihoods(own))


def _temperatures(results: Results) -> tuple[Claim, ...]:
    hard, soft = ({"alpha": alpha} for alpha in ALPHAS)
    before, after = (published(f"{_T}/{kind}").value or 0.0 for kind in ("hard", "smoothed-0.3"))
    return (
        Claim(
            "Label smoothing of 0.3 lowers the temperature with the least calibration error.",
            sources(_T, "hard", "smoothed-0.3"),
            "temperature with the least ECE of the validation set, alpha 0.3 minus alpha 0, without padding",
            *below(0, results.difference("temperature", soft, hard)),
            results.then("temperature", ".2f", hard, soft),
            "",
            digits=2,
            seeds=SEEDS,
            zone=zone(SAME_TEMPERATURE),
        ),
        Claim(
            f"With padding counted, {_CODE}, label smoothing lowers the temperature with the least calibration error.",
            sources(_T, "hard", "smoothed-0.3"),
            "temperature with the least ECE of the validation set, alpha 0.3 minus alpha 0, with padding",
            *below(0, results.difference("replicated_temperature", soft, hard)),
            results.then("replicated_temperature", ".2f", hard, soft),
            "The number is the difference of the printed temperatures.",
            digits=2,
            seeds=SEEDS,
            zone=zone(SAME_TEMPERATURE),
            printed=round(after - before, 6),
            margin=MARGIN,
        ),
    )


def _bleu(results: Results) -> Claim:
    hard, soft = ({"alpha": alpha} for alpha in ALPHAS)
    return Claim(
        "Label smoothing of 0.3 does not raise BLEU.",
        sources("wagner-2023/bleu/transformer"),
        "BLEU at alpha 0.3 minus BLEU at alpha 0, beam of 5, temperature 1",
        *below(INCREASE, results.difference(at("bleu", 1.0), soft, hard)),
        results.then(at("bleu", 1.0), ".1f", hard, soft),
        f"An increase is {INCREASE:g} points of BLEU or more, the difference in table 1 of Müller et al.",
        digits=2,
        seeds=SEEDS,
    )


def _likelihoods(results: Results) -> tuple[Claim, ...]:
    hard, soft = ({"alpha": alpha} for alpha in ALPHAS)

    def one(measure: str, end: float, told: str, how: str) -> Claim:
        low = end == LOW
        name = at(measure, end)
        better = "label smoothing has" if low else "hard targets have"
        return Claim(
            f"{told}{better} the better likelihood at a {'low' if low else 'high'} temperature.",
            sources(f"wagner-2023/nll/transformer/{'low' if low else 'high'}"),
            f"NLL at alpha 0.3 minus NLL at alpha 0 at T = {end:g}, {how}",
            *(below if low else above)(0, results.difference(name, soft, hard)),
            results.then(name, ".3f", hard, soft),
            "",
            seeds=SEEDS,
            zone=zone(SAME_NLL),
        )

    ways = (
        ("nll", "Per token, ", "test set"),
        ("replicated_nll", f"With likelihoods over time, {_CODE}, ", "softmax over time, validation set"),
    )
    return tuple(one(measure, end, told, how) for measure, told, how in ways for end in (LOW, HIGH))
