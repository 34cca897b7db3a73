"""The two claims that tables 3 and 5 of Lu et al. 2023 make in each column."""

from __future__ import annotations

from softtargets.claims import Claim, Region, above, published, sources, two_standard_errors, zone
from softtargets.studies.labo.telling import setting_name
from softtargets.studies.results import Results
from softtargets.studies.words import percent

# Seeds that decide.
SEEDS = 3
# Points of accuracy too small to count.
SMALL_GAIN = 0.1


def printed_accuracy(data: str, model: str, method: str) -> float:
    """What a table prints, as a share."""
    return published(f"lu-2023/accuracy/{data}-{model}/{method}").value or 0.0


def base_and_gain(
    results: Results, data: str, model: str, images: int, seeds: int = SEEDS
) -> tuple[Claim, Claim]:
    """What hard targets reach, and what LABO gains over them, each within two standard errors on so many images."""
    where, key = setting_name(data, model), f"lu-2023/accuracy/{data}-{model}"
    labo, hard = ({"data": data, "model": model, "method": method} for method in ("labo", "hard"))
    share = printed_accuracy(data, model, "hard")
    value, margin = round(100 * share, 6), round(100 * two_standard_errors(share, images), 2)
    gain = round(100 * (printed_accuracy(data, model, "labo") - share), 2)
    remark = f"The margin is two standard errors of the printed accuracy on {images:,} images."
    return (
        Claim(
            f"{where} reaches {percent(share, 2)} with hard targets.",
            sources(f"{key}/hard"),
            "accuracy with hard targets",
            results.sample("accuracy", **hard).times(100),
            Region(value - margin, value + margin),
            results.shown("accuracy", ".2%", hard),
            remark,
            digits=2,
            seeds=seeds,
            printed=value,
            margin=margin,
            unit="%",
        ),
        Claim(
            f"{where} is more accurate with LABO than with hard targets.",
            sources(key, "hard", "labo"),
            "accuracy of LABO minus accuracy of hard targets",
            *above(0, results.gain("accuracy", [(labo, hard)], scale=100)),
            results.then("accuracy", ".2%", hard, labo) + " with LABO",
            remark,
            digits=2,
            seeds=seeds,
            zone=zone(SMALL_GAIN),
            printed=gain,
            margin=margin,
            unit="points",
        ),
    )
