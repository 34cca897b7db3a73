"""The atlas in words, and as data for other programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from softtargets.atlas.coverage import NO_STUDY, Exhibit, Loose
from softtargets.atlas.entries import OURS, SMALL, Atlas, Entry
from softtargets.atlas.origins import Origin
from softtargets.claims import VERDICTS, Claim, Published, Verdict, paper, printed_by
from softtargets.report import ours_long, plain_data, plural

# What papers are called where there is little room.
NAMES = {
    "muller-2019": "Müller et al. 2019",
    "response-2019": "Müller et al., response",
    "wagner-2023": "Wagner et al. 2023",
    "chen-2020": "Chen et al. 2020",
    "lu-2023": "Lu et al. 2023 (LABO)",
    "patrini-2017": "Patrini et al. 2017",
    "wei-2022": "Wei et al. 2022",
    OURS: "Questions of our own",
    SMALL: "At a small size",
}


_NO_PAPER = {
    OURS: "Questions that the papers raise and do not answer",
    SMALL: "Demonstrations on a small dataset or with a small grid: they say nothing of the papers' numbers.",
}


def short_name(name: str) -> str:
    """A paper as people call it: by our list, else as its own entries are cited.

    >>> short_name("chen-2020"), short_name("doe-2030")
    ('Chen et al. 2020', 'doe-2030')
    """
    cited = (item.source.partition(",")[0] for item in printed_by(name).values())
    return NAMES.get(name) or next(cited, name)


def citation(name: str) -> tuple[str, str]:
    """A paper's citation and address; our own questions have neither."""
    if name in _NO_PAPER:
        return _NO_PAPER[name], ""
    found = paper(name)
    return found.citation, found.url


def tally(entries: Iterable[Entry]) -> dict[Verdict, int]:
    """How many claims came out how, by verdict; all verdicts are there."""
    counts = Counter(entry.verdict for entry in entries)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def counted(counts: Mapping[Verdict, int]) -> str:
    """The same in words, without what there is none of.

    >>> counted({"reproduced": 3, "contradicted": 0, "no effect": 1, "inconclusive": 0, "not run yet": 2})
    '3 reproduced, 1 no effect, 2 not run yet'
    """
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)


def at_size(atlas: Atlas) -> tuple[Entry, ...]:
    """The claims that are tested as the papers did; the others are demonstrations at a small size."""
    return tuple(entry for entry in atlas.entries if not entry.origin.small)


def headline(atlas: Atlas) -> str:
    """What the atlas comes to, in two sentences.

    The first counts the claims that are decided, the second those that are not.
    """
    entries = at_size(atlas)
    if not entries:
        return "No study tests a claim yet."
    counts = tally(entries)
    waiting = counts["not run yet"]
    tested = len(entries) - waiting
    if not tested:
        return f"None of {plural(len(entries), 'claim')} has been run yet."
    said = [
        _came_out(verdict, count) for verdict, count in counts.items() if count and verdict != "not run yet"
    ]
    listed = " and ".join(filter(None, (", ".join(said[:-1]), said[-1])))
    first = f"Of {plural(tested, 'claim')} that {'was' if tested == 1 else 'were'} tested, {listed}."
    then = f" {plural(waiting, 'claim')} {'is' if waiting == 1 else 'are'} not run yet." if waiting else ""
    return first + then


def _came_out(verdict: Verdict, count: int) -> str:
    """``3 are reproduced``, ``1 shows no effect``."""
    if verdict == "no effect":
        return f"{count} {'shows' if count == 1 else 'show'} no effect"
    return f"{count} {'is' if count == 1 else 'are'} {verdict}"


def uncovered(atlas: Atlas) -> tuple[str, ...]:
    """Tables and figures that no study is about, though they show a result."""
    return tuple(
        f"{short_name(one.paper)}, {one.name}"
        for one in atlas.exhibits
        if not one.origins and one.why == NO_STUDY
    )


def atlas_data(atlas: Atlas, entries: Iterable[Entry] | None = None) -> dict[str, Any]:
    """All of it as plain data; `entries` may be some of the claims."""
    chosen = tuple(atlas.entries if entries is None else entries)
    return {
        "headline": headline(atlas),
        "counts": {
            name: tally(one for one in chosen if one.paper == name)
            for name in dict.fromkeys(one.paper for one in chosen)
        },
        "claims": [_entry_data(entry) for entry in chosen],
        "studies": [_origin_data(origin) for origin in atlas.origins],
        "exhibits": [_exhibit_data(one) for one in atlas.exhibits],
        "without_a_claim": [_loose_data(one) for one in atlas.loose],
    }


def _exhibit_data(one: Exhibit) -> dict[str, Any]:
    return {
        "paper": one.paper,
        "name": one.name,
        "about": one.about,
        "printed_numbers": one.printed,
        "beside_a_claim": one.beside,
        "studies": [origin.name for origin in one.origins],
        "verdicts": dict(Counter(one.verdicts)),
        "why_not": one.why,
    }


def _loose_data(one: Loose) -> dict[str, Any]:
    told = {"paper": one.paper, "source": one.source, "setting": one.setting}
    return told | {"printed": [item.printed for item in one.items]}


def _entry_data(entry: Entry) -> dict[str, Any]:
    claim, judged = entry.judged.claim, entry.judged
    data = {
        "id": entry.id,
        "paper": entry.paper,
        "study": entry.origin.study,
        "results": entry.origin.directory or None,
        "link": entry.link or None,
        "statement": claim.statement,
        "printed": [_printed(item) for item in entry.printed],
        "replication": [_printed(item) for item in entry.replication],
        "quantity": claim.quantity,
        "unit": claim.unit,
        "must_be": str(claim.region),
        **_ours_data(claim),
        "in_words": claim.measured if judged.verdict != "not run yet" else "",
        "verdict": judged.verdict,
        "number": judged.value,
        "reason": judged.reason,
        "remark": claim.remark,
    }
    plain: dict[str, Any] = plain_data(data)
    return plain


def _ours_data(claim: Claim) -> dict[str, Any]:
    if claim.computed:
        return {
            "ours": None,
            "values": claim.sample.values,
            "interval": None,
            "n": claim.sample.n,
            "seeds": None,
        }
    found = claim.deciding
    interval = claim.interval if found.n > 1 else None
    return {
        "ours": found.mean,
        "values": found.values,
        "interval": interval,
        "n": found.n,
        "seeds": claim.seeds,
    }


def _printed(item: Published) -> dict[str, Any]:
    return {"printed": item.printed, "setting": item.setting, "source": item.source}


def _origin_data(origin: Origin) -> dict[str, Any]:
    return {key: value for key, value in vars(origin).items() if key != "base"} | {
        "warnings": list(origin.warnings),
        "page": origin.page,
    }


def told(entry: Entry) -> str:
    """Our number with its interval and seeds, or how many seeds there are of those that decide."""
    if entry.verdict == "not run yet":
        return entry.judged.reason or "not run yet"
    return ours_long(entry.judged)
