"""Results that were never trained, and pages made of them, for the tests of studies."""

from __future__ import annotations

import csv
import json
from functools import cache

from softtargets.claims import judge
from softtargets.studies import STUDIES, Outcome, Results, find_study


class Told:
    """A run that has only what it is told: a history."""

    id = "0" * 16

    def __init__(self, rows=()):
        self._rows = list(rows)

    def history(self):
        return self._rows


@cache
def full_grid(name, seeds):
    """A study's trials at full size, made once: hundreds of recipes take seconds."""
    study = find_study(STUDIES, name)
    return study.trials(study.settings(seeds, {"size": "full"}))


def made_up(study, measures, seeds=None, history=lambda trial: ()):
    """Results of the full size: `measures` says for a trial what was measured, or None where its run is missing."""
    found = ((trial, measures(trial)) for trial in full_grid(study.name, seeds))
    return Results(
        tuple(Outcome(trial, Told(history(trial)), said) for trial, said in found if said is not None)
    )


def verdicts(study, results):
    return [one.verdict for one in judge(tuple(study.claims(results)))]


def wiggle(seed, size):
    """Something that differs from seed to seed, as small as told."""
    return size * ((7 * seed) % 5 - 2) / 2


def told(page):
    return json.loads((page.parent / "results.json").read_text())


def rows_of(page, table):
    return list(csv.DictReader((page.parent / "tables" / f"{table}.csv").open()))


def chosen(trials, **labels):
    return [t for t in trials if all(t.labels.get(key) == value for key, value in labels.items())]
