"""A tiny study of digits, campaigns of it, and sessions on a CPU."""

from __future__ import annotations

from contextlib import nullcontext

import yaml

from softtargets.campaign import Session, load_campaign, outlook
from softtargets.claims import Claim, above
from softtargets.recipes import MLP, Digits, Distillation, LabelSmoothing, Recipe
from softtargets.report import Section
from softtargets.runs import RunStore
from softtargets.studies import Findings, Study, Trial

BASE = Recipe(data=Digits(limit=64), model=MLP(hidden=(8,)), epochs=2, batch=32)
TEACHER = BASE.replace({"model.hidden": [16]})


def trials(settings):
    """Two strengths of smoothing, and a student of a teacher who is no cell of the grid."""
    base, teacher = settings.base(BASE), settings.base(TEACHER)
    long = {"epochs": 40} if settings.size == "long" else {}
    found = []
    for seed in range(settings.seeds):
        for alpha in (0.1, 0.2):
            varied = {"regulariser": LabelSmoothing(alpha=alpha), "seed": seed, **long}
            found.append(Trial(base.replace(varied), {"role": "smoothed", "alpha": alpha}))
        taught = Distillation(teacher=teacher.replace({"seed": seed, **long}))
        found.append(Trial(base.replace({"regulariser": taught, "seed": seed, **long}), {"role": "student"}))
    return found


def claims(results):
    return (Claim("They learn.", (), "accuracy", *above(-1, results.sample("accuracy"))),)


def findings(results):
    return Findings((Section("Said", (f"{len(results.outcomes)} outcomes",)),), claims(results))


def measure(trial, run):
    return {
        "accuracy": float(
            (run.predictions("test").logits.argmax(-1) == run.predictions("test").labels).float().mean()
        )
    }


PARTS = {
    "name": "tiny",
    "title": "What do digits say?",
    "lead": "Little.",
    "papers": (),
    "trials": trials,
    "measure": measure,
    "findings": findings,
    "claims": claims,
    "seeds": 1,
    "sizes": ("short", "long"),
}
TINY = Study(**PARTS)
# The same cells, and it looks at more of them.
CURIOUS = Study(**{**PARTS, "name": "curious", "keep": ("train", "test:scores")})
EMPTY = Study(**{**PARTS, "name": "empty", "trials": lambda settings: [], "sizes": ()})
STUDIES = (TINY, CURIOUS, EMPTY)


def campaign_of(directory, *entries, studies=STUDIES, **more):
    """A campaign from a file, as a user would have written it."""
    path = directory / "campaign.yaml"
    path.write_text(yaml.safe_dump({"studies": list(entries), **more}))
    return load_campaign(path, studies)


class Clock:
    """Time that passes only where a test says so."""

    def __init__(self):
        self.moment = 1000.0

    def monotonic(self):
        return self.moment

    def sleep(self, seconds):
        self.moment += seconds


def session_of(campaign, root, **how):
    """A session that tells what it says in `session.said`."""
    said = []
    session = Session(outlook(campaign, RunStore(root), "cpu"), watching=nullcontext, say=said.append, **how)
    session.said = said
    return session
