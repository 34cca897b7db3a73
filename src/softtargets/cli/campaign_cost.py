"""What ``softtargets campaign cost`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from softtargets.exceptions import CampaignError

if TYPE_CHECKING:
    from softtargets.campaign import CampaignCost, Outlook

_WIDTH = 79
_MOST_GPUS = 10_000


def numbers_of(text: str) -> tuple[int, ...]:
    """Numbers of GPUs between commas, each once, rising.

    >>> numbers_of("8, 1,8")
    (1, 8)
    """
    words = [word.strip() for word in text.split(",")]
    for word in words:
        if not word.isdecimal() or not 1 <= int(word) <= _MOST_GPUS:
            raise CampaignError(
                f"--gpus {text}: '{word}' is not a number of GPUs from 1 to {_MOST_GPUS:,}; write for example 1,8,64"
            )
    return tuple(sorted({int(word) for word in words}))


def lines(outlook: Outlook, cost: CampaignCost) -> Iterator[str]:
    """The tables, and what they come to in sentences."""
    rows = [("study", "runs", "GPU h", "guessed", "not known")]
    for study in cost.studies:
        seconds = sum(study.seconds.values())
        guessed = study.seconds["guessed"] / seconds if seconds else 0.0
        unknown = str(study.unknown) if study.unknown else "–"
        hours = "?" if study.unknown == study.runs else f"{seconds / 3600:.2f}"
        rows.append((study.study, str(study.runs), hours, _share(guessed) if seconds else "–", unknown))
    runs, unknown = (sum(getattr(study, name) for study in cost.studies) for name in ("runs", "unknown"))
    total = (f"{cost.seconds / 3600:.2f}", _share(cost.share("guessed")), str(unknown or "–"))
    yield from _table([*rows, ("all", str(runs), *total)])
    yield ""
    rows = [("GPUs", "time", "GPU h", "set-up", "in use")]
    for one in cost.simulated:
        share = one.setup / one.busy if one.busy else 0.0
        hours = f"{one.busy / 3600:.1f}"
        rows.append((str(one.devices), _time(one.seconds), hours, _share(share), _share(one.used)))
    yield from _table(rows)
    yield ""
    for sentence in _sentences(outlook, cost):
        yield from wrap(sentence, _WIDTH)


def _sentences(outlook: Outlook, cost: CampaignCost) -> Iterator[str]:
    yield (
        f"Estimated for {outlook.speeds.device}. Of the GPU hours, {_share(cost.share('guessed'))} are guessed, "
        f"{_share(cost.share('table'))} come from the table of speeds and {_share(cost.share('measured'))} from "
        "finished runs. A tenth is added to all, as in `campaign status`. Reading data, measuring and packing are "
        "not included."
    )
    if cost.chain.ids:
        recipes = [outlook.cells[key].recipe for key in cost.chain.ids]
        told = ", then ".join(f"{recipe.model.name} on {recipe.data.name}" for recipe in recipes)
        yield f"With any number of GPUs, the campaign takes at least {_time(cost.chain.seconds)}: {told}."
    if cost.unknown:
        told = ", ".join(f"{count} on {name}" for name, count in cost.unknown.items())
        yield (
            f"Of unknown length, and not included in these numbers: {told}. Their length is only known once their "
            "data is on this machine."
        )


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        yield "  ".join(cells)


def _share(share: float) -> str:
    """
    >>> _share(0.644)
    '64 %'
    """
    return f"{100 * share:.0f} %"


def _time(seconds: float) -> str:
    """
    >>> _time(90), _time(7200), _time(180000)
    ('1.5 min', '2.0 h', '2.1 days')
    """
    for unit, name in ((86400.0, "days"), (3600.0, "h")):
        if seconds >= unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds / 60:.1f} min"


def as_json(outlook: Outlook, cost: CampaignCost) -> dict[str, Any]:
    """The same for scripts, in seconds."""
    return {
        "device": outlook.speeds.device,
        "seconds": cost.seconds,
        "shares": {source: cost.share(source) for source in ("measured", "table", "guessed")},
        "studies": [
            {"study": one.study, "runs": one.runs, "seconds": dict(one.seconds), "unknown": one.unknown}
            for one in cost.studies
        ],
        "gpus": [
            {
                "gpus": one.devices,
                "seconds": one.seconds,
                "gpu_seconds": one.busy,
                "setup_gpu_seconds": one.setup,
                "groups": one.groups,
                "used": one.used,
            }
            for one in cost.simulated
        ],
        "longest_chain": {"runs": list(cost.chain.ids), "seconds": cost.chain.seconds},
        "unknown": dict(cost.unknown),
    }
