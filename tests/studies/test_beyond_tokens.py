"""Our own questions about translation models: claims on numbers never measured, and all pages on a made-up language."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from softtargets.claims import judge
from softtargets.recipes import Distillation, LabelSmoothing
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Place, Results, find_study, run_study
from softtargets.studies.beyond_token_distillation.grid import teacher_of
from softtargets.studies.labo_translation import protocol
from softtargets.studies.labo_translation.measures import ChosenTokens, Trusted
from softtargets.studies.translation.measures import TranslatedRuns
from softtargets.training import train
from softtargets.translation import bleu, frequency_scores
from tests.training.tasks.translation import counting

from .labo import made_up

UNIGRAM, TOKENS, DISTILLED = (
    find_study(STUDIES, name) for name in ("beyond-unigram", "beyond-token-labo", "beyond-token-distillation")
)


def wiggle(seed):
    return ((2 * seed) % 5 - 2) / 2000


# --- claims ---


def test_unigram_smoothing_differs_in_its_prior_alone():
    trials = {t.labels["method"]: t.recipe for t in UNIGRAM.trials(UNIGRAM.settings(1, {"size": "full"}))}
    assert list(trials) == ["hard", "ls", "unigram"]
    assert trials["unigram"].regulariser == LabelSmoothing(alpha=0.1, prior="unigram")
    assert trials["unigram"].replace({"regulariser": trials["ls"].regulariser}) == trials["ls"]


@pytest.mark.parametrize(
    ("bleu_gain", "nll", "least", "ece", "verdicts"),
    [
        (0.5, -0.1, 0.0, 0.0, ["reproduced", "reproduced", "reproduced", "reproduced"]),
        (-0.5, 0.1, -0.1, 0.02, ["contradicted", "contradicted", "contradicted", "contradicted"]),
        (0.0, 0.0, 0.0, 0.0, ["no effect", "no effect", "no effect", "reproduced"]),
    ],
)
def test_claims_about_unigram_smoothing(bleu_gain, nll, least, ece, verdicts):
    def numbers(labels, seed):
        on = labels["method"] == "unigram"
        return {
            "bleu": 40 + on * (bleu_gain + wiggle(seed)),
            "nll": 1 + on * (nll + wiggle(seed)),
            "ece": 0.05 + on * (ece + wiggle(seed) / 10),
            "nll_most": 0.9 + on * (nll + wiggle(seed)),
            "nll_least": 1.1 + on * least,
        }

    found = made_up(UNIGRAM, numbers)
    assert [one.verdict for one in judge(UNIGRAM.claims(found))] == verdicts
    assert UNIGRAM.findings(found).answer.startswith("Yes" if bleu_gain > 0 else "No")


@pytest.mark.parametrize(
    ("labo", "verdicts"),
    [
        (
            {"ece": 0.3, "gap": -0.3, "temperature": 0.8, "ece_scaled": 0.021, "rank_correlation": 0.505},
            ["reproduced"] * 6,
        ),
        (
            {"ece": 0.01, "gap": 0.1, "temperature": 1.2, "ece_scaled": 0.05, "rank_correlation": 0.6},
            ["contradicted"] * 6,
        ),
    ],
)
def test_claims_about_labos_tokens(labo, verdicts):
    ls = {"ece": 0.05, "gap": 0.0, "temperature": 1.0, "ece_scaled": 0.02, "rank_correlation": 0.5}

    def numbers(labels, seed):
        own = labo if labels["method"] == "labo-literal" else ls
        moved = wiggle(seed) / 10 * (labels["method"] == "labo-literal")
        return {key: value + moved for key, value in own.items()}

    found = made_up(TOKENS, numbers)
    assert [one.verdict for one in judge(TOKENS.claims(found))] == verdicts
    assert TOKENS.findings(found).answer.startswith("No: with LABO as printed next tokens are worse") == (
        verdicts[0] == "reproduced"
    )


def test_students_learn_from_teachers_that_are_trained_on_the_same_page():
    trials = DISTILLED.trials(DISTILLED.settings(2, {"size": "full"}))
    by = {(t.labels["role"], t.labels["method"], t.recipe.seed): t.recipe for t in trials}
    assert len(by) == len(trials) == 12
    for (role, method, seed), recipe in by.items():
        if role == "teacher":
            continue
        assert recipe.model.width == 256
        # The teachers that agreement is measured with are those of the same seed.
        for kind in ("hard", "ls"):
            assert teacher_of(recipe, "full", kind).id == by["teacher", kind, seed].id
        if role == "student":
            assert recipe.regulariser == Distillation(teacher=by["teacher", method, seed])


@pytest.mark.parametrize(
    ("student", "of_smoothed", "teacher", "agreement", "verdicts"),
    [
        (1.0, -0.5, 0.5, -2.0, ["reproduced"] * 4),
        (-1.0, 0.5, -0.5, 2.0, ["contradicted"] * 4),
        (0.0, 0.0, 0.0, 0.0, ["no effect"] * 4),
    ],
)
def test_claims_about_distillation(student, of_smoothed, teacher, agreement, verdicts):
    def numbers(labels, seed):
        role, smoothed = labels["role"], labels["method"] == "ls"
        gain = {"alone": 0.0, "teacher": 5 + teacher * smoothed, "student": student + of_smoothed * smoothed}[
            role
        ]
        moved = wiggle(seed) * (smoothed + 2 * (role == "student"))
        shares = {"agreement_hard": 0.7, "agreement_ls": 0.7 + (agreement + moved) / 100}
        return {"bleu": 30 + gain + moved, "nll": 1.0, "ece": 0.1} | (shares if role != "teacher" else {})

    found = made_up(DISTILLED, numbers)
    assert [one.verdict for one in judge(DISTILLED.claims(found))] == verdicts
    assert DISTILLED.findings(found).answer.startswith("Yes" if of_smoothed < 0 else "No")


@pytest.mark.parametrize("study", [UNIGRAM, TOKENS, DISTILLED], ids=lambda study: study.name)
def test_claims_are_known_before_there_are_runs(study):
    assert {one.verdict for one in judge(study.claims(Results(())))} == {"not run yet"}
    assert study.findings(Results(())).answer.startswith("Not known yet")


# --- the whole way ---


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A corpus between two made-up languages, and a store that all pages share."""
    folder = tmp_path_factory.mktemp("data")
    counting.write_corpus(folder, train=60, held_out=9)
    for path in (folder / "numbers").iterdir():
        language = {"digits": "de", "words": "en"}[path.suffix[1:]]
        shutil.move(path, path.with_suffix(f".{language}"))
    return folder, RunStore(tmp_path_factory.mktemp("runs"))


