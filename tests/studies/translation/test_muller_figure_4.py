"""Figure 4 of Müller et al.: what is measured over temperatures, and claims that fall one by one."""

from __future__ import annotations

import pytest

from softtargets.claims import judge
from softtargets.studies import STUDIES, find_study
from softtargets.studies.translation.curves import SMOOTH, TEMPERATURES, at, measured_curves
from softtargets.translation import bleu

from .small import ece, made_up, nll, recipes, said_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")
STUDY = find_study(STUDIES, "muller-figure-4")
FULL = TEMPERATURES["full"]


def told(size="full", **changed):
    """As the paper has it, but for what is changed."""
    known = {"hot_ece": 0.02, "hot_bleu": 25.5, "soft_ece": 0.05, "soft_bleu": 25.0, "soft": 25.8}
    known |= {"soft_nll": 1.7, "by_nll": 24.5} | changed

    def measures(trial):
        jitter, soft = 1e-4 * trial.recipe.seed, trial.labels["alpha"] > 0
        found = {}
        for t in FULL:
            found[at("bleu", t)] = (known["soft"] if t == 1 else known["soft_bleu"]) if soft else 25.2
            found[at("ece", t)] = (0.019 if t == 1 else known["soft_ece"]) if soft else 0.056
            found[at("nll", t)] = known["soft_nll"] if soft else 1.6
        found |= {"ece_hotter": known["hot_ece"], "bleu_hotter": known["hot_bleu"]}
        found |= {"bleu_by_ece": 25.0, "bleu_by_nll": known["by_nll"]}
        # A difference that is the same for every seed has no interval.
        return {key: value + (jitter if ("at_1" not in key or soft) else 0) for key, value in found.items()}

    return made_up(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"hot_ece": 0.08}, {0}),
        ({"hot_bleu": 24.5}, {1}),
        ({"soft_ece": 0.01}, {2}),
        ({"soft_bleu": 26.5}, {3}),
        ({"soft": 24.0, "soft_bleu": 23.0}, {4}),
        ({"soft_nll": 1.5}, {5}),
        ({"by_nll": 25.5}, {6}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.claims(told(**changed)))
    assert len(judged) == 14
    assert {place % 7 for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place % 7 not in fallen)


def test_one_temperature_is_enough_against_a_claim_about_every_temperature():
    results = told()
    for outcome in results.outcomes:
        if outcome.trial.labels == {"size": "full", "corpus": "tatoeba", "alpha": 0.1}:
            outcome.measures[at("ece", 0.85)] = 0.01 + 1e-4 * outcome.seed
    judged = judge(STUDY.claims(results))
    assert [one.verdict for one in judged].count("contradicted") == 1
    assert judged[9].claim.worst == "T = 0.85"
    assert "at T = 0.85" in judged[9].claim.measured


def test_the_answer():
    assert STUDY.findings(told()).answer == (
        "On Multi30k and on Tatoeba no temperature does: label smoothing has the higher BLEU at all of them."
    )
    assert "some temperature" in STUDY.findings(told(soft=24.0)).answer


def test_curves_are_those_of_single_sentences(store, runs):
    run = store.find(recipes()[1])
    tried = (0.5, 1.0, 1.5, 2.0)
    found = measured_curves(runs, run, tried, most=12)
    numbers, kept = found.measures, found.details
    task, recipe, model = runs.loaded(run)
    test = {t: said_one_by_one(task, model, "test", t) for t in tried}
    held_out = {t: said_one_by_one(task, model, "validation", t) for t in tried}
    for t in tried:
        assert numbers[at("ece", t)] == pytest.approx(ece(test[t]), abs=1e-4)
        assert numbers[at("nll", t)] == pytest.approx(nll(test[t]), abs=1e-4)
        best = [one[0].tokens for one in task.translate(recipe, model, "test", 12, beam=5, temperature=t)]
        texts, references = task.tokeniser.decode(best), list(task.splits["test"].texts.targets[:12])
        assert numbers[at("bleu", t)] == pytest.approx(bleu(texts, references).value, abs=1e-9)
        assert len(kept["pseudo_values"][at("bleu", t)]) == 12
    by_ece, by_nll = (min(tried, key=lambda t, of=of: of(held_out[t])) for of in (ece, nll))
    assert (numbers["by_ece"], numbers["by_nll"]) == (by_ece, by_nll)
    assert numbers["hotter"] == min((1.5, 2.0), key=lambda t: ece(held_out[t]))
    assert numbers["ece_hotter"] == numbers[at("ece", numbers["hotter"])]
    assert numbers["bleu_by_nll"] == numbers[at("bleu", by_nll)]
    assert kept["pseudo_values"]["bleu_by_nll"] == kept["pseudo_values"][at("bleu", by_nll)]
    assert numbers[at("bleu", numbers["highest"])] == max(numbers[at("bleu", t)] for t in tried)
    place = SMOOTH.index(1.5)
    assert kept["curves"]["nll"][place] == pytest.approx(nll(test[1.5]), abs=1e-4)
    assert kept["curves"]["ece"][place] == pytest.approx(ece(test[1.5]), abs=1e-4)
