"""The page of the atlas."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from softtargets.atlas.entries import REPLICATION, Atlas, Entry, order, place_of
from softtargets.atlas.words import at_size, citation, counted, headline, short_name, tally, told, uncovered
from softtargets.claims import RULE, VERDICTS
from softtargets.report import look, plural, policy_for, strip_row

TITLE = "Which claims about soft targets hold?"
LEAD = (
    "Every claim of every study, with what the papers printed, what the replication of Müller et al. printed for the "
    "same thing, what our runs gave, and a verdict by a rule that was stated first. Claims that fail are shown as "
    "failing. What nobody has run yet is listed too, and so is what no study covers."
)


def page(atlas: Atlas) -> str:
    """The page as HTML: it needs neither a network nor its script, which only filters."""
    from markupsafe import Markup

    script = (files("softtargets.report") / "templates" / "atlas.js").read_text(encoding="utf-8")
    environment = look()
    environment.filters |= {
        "told": told,
        "place": place_of,
        "short_name": short_name,
        "citation": citation,
        "plural": plural,
        "slug": lambda verdict: verdict.replace(" ", "-"),
    }
    entries = at_size(atlas)
    return environment.get_template("atlas.html").render(
        title=TITLE,
        lead=LEAD,
        headline=headline(atlas),
        rule=RULE,
        replication=REPLICATION,
        counts=tally(entries),
        numbers=_numbers(entries),
        papers=[_paper(name, of) for name, of in atlas.by_section().items()],
        verdicts=VERDICTS,
        exhibits=_exhibits(atlas),
        uncovered=uncovered(atlas),
        small=counted(tally(one for one in atlas.entries if one.origin.small)),
        origins=_origins(atlas),
        judged=[entry.judged for entry in atlas.entries if entry.verdict != "not run yet"],
        policy=Markup(policy_for([script])),
        script=Markup(script),
    )


def _paper(name: str, entries: Sequence[Entry]) -> dict[str, Any]:
    """A paper's claims, by the results they are tested by, each with its strip."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.origin.name, []).append(entry)
    text, url = citation(name)
    return {
        "name": name,
        "short": short_name(name),
        "citation": text,
        "url": url,
        "counts": tally(entries),
        "cells": sorted(entries, key=lambda one: VERDICTS.index(one.verdict)),
        "groups": [
            {"origin": of[0].origin, "rows": [(one, strip_row(one.judged)) for one in of]}
            for of in groups.values()
        ],
    }


def _numbers(entries: Sequence[Entry]) -> str:
    """How many of the numbers that papers printed came out within the margin."""
    found = [one.judged.value for one in entries if one.judged.value not in (None, "not run yet")]
    if not found:
        return ""
    near, off = found.count("reproduced"), found.count("contradicted")
    neither = len(found) - near - off
    told = (
        f"{near} came out within it, {off} outside"
        if neither
        else f"{near} came out within it and {off} outside"
    )
    more = f"; {neither} {'is' if neither == 1 else 'are'} inconclusive" if neither else ""
    return f"Of {plural(len(found), 'printed number')} with a margin stated beforehand, {told}{more}."


def _exhibits(atlas: Atlas) -> list[dict[str, Any]]:
    """Tables and figures, and what is printed without a claim, by paper."""
    there = {one.paper for one in atlas.exhibits} | {one.paper for one in atlas.loose}
    return [
        {
            "name": name,
            "short": short_name(name),
            "rows": [one for one in atlas.exhibits if one.paper == name],
            "loose": [one for one in atlas.loose if one.paper == name],
        }
        for name in order()
        if name in there
    ]


def _origins(atlas: Atlas) -> list[dict[str, Any]]:
    return [
        {"origin": one, "counts": counted(tally(e for e in atlas.entries if e.origin == one))}
        for one in atlas.origins
    ]