@pytest.fixture
def page(world, monkeypatch):
    """Makes the page of a study on it; returns what is in its file of results."""
    folder, store = world
    recipe = counting.recipe(**{"data.source": "de", "data.target": "en", "epochs": 1})
    monkeypatch.setattr(protocol, "BASES", {"small": recipe})
    monkeypatch.setattr(protocol, "fitted", lambda settings, recipe: settings.base(recipe))

    def make(name, **how):
        study, settings = find_study(STUDIES, name), find_study(STUDIES, name).settings(seeds=1)
        where = store.root.parent / name
        options = {"train": train, **how}
        run_study(study, settings, store, where, command="c", device="cpu", data_dir=folder, **options)
        return json.loads((where / "results.json").read_text()), study.trials(settings)

    return make


def of(told, table, **labels):
    rows = told["tables"][table]
    return next(row for row in rows if all(row[key] == value for key, value in labels.items()))


def test_distillation_and_agreement_on_a_made_up_language(page, world):
    told, trials = page("beyond-token-distillation")
    assert told["warnings"] == []
    folder, store = world
    runs = TranslatedRuns(Place(folder, "cpu"))
    by = {(t.labels["role"], t.labels["method"]): store.find(t.recipe) for t in trials}
    student, teacher = runs.tokens(by["alone", "ls"]), runs.tokens(by["teacher", "hard"])
    row = of(told, "students", role="student alone", method="label smoothing")
    assert row["agreement_hard"]["mean"] == pytest.approx(
        float((student.predicted == teacher.predicted).mean())
    )
    assert of(told, "students", role="teacher", method="label smoothing")["agreement_hard"]["n"] == 0
    found = runs.translations(by["student", "hard"])
    row = of(told, "students", role="student of the teacher", method="hard targets")
    assert row["bleu"]["mean"] == pytest.approx(bleu(found.texts, found.references).value)


