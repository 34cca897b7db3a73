"""LABO's translation tables and figure: grids, runs that they share, and claims on numbers that were never measured."""

from __future__ import annotations

import numpy as np
import pytest

from softtargets.claims import judge, published
from softtargets.recipes import LABO
from softtargets.studies import STUDIES, Results, Settings, find_study
from softtargets.studies.labo_figure_2 import predicted
from softtargets.studies.labo_translation.measures import peak
from softtargets.studies.labo_translation.telling import printed_bleu
from softtargets.translation import chosen_token_probabilities

from .labo import made_up

TABLE_1, TABLE_2, TABLE_4, FIGURE_2 = (
    find_study(STUDIES, name) for name in ("labo-tab1", "labo-tab2", "labo-tab4", "labo-fig2")
)
METHODS = ["hard", "ls", "cp", "fl", "afl", "labo-literal", "labo-fixed", "labo-reversed"]
PAIRS = ["de-en", "en-de", "en-fr", "fr-en"]
THIRDS = ("most", "medium", "least")


def wiggle(seed):
    return 0.004 * ((2 * seed) % 5 - 2)


# --- grids ---


def test_table_1_has_every_method_in_every_direction_of_its_corpus():
    for size, corpus, pairs in (
        ("full", "tatoeba", PAIRS),
        ("iwslt", "iwslt14", PAIRS),
        ("wmt", "wmt14", ["en-de", "de-en"]),
    ):
        trials = TABLE_1.trials(TABLE_1.settings(seeds=2, changes={"size": size}))
        cells = [(t.labels["pair"], t.labels["method"], t.recipe.seed) for t in trials]
        assert sorted(cells) == sorted((p, m, s) for p in pairs for m in METHODS for s in range(2))
        assert len({trial.recipe.id for trial in trials}) == len(trials)
        for trial in trials:
            data = trial.recipe.data
            assert (data.name, f"{data.source}-{data.target}") == (corpus, trial.labels["pair"])


def test_labo_is_trained_as_pages_say():
    def labo(study, size):
        trials = study.trials(study.settings(seeds=1, changes={"size": size}))
        return {t.labels["method"]: t.recipe.regulariser for t in trials if "labo" in t.labels["method"]}

    for study, size, steps in (
        (TABLE_1, "full", 2000),
        (TABLE_1, "iwslt", 5000),
        (TABLE_1, "wmt", 10_000),
        (TABLE_2, "full", 4000),
        (TABLE_2, "iwslt", 5000),
    ):
        assert labo(study, size) == {
            "labo-literal": LABO(tau=1.25, warmup_steps=steps),
            "labo-fixed": LABO(tau=1.25, warmup_steps=steps, alpha=0.1),
            "labo-reversed": LABO(tau=1.25, warmup_steps=steps, reading="reversed"),
        }
        said = " ".join(
            p for s in study.findings(made_up(study, lambda *_: {}, 1, size)).sections for p in s.paragraphs
        )
        assert f"{steps:,} steps of warm-up with uniform smoothing" in said


def test_the_kept_checkpoint_is_not_chosen_by_a_loss_that_labo_makes_worse():
    for study, size in ((TABLE_1, "full"), (TABLE_1, "iwslt"), (TABLE_1, "wmt"), (TABLE_2, "full")):
        for trial in study.trials(study.settings(seeds=1, changes={"size": size})):
            assert trial.recipe.best_by == "validation_bleu"
            assert [(probe.name, probe.split) for probe in trial.recipe.probes] == [("bleu", "validation")]


@pytest.mark.parametrize("size", ["small", "full"])
def test_runs_of_german_to_english_are_trained_once_for_all_pages(size):
    def ids(name):
        return {trial.recipe.id for trial in find_study(STUDIES, name).trials(Settings(3, {}, size))}

    first = ids("labo-table-1")
    for name in ("labo-table-4", "labo-figure-2", "beyond-token-labo"):
        assert ids(name) <= first
    unigram = ids("beyond-unigram") - first
    assert len(unigram) == 3
    teachers_and_students = ids("beyond-token-distillation")
    assert len(teachers_and_students & first) == 6
    assert len(teachers_and_students) == 18


def test_small_sizes_are_small():
    for name in ("labo-table-1", "labo-table-2", "beyond-token-distillation"):
        study = find_study(STUDIES, name)
        for trial in study.trials(study.settings(seeds=1)):
            assert trial.recipe.data.limit == 6000
            assert trial.recipe.model.width <= 64
            assert trial.recipe.probes == ()


# --- table 1 ---


def bleus(gains, pairs=PAIRS, noise=wiggle):
    """BLEU by method, the same gains in every direction, or by direction."""

    def of(labels, seed):
        if labels["pair"] not in pairs:
            return None
        gain = gains.get((labels["pair"], labels["method"]), gains.get(labels["method"], 0.0))
        return {"bleu": 40 + gain + noise(seed) * (labels["method"] != "hard"), "nll": 1.0, "ece": 0.1}

    return of


PRINTED = {
    "ls": 0.6,
    "cp": 0.3,
    "fl": -0.9,
    "afl": 0.3,
    "labo-literal": 1.3,
    "labo-fixed": 1.0,
    "labo-reversed": 0.2,
}


