"""Figure 2 and table 3 of Müller et al.: what is measured, its claims, and pages that are redrawn without runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch

from softtargets.claims import examples_variance, judge
from softtargets.runs import RunStore, export_logs
from softtargets.studies import STUDIES, Outcome, Results, find_study, redraw_study, run_study
from softtargets.studies.reliabilities import kept_bins, pooled
from tests.studies.making import told, written

STUDY = find_study(STUDIES, "muller-figure-2")


def made_up(size="full", **changed):
    """Three seeds with the paper's errors, but for what is changed."""
    hard = {"ece": 0.15, "scaled_ece": 0.021, "temperature": 1.9, "overconfidence": 0.15} | changed
    soft = changed.get("soft", 0.024)

    def measures(trial):
        jitter = 1e-4 * trial.recipe.seed
        ece = (hard["ece"] if trial.labels["alpha"] == 0 else soft) + jitter
        return {
            "ece": ece,
            "held_out_ece": ece,
            "held_out_scaled_ece": hard["scaled_ece"] + jitter,
            "scaled_ece": hard["scaled_ece"] + jitter,
            "scaled_change": hard["scaled_ece"] - hard["ece"] + jitter,
            "overconfidence": hard["overconfidence"] + jitter,
            "temperature": hard["temperature"] + jitter,
        }

    return told(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"ece": 0.2}, {0}),
        ({"scaled_ece": 0.3}, {1, 5, 7}),
        ({"soft": 0.2}, {2, 6, 7}),
        ({"temperature": 2.9}, {3}),
        ({"overconfidence": -0.1}, {4}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.findings(made_up(**changed)).claims)
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_printed_numbers_are_those_of_table_3():
    claims = STUDY.claims(made_up())
    assert [claim.printed for claim in claims] == [0.15, 0.021, 0.024, 1.9, None, None, None, None]
    assert not any(claim.printed for claim in STUDY.claims(made_up("small")))


def test_imagenet_has_its_own_smoothing():
    claims = STUDY.claims(made_up("imagenet"))
    assert [claim.printed for claim in claims] == [None] * 4
    assert "Label smoothing of 0.1 lowers the calibration error of Inception-v4" in claims[2].statement


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("figure-2")
    store, settings = RunStore(directory / "runs"), STUDY.settings(2, {"size": "full"})
    for trial in STUDY.trials(settings):
        written(store, trial)
    made = run_study(STUDY, settings, store, directory / "page", command="c", train=None, device="cpu")
    return made, store, settings


def test_measures_are_those_of_the_predictions(page):
    made, store, settings = page
    results = json.loads((made.parent / "results.json").read_text())
    rows = {row["run"]: row for row in results["tables"]["runs"]}
    for trial in STUDY.trials(settings):
        run, row = store.find(trial.recipe), rows[trial.recipe.id]
        held_out, test = run.predictions("validation"), run.predictions("test")
        best = min(
            (float(_nll(held_out, t)), t) for t in (row["temperature"] * (1 + d) for d in (-0.05, 0, 0.05))
        )
        assert best[1] == pytest.approx(row["temperature"])
        assert row["ece"] == pytest.approx(_ece(test, 1.0), abs=1e-5)
        assert row["scaled_ece"] == pytest.approx(_ece(test, row["temperature"]), abs=1e-5)
        assert row["ece_at_printed"] == pytest.approx(_ece(held_out, 1.9), abs=1e-5)
        sure = test.logits.softmax(-1).amax(-1).mean()
        right = (test.logits.argmax(-1) == test.labels).double().mean()
        assert row["overconfidence"] == pytest.approx(float(sure - right), abs=1e-5)


def _nll(said, temperature):
    rows = (said.logits.double() / temperature).log_softmax(-1)
    return -rows[torch.arange(len(rows)), said.labels].mean()


def _ece(said, temperature):
    bins = {}
    for row, label in zip((said.logits / temperature).softmax(-1), said.labels, strict=True):
        sure, guess = float(row.max()), int(row.argmax())
        bins.setdefault(min(int(sure * 15), 14), []).append(float(guess == int(label)) - sure)
    return sum(abs(sum(gaps)) for gaps in bins.values()) / len(said.labels)


def test_diagrams_are_drawn_again_without_runs(page, tmp_path):
    made, store, _ = page
    export_logs([store.get(entry.id) for entry in store.entries()], made.parent / "logs.jsonl.gz")
    again = redraw_study(STUDY, made.parent, tmp_path / "again", command="redraw")
    for path in ("figures/reliability_cifar100.svg", "tables/reliability_cifar100.csv"):
        assert (again.parent / path).read_bytes() == (made.parent / path).read_bytes()


def test_pooled_bins_are_those_of_all_predictions_together():
    draw = torch.Generator().manual_seed(1)
    parts = [
        (3 * torch.randn(50, 5, generator=draw), torch.randint(5, (50,), generator=draw)) for _ in range(3)
    ]
    found = pooled(kept_bins(logits, labels) for logits, labels in parts)
    whole = kept_bins(*(torch.cat(part) for part in zip(*parts, strict=True)))
    assert found.counts.tolist() == whole["counts"]
    assert (found.accuracy * found.counts).nan_to_num(0).tolist() == pytest.approx(whole["right"])
    assert pooled([]) is None


def test_a_page_of_one_strength(tmp_path):
    store, settings = RunStore(tmp_path / "runs"), STUDY.settings(1, {"size": "full"})
    for trial in STUDY.trials(settings):
        if trial.labels["alpha"] == 0.05:
            written(store, trial)
    made = run_study(STUDY, settings, store, tmp_path / "page", command="c", train=None, device="cpu")
    results = json.loads((made.parent / "results.json").read_text())
    assert results["answer"].startswith("Not known yet")
    assert (made.parent / "figures" / "reliability_cifar100.svg").is_file()


def test_directions_have_the_chance_of_the_test_images(page):
    """By hand: pseudo-values of fifty groups of images, with the temperature of each run."""
    _, store, settings = page
    trained = [(trial, store.find(trial.recipe)) for trial in STUDY.trials(settings)]
    outcomes = [Outcome(t, run, STUDY.measure(t, run), STUDY.details(t, run)) for t, run in trained]
    claims = STUDY.claims(Results(tuple(outcomes)))[4:]
    assert all(claim.sample.examples is not None for claim in claims)
    table = [[0.0] * 50 for _ in range(2)]
    for outcome in outcomes:
        alpha, test = outcome.trial.labels["alpha"], outcome.run.predictions("test")
        if alpha == 0.1:
            continue
        temperature = outcome.measures["temperature"] if alpha == 0 else 1.0
        places = torch.arange(len(test.labels))
        for group in range(50):
            left = places % 50 != group
            part = SimpleNamespace(logits=test.logits[left], labels=test.labels[left])
            contributed = 50 * _ece(test, temperature) - 49 * _ece(part, temperature)
            table[outcome.seed][group] += contributed if alpha else -contributed
    equally = claims[-1].sample
    assert equally.examples == pytest.approx(examples_variance(table), rel=0.02)
    by_cell = {(one.seed, one.trial.labels["alpha"]): one.measures for one in outcomes}
    apart = [by_cell[seed, 0.05]["ece"] - by_cell[seed, 0.0]["scaled_ece"] for seed in range(2)]
    assert equally.values == pytest.approx(apart)