def test_tokens_thirds_and_peaks_on_a_made_up_language(page, world):
    folder, store = world
    told, trials = page("beyond-token-labo")
    assert told["warnings"] == []
    runs = TranslatedRuns(Place(folder, "cpu"))
    run = store.find(next(t.recipe for t in trials if t.labels["method"] == "labo-literal"))
    temperature = runs.best_temperature(run)
    row = of(told, "tokens", name="LABO, equation 16 as printed")
    assert row["temperature"]["mean"] == temperature
    assert row["ece_scaled"]["mean"] == pytest.approx(runs.tokens(run, temperature=temperature).ece())
    assert row["nll"]["mean"] == pytest.approx(runs.tokens(run).nll)
    chosen = [np.exp(np.array(row)) for row in runs.chosen(run)]
    whole = of(told, "translations", name="LABO, equation 16 as printed")
    assert whole["expected_exact"]["mean"] == pytest.approx(np.mean([row.prod() for row in chosen]))

    # What each of nine sentences adds to confidence less accuracy, by leaving it out.
    trial = next(t for t in trials if t.labels["method"] == "labo-literal")
    kept = Trusted(Place(folder, "cpu"))(trial, run)
    tokens = runs.tokens(run)
    ends = np.cumsum(tokens.lengths)
    of_sentence = [np.arange(end - length, end) for end, length in zip(ends, tokens.lengths, strict=True)]

    def gap(rows):
        places = np.concatenate([of_sentence[row] for row in rows])
        return float(tokens.confidence[places].mean() - tokens.right[places].mean())

    every = list(range(9))
    assert kept.measures["gap"] == pytest.approx(gap(every))
    expected = [9 * gap(every) - 8 * gap([row for row in every if row != out]) for out in every]
    assert kept.details["pseudo_values"]["gap"] == pytest.approx(expected, abs=1e-6)
    kept = ChosenTokens(Place(folder, "cpu"))(trial, run)
    rest = np.concatenate(chosen[1:])
    assert kept.details["pseudo_values"]["spread_all"][0] == pytest.approx(
        9 * np.concatenate(chosen).std() - 8 * rest.std()
    )

    # Other pages need nothing new.
    told, _ = page("labo-figure-2", train=None)
    row = of(told, "peaks", name="LABO, equation 16 as printed")
    assert row["mean_all"]["mean"] == pytest.approx(np.concatenate(chosen).mean())
    shares = [
        row["share"]
        for row in told["tables"]["chosen_tokens"]
        if row["method"] == "ls" and row["part"] == "all"
    ]
    assert len(shares) == 20
    assert sum(shares) == pytest.approx(1, abs=1e-3)

    told, _ = page("labo-table-4", train=None)
    task, *_ = runs.loaded(run)
    sources = [task.splits["test"].sources[row][:-1] for row in range(9)]
    train_tokens = np.concatenate(
        [task.splits["train"].sources[row] for row in range(len(task.splits["train"]))]
    )
    scores = frequency_scores(sources, np.bincount(train_tokens, minlength=len(task.tokeniser)))
    most = np.argsort(-scores, kind="stable")[:3]
    found = runs.translations(run)
    expected = bleu([found.texts[i] for i in most], [found.references[i] for i in most]).value
    row = of(told, "thirds_test", method="LABO, equation 16 as printed")
    assert row["most"]["mean"] == pytest.approx(expected)

    told, _ = page("labo-table-1", train=None)
    assert of(told, "bleu_de-en", method="LS")["bleu"]["n"] == 1
    assert of(told, "bleu_de-en", method="CP")["bleu"]["n"] == 0


def test_unigram_smoothing_on_a_made_up_language(page):
    told, _ = page("beyond-unigram")
    assert told["warnings"] == []
    rows = {(row["part"], row["method"]): row["nll"]["mean"] for row in told["tables"]["thirds"]}
    assert len(rows) == 12
    thirds = [rows[part, "unigram smoothing"] for part in ("most", "medium", "least")]
    assert min(thirds) <= rows["all", "unigram smoothing"] <= max(thirds)