def test_claims_of_table_1_stand_and_fall_in_every_direction():
    judged = judge(TABLE_1.claims(made_up(TABLE_1, bleus(PRINTED))))
    assert [one.verdict for one in judged] == ["reproduced"] * 7 + ["contradicted"]
    # One direction is enough to make it false.
    judged = judge(TABLE_1.claims(made_up(TABLE_1, bleus({**PRINTED, ("fr-en", "labo-literal"): 0.2}))))
    assert [one.verdict for one in judged][5:] == ["contradicted", "reproduced", "contradicted"]
    assert judged[5].claim.worst == "French to English"
    judged = judge(TABLE_1.claims(made_up(TABLE_1, bleus({**PRINTED, "fl": 0.9, "labo-literal": 0.61}))))
    assert (judged[4].verdict, judged[5].verdict) == ("contradicted", "no effect")


def test_a_direction_that_was_not_run_leaves_table_1_open():
    found = made_up(TABLE_1, bleus(PRINTED, pairs=["de-en"]))
    assert {one.verdict for one in judge(TABLE_1.claims(found))} == {"not run yet"}
    first, second, *_ = TABLE_1.findings(found).sections[0].exhibits
    shown = {row["method"]: [column.show(row[column.key]) for column in first.columns] for row in first.rows}
    assert shown["LS"][1:4] == ["34.5", "40.60 ± 0.01", "0.60 ± 0.01"]
    assert second.rows[0]["bleu"].n == 0


def test_numbers_are_judged_only_where_the_text_is_the_papers():
    for size in ("full", "small"):
        claims = TABLE_1.claims(made_up(TABLE_1, bleus(PRINTED), size=size))
        assert len(claims) == 8
        assert all(claim.printed is None for claim in claims)
    found = made_up(TABLE_1, bleus(PRINTED), size="iwslt")
    claims = TABLE_1.claims(found)
    assert [claim.printed for claim in claims[8:]] == [0.7, 0.5, 0.4, 0.5]
    # 35.2 ± 0.07 less 34.5 ± 0.14
    assert claims[8].margin == pytest.approx(2 * (0.07**2 + 0.14**2) ** 0.5, abs=0.005)
    judged = judge(claims)[8:]
    assert [one.value for one in judged] == ["reproduced", "reproduced", "reproduced", "contradicted"]
    assert [c.printed for c in TABLE_1.claims(made_up(TABLE_1, bleus({}, ["en-de"]), size="wmt"))[8:]] == [
        0.6,
        0.4,
    ]


def test_printed_bleu_is_the_papers():
    assert [printed_bleu("full", "de-en", method) for method in METHODS] == [
        33.9, 34.5, 34.2, 33.0, 34.2, 35.2, None, None,
    ]  # fmt: skip
    assert printed_bleu("wmt", "de-en", "ls") == 31.9
    assert printed_bleu("small", "de-en", "ls") is None


def test_runs_that_a_user_changed_decide_nothing():
    found = made_up(TABLE_1, bleus(PRINTED), changes={"epochs": 3})
    assert {one.verdict for one in judge(TABLE_1.claims(found))} == {"not run yet"}


# --- table 2 ---


def test_claims_of_table_2_are_about_both_languages():
    def numbers(literal_fr):
        def of(labels, seed):
            gain = {"hard": -1.0, "labo-literal": 0.4, "labo-fixed": -0.5}.get(labels["method"], 0.0)
            fr = literal_fr if labels["method"] == "labo-literal" else gain
            moved = wiggle(seed) * (labels["method"] != "ls")
            return {"bleu_de": 40 + gain + moved, "bleu_fr": 41 + fr + moved}

        return of

    found = made_up(TABLE_2, numbers(0.4))
    assert [one.verdict for one in judge(TABLE_2.claims(found))] == [
        "reproduced",
        "reproduced",
        "contradicted",
        "no effect",
    ]
    assert TABLE_2.findings(found).answer.startswith("Yes")
    found = made_up(TABLE_2, numbers(-0.4))
    assert judge(TABLE_2.claims(found))[1].verdict == "contradicted"
    assert TABLE_2.findings(found).answer.startswith("No: with LABO as printed one of the languages")
    judged = judge(TABLE_2.claims(made_up(TABLE_2, numbers(0.4), size="iwslt")))
    assert [one.claim.printed for one in judged[4:]] == [0.4, 0.4]
    assert [one.value for one in judged[4:]] == ["reproduced", "reproduced"]


# --- table 4 ---


def thirds(gains, easier=3.0):
    """BLEU on thirds: `gains` of each method on each third."""

    def of(labels, seed):
        method = labels["method"]
        base = dict(zip(THIRDS, (40.0, 40.0 - easier, 40.0 - 2 * easier), strict=True))
        return {
            f"bleu_{split}_{third}": base[third]
            + gains.get((method, third), gains.get(method, 0.0))
            + wiggle(seed) * (method != "ls")
            for split in ("validation", "test")
            for third in THIRDS
        }

    return of


