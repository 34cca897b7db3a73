"""Human noise: its recipes, its claims, and all the rest on a few real images."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from softtargets.claims import judge
from softtargets.data import data_directory, load_human_labels, status
from softtargets.recipes import CIFAR10, Clean, ResNet18, Symmetric
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from softtargets.studies.chen_human_noise.findings import findings
from softtargets.studies.chen_human_noise.grid import WRONG
from softtargets.training import train

STUDY = find_study(STUDIES, "chen-human-noise")


@pytest.mark.parametrize("size", ["tiny", "full"])
def test_every_set_of_human_labels_has_a_double_with_random_ones(size):
    trials = STUDY.trials(STUDY.settings(seeds=2, changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == len(trials)
    cells = {}
    for trial in trials:
        recipe, kind = trial.recipe, trial.labels["labels"]
        key = (kind, trial.labels["p"], recipe.seed)
        cells.setdefault(key, {})[trial.labels["source"]] = recipe
        if trial.labels["source"] == "human":
            assert (recipe.data.labels, recipe.noise) == (kind, Clean())
        else:
            assert (recipe.data.labels, recipe.noise) == ("clean", Symmetric(rate=WRONG[kind]))
    for pair in cells.values():
        human, random = pair["human"], pair["symmetric"]
        assert human.replace({"data.labels": "clean", "noise": random.noise}) == random


def test_the_full_size_trains_the_net_of_the_paper_on_all_images():
    for trial in STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full"})):
        assert trial.recipe.model == ResNet18(width=19)
        assert trial.recipe.data.limit is None


class Provided:
    provenance = {"examples": {"train": 1000, "test": 100}}  # noqa: RUF012


def made_up(
    human: float = 1.0, best: float | None = None, unsmoothed: float = 3.0, off: float = 0.0
) -> Results:
    """Three seeds. Losses are as predicted by hand, times `human` for people's labels."""
    outcomes = []
    for trial in STUDY.trials(STUDY.settings()):
        a, p, jitter = 1 - WRONG[trial.labels["labels"]], trial.labels["p"], 1e-4 * trial.recipe.seed
        by_hand = -a * math.log(p) - (1 - a) * math.log((1 - p) / 9) if p < 1 else unsmoothed
        loss = by_hand if best is None or p == 1 else 2 + abs(p - best)
        if trial.labels["source"] == "human":
            loss *= human + jitter
        measures = {"loss": loss, "accuracy": 0.5, "early_accuracy": 0.6, "by_heart": 0.9, "clean_rate": a}
        if p < 1:
            measures |= {"predicted": by_hand * (1 + off), "averaging": 0.5 * by_hand}
        outcomes.append(Outcome(trial, Provided(), measures))
    return Results(tuple(outcomes))


@pytest.mark.parametrize(
    ("turned", "fallen"),
    [
        ({}, set()),
        ({"human": 1.3}, {0, 1}),
        ({"off": 0.5}, {1}),
        ({"best": 0.5}, {1, 2}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(turned, fallen):
    found = judge(findings(made_up(**turned)).claims)
    assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == fallen
    assert {one.verdict for one in found} <= {"reproduced", "contradicted"}


def test_what_smoothing_gains_is_asked_at_the_p_that_the_theory_names():
    gain = findings(made_up(unsmoothed=3.0)).claims[3]
    losses = {p: -0.9099 * math.log(p) - 0.0901 * math.log((1 - p) / 9) for p in (0.5, 0.65, 0.8, 0.9)}
    assert dict(gain.cells)["aggregate"].values[0] == pytest.approx(losses[0.9] - 3)
    assert findings(made_up(unsmoothed=0.01)).claims[3].verdict == "contradicted"


@pytest.mark.realdata
def test_the_whole_study_on_a_few_real_images(tmp_path):
    root = Path(os.environ.get("SOFTTARGETS_DATA", data_directory()))
    for name in ("cifar10", "cifar10n"):
        if "SOFTTARGETS_DATA" not in os.environ or status(name) != "ready":
            pytest.skip(f"{name} is not in {root}; softtargets data fetch {name} gets it")
    changes = {"data": CIFAR10(limit=300), "model.hidden": (16,), "epochs": 1, "batch": 60}
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1, changes=changes)
    page = run_study(
        STUDY, settings, store, tmp_path / "report", command="c", train=train, device="cpu", data_dir=root
    )
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    assert len(results["claims"]) == 4
    for row in results["tables"]["human_noise"]:
        if row["source"] == "human":
            labels = load_human_labels("cifar10", row["labels"], root)
            right = sum(bool(c == n) for c, n in zip(labels.clean[:300], labels.noisy[:300], strict=True))
            assert row["clean_rate"]["mean"] == pytest.approx(right / 300)
        else:
            assert row["clean_rate"]["mean"] == pytest.approx(1 - WRONG[row["labels"]], abs=0.1)
        if row["p"] < 1:
            a, p = row["clean_rate"]["mean"], row["p"]
            by_hand = -a * math.log(p) - (1 - a) * math.log((1 - p) / 9)
            assert row["predicted"]["mean"] == pytest.approx(by_hand)
