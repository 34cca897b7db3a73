"""Figure 3 of Müller et al.: what is measured against plain loops, and claims that fall one by one."""

from __future__ import annotations

import pytest

from softtargets.claims import judge
from softtargets.studies import STUDIES, Place, Trial, find_study
from softtargets.studies.muller_figure_3.measures import TokenCalibration

from .small import ece, made_up, nll, recipes, said_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")
STUDY = find_study(STUDIES, "muller-figure-3")


def told(size="full", **changed):
    """Three seeds with the paper's numbers, but for what is changed."""
    known = {"ece": 0.056, "scaled_ece": 0.018, "temperature": 1.13, "overconfidence": 0.05, "soft": 0.019}
    known |= changed

    def measures(trial):
        jitter = 1e-4 * trial.recipe.seed
        own = known["ece"] if trial.labels["alpha"] == 0 else known["soft"]
        found = {
            "ece": own,
            "held_out_ece": own,
            "scaled_ece": known["scaled_ece"],
            "held_out_scaled_ece": known["scaled_ece"],
            "overconfidence": known["overconfidence"],
            "temperature": known["temperature"],
        }
        return {key: value + jitter for key, value in found.items()}

    return made_up(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"overconfidence": -0.05}, {0}),
        ({"scaled_ece": 0.09}, {1, 3}),
        ({"soft": 0.09}, {2, 3}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.findings(told(**changed)).claims)
    assert len(judged) == 8, "four of each corpus"
    assert {place % 4 for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place % 4 not in fallen)


def test_numbers_are_compared_on_the_papers_corpus_alone():
    judged = judge(STUDY.claims(told("wmt")))
    assert [one.claim.printed for one in judged] == [0.056, 0.018, 0.019, 1.13, None, None, None, None]
    assert {one.verdict for one in judged} == {"reproduced"}
    assert [one.verdict for one in judge(STUDY.claims(told("wmt", temperature=1.5)))].index(
        "contradicted"
    ) == 3
    assert not any(claim.printed for claim in STUDY.claims(told()))


def test_a_users_changes_and_the_small_size_decide_nothing():
    assert {one.verdict for one in judge(STUDY.claims(told("small")))} == {"not run yet"}
    results = told()
    for place, outcome in enumerate(results.outcomes):
        changed = Trial(outcome.trial.recipe.replace({"epochs": 30}), outcome.trial.labels)
        object.__setattr__(results.outcomes[place], "trial", changed)
    assert {one.verdict for one in judge(STUDY.claims(results))} == {"not run yet"}


def test_the_answer_says_it_corpus_by_corpus():
    assert (
        STUDY.findings(told()).answer
        == "On Multi30k and on Tatoeba label smoothing lowers the calibration error."
    )
    assert "makes calibration worse" in STUDY.findings(told(soft=0.2)).answer


def test_measures_are_those_of_single_sentences(store, data_dir, runs):
    run = store.find(recipes()[0])
    found = TokenCalibration(Place(data_dir, "cpu"))(Trial(run.recipe, {}), run)
    task, _, model = runs.loaded(run)
    test, held_out = (said_one_by_one(task, model, split) for split in ("test", "validation"))
    numbers = found.measures
    assert numbers["ece"] == pytest.approx(ece(test), abs=1e-4)
    assert numbers["nll"] == pytest.approx(nll(test), abs=1e-4)
    assert numbers["held_out_ece"] == pytest.approx(ece(held_out), abs=1e-4)
    sure = [float(row.max()) for rows, _ in test for row in rows]
    right = [float(row.argmax() == y) for rows, labels in test for row, y in zip(rows, labels, strict=True)]
    assert numbers["overconfidence"] == pytest.approx((sum(sure) - sum(right)) / len(sure), abs=1e-4)
    assert sum(found.details["bins"]["right"]) == sum(right)
    best = numbers["temperature"]
    costs = {
        t: nll(said_one_by_one(task, model, "validation", t))
        for t in (best - 0.02, best, best + 0.02, best - 0.2, best + 0.2)
    }
    assert min(costs, key=costs.get) == best
    scaled = said_one_by_one(task, model, "test", best)
    assert numbers["scaled_ece"] == pytest.approx(ece(scaled), abs=1e-4)
    assert numbers["ece_at_printed"] == pytest.approx(
        ece(said_one_by_one(task, model, "validation", 1.13)), abs=1e-4
    )
    shares = found.details["pseudo_values"]["ece"]
    assert len(shares) == 24, "one for each sentence"
    without = ece(test[:5] + test[6:])
    assert shares[5] == pytest.approx(24 * ece(test) - 23 * without, abs=3e-3)