@pytest.mark.parametrize(
    ("gains", "easier", "verdicts"),
    [
        ({"labo-literal": 0.6}, 3.0, ["reproduced", "reproduced", "no effect", "no effect", "reproduced"]),
        (
            {"labo-literal": 0.6, ("labo-literal", "least"): 0.2},
            3.0,
            ["reproduced", "reproduced", "no effect", "no effect", "contradicted"],
        ),
        (
            {"labo-literal": -0.6, "labo-fixed": 1.0},
            -3.0,
            ["contradicted", "contradicted", "reproduced", "no effect", "reproduced"],
        ),
    ],
)
def test_claims_of_table_4(gains, easier, verdicts):
    found = made_up(TABLE_4, thirds(gains, easier))
    assert [one.verdict for one in judge(TABLE_4.claims(found))] == verdicts
    assert TABLE_4.findings(found).answer


def test_table_4_prints_the_papers_numbers():
    judged = judge(TABLE_4.claims(made_up(TABLE_4, thirds({"labo-literal": 0.6}), size="iwslt")))[5:]
    assert [one.claim.printed for one in judged] == [0.4, 0.6, 0.7, 0.6, 0.8, 0.6]
    assert {one.value for one in judged} == {"reproduced"}
    table = TABLE_4.findings(made_up(TABLE_4, thirds({}))).sections[0].exhibits[1]
    assert [column.show(table.rows[1][column.key]) for column in table.columns] == [
        "LABO, paper", "39.0", "0.60", "34.3", "0.80", "32.7", "0.60",
    ]  # fmt: skip


# --- figure 2 ---


def peaks(modes, spreads=None):
    def of(labels, seed):
        mode = modes.get(labels["method"], 0.975)
        spread = (spreads or {}).get(labels["method"], 0.3)
        return {
            **{f"peak_{part}": mode for part in ("all", *THIRDS)},
            "mean_all": 0.5,
            "spread_all": spread + wiggle(seed) * (labels["method"] != "ls") / 10,
        }

    return of


@pytest.mark.parametrize(
    ("modes", "spreads", "verdicts"),
    [
        ({"ls": 0.925, "labo-literal": 0.425}, {"labo-literal": 0.2}, ["reproduced"] * 5),
        (
            {"ls": 0.975, "labo-literal": 0.925, "labo-fixed": 0.425},
            {"labo-literal": 0.4},
            ["contradicted"] * 5,
        ),
    ],
)
def test_claims_of_figure_2(modes, spreads, verdicts):
    found = made_up(FIGURE_2, peaks(modes, spreads))
    assert [one.verdict for one in judge(FIGURE_2.claims(found))] == verdicts
    assert FIGURE_2.findings(found).answer.startswith("Yes" if verdicts[1] == "reproduced" else "No")


def test_a_peak_on_the_edge_of_two_parts_is_the_same_for_every_seed():
    """Label smoothing rests on 0.9, where parts of 0.05 meet: which of two is fuller is chance, the peak is not."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        certain, open_ = rng.normal(0.9, 0.015, 600).clip(0.01, 0.99), rng.uniform(0.05, 0.95, 400)
        found.append([np.log(certain).tolist(), np.log(open_).tolist()])
    fullest = {chosen_token_probabilities(one).mode for one in found}
    assert len(fullest) == 2, "or the test would say nothing"
    peaks_found = [peak(one) for one in found]
    assert peaks_found == pytest.approx([0.9] * 6, abs=0.011)
    # By plain loops: the place with the most of a bell around every probability.
    values = [np.exp(value) for row in found[0] for value in row]
    places = [0.0025 + 0.005 * step for step in range(200)]
    heights = [sum(np.exp(-(((place - value) / 0.02) ** 2) / 2) for value in values) for place in places]
    assert peaks_found[0] == pytest.approx(places[int(np.argmax(heights))], abs=0.006)


def test_peaks_that_differ_a_little_between_seeds_decide():
    def of(labels, seed):
        return peaks({"ls": 0.89 + 0.005 * seed, "labo-literal": 0.4 + 0.005 * seed})(labels, seed)

    assert [one.verdict for one in judge(FIGURE_2.claims(made_up(FIGURE_2, of)))][:2] == ["reproduced"] * 2


def test_theory_of_figure_2():
    assert predicted("labo-literal", 8000) == pytest.approx(0.408, abs=0.005)
    assert predicted("labo-fixed", 8000) > 0.95
    assert predicted("labo-reversed", 8000) == predicted("hard", 8000) == 1
    said = FIGURE_2.findings(Results(())).sections[0].paragraphs[1]
    assert "With 8,000 tokens LABO as printed rests at 0.41" in said
    assert published("lu-2023/probabilities/iwslt14-de-en/labo").printed == "concentrated on around 0.4"


@pytest.mark.parametrize("study", [TABLE_1, TABLE_2, TABLE_4, FIGURE_2], ids=lambda study: study.name)
def test_claims_are_known_before_there_are_runs(study):
    assert {one.verdict for one in judge(study.claims(Results(())))} == {"not run yet"}
    assert "not" in study.findings(Results(())).answer.lower()
