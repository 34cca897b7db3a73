"""Figure 7 of Müller et al.: which tokens are shown, what is measured of them, and claims that fall one by one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.claims import judge
from softtargets.studies import STUDIES, Place, Trial, find_study
from softtargets.studies.muller_figure_7 import measures as measuring
from softtargets.studies.muller_figure_7.measures import TokenClusters
from softtargets.studies.muller_figure_7.tokens import chosen_tokens

from .small import made_up, recipes, said_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")
STUDY = find_study(STUDIES, "muller-figure-7")


def told(size="full", **changed):
    known = {"train": 0.1, "validation": 0.1, "right": 0.8} | changed

    def measures(trial):
        jitter, soft = 1e-4 * trial.recipe.seed, trial.labels["alpha"] > 0
        found = {f"{split}_accuracy": known["right"] for split in ("train", "validation")}
        for split in ("train", "validation"):
            found[f"{split}_spread_words"] = 0.5 - 0.2 * soft
            found[f"{split}_spread_nouns"] = 0.5 - known[split] * soft
        return {key: value + jitter * (1 + soft) for key, value in found.items()}

    return made_up(STUDY, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [({}, set()), ({"train": -0.1}, {0}), ({"validation": -0.1}, {1}), ({"right": 0.999}, {2})],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.claims(told(**changed)))
    assert len(judged) == 6
    assert {place % 3 for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place % 3 not in fallen)


def test_around_80_per_cent_is_a_number_of_the_papers_corpus():
    judged = judge(STUDY.claims(told("wmt")))
    assert [(one.claim.printed, one.verdict) for one in judged[:2]] == [(0.8, "reproduced")] * 2
    assert judge(STUDY.claims(told("wmt", right=0.92)))[0].verdict == "contradicted"
    assert not any(claim.printed for claim in STUDY.claims(told()))


def test_words_begin_with_a_space_and_nouns_do_not_begin_a_sentence():
    pieces = ["<pad>", "▁Ein", "▁ein", "▁Hund", "▁Mann", "▁Haus", "▁Bus", "heit", "▁a", "▁auf", "▁12"]
    rows = [[1, 4, 9, 2, 3], [1, 3, 2, 4, 8, 8, 8], [1, 6, 7, 10, 10, 6, 7, 6, 7], [5, 2, 5, 9], [], [7, 3]]
    flat = np.array([token for row in rows for token in row], np.int32)
    begins = np.cumsum([0, *map(len, rows)])
    words, nouns = chosen_tokens(pieces, flat, begins).values()
    assert [pieces[place] for place in words] == ["▁Ein", "▁ein", "▁Hund"], "3, 3 and 2, the first of 2"
    assert [pieces[place] for place in nouns] == ["▁Hund", "▁Mann", "▁Haus"], (
        "Ein begins, and Haus counts once"
    )
    assert chosen_tokens(["▁ab", "▁cd"], flat[:1] * 0, np.array([0, 1])) == {}


def test_clusters_are_those_of_single_sentences(store, data_dir, runs, monkeypatch):
    run = store.find(recipes()[1])
    found = TokenClusters(Place(data_dir, "cpu"))(Trial(run.recipe, {}), run)
    task, _, model = runs.loaded(run)
    kept = found.details["words_validation"]
    tokens, pieces = kept["classes"], task.tokeniser.pieces
    counts = np.bincount(task.splits["train"].targets.flat, minlength=len(pieces))
    known = [
        place
        for place, piece in enumerate(pieces)
        if piece.startswith("▁") and piece[1:].isalpha() and len(piece) > 2
    ]
    assert sorted(counts[known])[-3:] == sorted(counts[tokens])
    assert "nouns_validation" not in found.details, "these words have no capitals"
    sentences, flat = task.splits["validation"], {token: [] for token in tokens}
    first, second, third = model.templates.detach()[tokens].double()
    basis = torch.linalg.qr(torch.stack([first - third, second - third], dim=1))[0]
    model = model.eval()
    for row in range(len(sentences)):
        labels = torch.tensor(sentences.targets[row])
        prefix = torch.cat((torch.tensor([1]), labels[:-1]))
        with torch.no_grad():
            states = model.features(torch.tensor(sentences.sources[row])[None], prefix[None])[0].double()
        for state, label in zip(states, labels.tolist(), strict=True):
            if label in flat:
                flat[label].append(state @ basis)
    points = {token: torch.stack(rows) for token, rows in flat.items()}
    means = torch.stack([rows.mean(0) for rows in points.values()])
    within = torch.cat([rows - rows.mean(0) for rows in points.values()]).square().sum(1).mean().sqrt()
    assert found.measures["validation_spread_words"] == pytest.approx(
        float(within / torch.pdist(means).mean()), rel=1e-3
    )
    said = said_one_by_one(task, model, "train")
    right = [float(p.argmax() == y) for rows, labels in said for p, y in zip(rows, labels, strict=True)]
    assert found.measures["train_accuracy"] == pytest.approx(np.mean(right), abs=1e-3)
    monkeypatch.setattr(measuring, "ENOUGH", 300)
    part = TokenClusters(Place(data_dir, "cpu"))(Trial(run.recipe, {}), run).measures
    assert part["train_accuracy"] != found.measures["train_accuracy"], (
        "some batches of a large set are enough"
    )
