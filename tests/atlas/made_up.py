"""Studies and results that nobody made: small enough to know what the atlas must say of them."""

from __future__ import annotations

from pathlib import Path

from softtargets.claims import Claim, Sample, above, published, zone
from softtargets.recipes import MLP, MNIST, Recipe
from softtargets.report import Column, Page, Section, Table, write_page
from softtargets.studies import Findings, Study, Trial

BASE = Recipe(data=MNIST(), model=MLP(hidden=(8,)), epochs=1)
EVIL = "<script>alert(1)</script> & “claims”"
PRINTED = published("muller-2019/accuracy/cifar10/hard")
REPEATED = published("wagner-2023/accuracy/cifar10-alexnet/hard")
THEORY = published("chen-2020/figure-5/agreement")


def claims(results) -> tuple[Claim, ...]:
    """One of Müller's with the replication's number, one of Chen's, one of nobody's."""
    gain = results.sample("m") if results.outcomes else Sample(())
    return (
        Claim("It gains.", (PRINTED, REPEATED), "gain", *above(0, gain), printed=0.5, margin=0.1, digits=2),
        Claim("It agrees.", (THEORY,), "agreement", *above(1, gain), zone=zone(0.2), remark=EVIL),
        Claim("It is new.", (), "novelty", *above(0.5, gain)),
    )


def study(name: str = "s", sizes: tuple[str, ...] = ("small", "full"), data=None, **changes) -> Study:
    """Two seeds at the size small, three at full."""
    base = BASE if data is None else BASE.replace({"data": data})

    def trials(settings) -> list[Trial]:
        epochs = 2 if settings.size == "full" else 1
        recipes = (base.replace({"seed": seed, "epochs": epochs}) for seed in range(settings.seeds))
        return [Trial(settings.base(recipe), {"seed": recipe.seed}) for recipe in recipes]

    parts = {"title": "Does it?", "lead": "l", "papers": (), "seeds": 3, "sizes": sizes}
    parts |= {"trials": trials, "claims": claims, "findings": lambda found: Findings((), claims(found))}
    return Study(name=name, **(parts | changes))


def recorded(
    directory: Path,
    of: Study,
    values=(0.4, 0.5, 0.6),
    size: str = "full",
    changes=None,
    failed: int = 0,
    **page,
) -> Path:
    """The page of a study under this directory, with a run for each value; the last of them failed, if told."""
    settings = of.settings(len(values) or 1, {"size": size} if size and of.sizes else {})
    trials = of.trials(type(settings)(settings.seeds, changes or {}, settings.size))
    states = ["finished"] * (len(values) - failed) + ["failed"] * failed
    rows = [
        {"run": trial.recipe.id, "seed": trial.recipe.seed, "status": state, "m": value, "seconds": 1.0}
        for trial, value, state in zip(trials, values, states, strict=True)
    ]
    there = Sample.of(row["m"] for row in rows if row["status"] == "finished")

    class Found:
        outcomes = rows

        @staticmethod
        def sample(measure: str) -> Sample:
            return there

    told = {
        "provenance": {"device": "cuda (NVIDIA H200)", "softtargets": "0.1.0 (0123456789ab)"},
        "command": f"softtargets study run {of.name}",
        "answer": "Yes | it does.",
    }
    directory.mkdir(parents=True, exist_ok=True)
    write_page(
        Page(
            name=of.name,
            title=of.title,
            lead="l",
            sections=(Section("s", ("t",)),),
            claims=tuple(of.claims(Found())),
            runs=Table("runs", "Runs", tuple(Column(key, key) for key in rows[0]), tuple(rows))
            if rows
            else None,
            **(told | page),
        ),
        directory,
    )
    return directory
