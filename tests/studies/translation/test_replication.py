"""The replication's Transformer: its computations by loops, and claims of its figures 4 and 5 that fall one by one."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from softtargets.claims import judge
from softtargets.models import Transformer
from softtargets.studies import STUDIES, Place, Trial, find_study
from softtargets.studies.translation import replication
from softtargets.studies.translation.curves import at
from softtargets.studies.translation.protocols import REPLICATED
from softtargets.studies.translation.replication import AsReplicated, with_divided_states
from softtargets.studies.wagner_figure_4.measures import TransformerCalibration
from softtargets.studies.wagner_figure_5.measures import HIGH, LOW
from softtargets.translation import PAD, bleu

from .small import ece, made_up, recipes, said_one_by_one

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")
FIGURE_4, FIGURE_5 = (find_study(STUDIES, f"wagner-figure-{number}") for number in (4, 5))


def padded_batches(task, model, size, split="validation"):
    """Logits (rows, T, V) and labels (rows, T) with padding as the replication has it, by lists."""
    sentences = task.splits[split]
    for begin in range(0, len(sentences), size):
        rows = range(begin, min(begin + size, len(sentences)))
        sides = []
        for side in (sentences.sources, sentences.targets):
            longest = max(len(side[row]) for row in rows)
            sides.append(torch.tensor([side[row] + [PAD] * (longest - len(side[row])) for row in rows]))
        source, labels = sides
        prefix = torch.cat((torch.ones(len(labels), 1, dtype=torch.int64), labels[:, :-1]), 1)
        with torch.no_grad():
            yield model.eval()(source, prefix), labels


@pytest.fixture
def theirs(store, runs, monkeypatch):
    monkeypatch.setattr(replication, "BATCH", 7)
    computed = AsReplicated(runs, store.find(recipes()[0]))
    return computed, computed._task, computed._model


def test_padding_counts_as_it_does_there(theirs):
    computed, task, model = theirs
    for temperature in (1.0, 2.0):
        said = [
            ((logits / temperature).softmax(-1).flatten(0, 1), labels.flatten())
            for logits, labels in padded_batches(task, model, 7)
        ]
        assert computed.tokens(temperature).ece() == pytest.approx(ece(said), abs=1e-4)
        place = computed.sweep((temperature,))
        assert place.ece[0] == pytest.approx(ece(said), abs=1e-4)
    labels = torch.cat([labels for _, labels in said])
    assert len(computed.tokens()) == len(labels), "every place counts"


def test_likelihoods_are_over_time_as_there(theirs):
    computed, task, model = theirs
    for temperature, found in zip((0.5, 1.0), computed.likelihood_over_time((0.5, 1.0)), strict=True):
        means = []
        for logits, labels in padded_batches(task, model, 7):
            costs = []
            for row in range(len(labels)):
                for t, token in enumerate(labels[row].tolist()):
                    if token != PAD:
                        column = [float(z) / temperature for z in logits[row, :, token]]
                        costs.append(math.log(sum(math.exp(z) for z in column)) - column[t])
            means.append(sum(costs) / len(costs))
        assert found == pytest.approx(sum(means) / len(means), abs=1e-4)


def test_greedy_decoding_divides_hidden_states_and_not_the_bias(theirs):
    computed, task, model = theirs
    with torch.no_grad():
        model.head.bias.copy_(torch.linspace(-3, 3, len(model.head.bias)))
    states = torch.randn(4, model.head.in_features)
    other = with_divided_states(model, 4.0)
    assert torch.allclose(other.head(states), model.head(states / 4.0), atol=1e-5)
    sentences = task.splits["validation"]
    texts = []
    for row in range(6):
        source, prefix = torch.tensor(sentences.sources[row])[None], [1]
        most = int(1.2 * (source.shape[1] - 1)) + 10
        while prefix[-1] != 2 and len(prefix) <= most:
            with torch.no_grad():
                state = model.eval().features(source, torch.tensor(prefix)[None])[0, -1]
                prefix.append(int(model.head(state / 4.0).argmax()))
        texts.append(task.tokeniser.decode([prefix[1:]])[0])
    references = list(sentences.texts.targets[:6])
    assert computed.bleu(4.0, 6) == pytest.approx(bleu(texts, references).value, abs=1e-9)


def test_what_figure_4_measures(store, data_dir, runs):
    run = store.find(recipes()[0])
    found = TransformerCalibration(Place(data_dir, "cpu"))(Trial(run.recipe, {}), run).measures
    task, _, model = runs.loaded(run)
    (batch,) = padded_batches(task, model, 128)
    empty = batch[1] == PAD
    assert found["padding"] == pytest.approx(float(empty.double().mean()))
    sure = batch[0].softmax(-1).amax(-1)
    assert found["padding_confidence"] == pytest.approx(float(sure[empty].mean()), abs=1e-3)
    assert found["held_out_ece"] == pytest.approx(ece(said_one_by_one(task, model, "validation")), abs=1e-4)
    hot = {
        t: ece(said_one_by_one(task, model, "validation", t))
        for t in (found["temperature"], 0.5, 1.0, 2.0, 3.0)
    }
    assert min(hot.values()) == hot[found["temperature"]]
    scaled = said_one_by_one(task, model, "test", found["temperature"])
    assert found["scaled_ece"] == pytest.approx(ece(scaled), abs=1e-4)


def told_4(size="full", **changed):
    known = {
        "soft": 0.02,
        "scaled": 0.01,
        "padded_soft": 0.11,
        "padded_scaled": 0.058,
        "padded": 0.449,
    } | changed

    def measures(trial):
        jitter, hard = 1e-4 * trial.recipe.seed, trial.labels["alpha"] == 0
        found = {
            "ece": 0.06 if hard else known["soft"],
            "held_out_ece": 0.06 if hard else known["soft"],
            "scaled_ece": known["scaled"],
            "padded_ece": known["padded"] if hard else known["padded_soft"],
            "padded_scaled_ece": known["padded_scaled"],
        }
        return {key: value + jitter * (1 + hard) for key, value in found.items()}

    return made_up(FIGURE_4, measures, size)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"soft": 0.1}, {0}),
        ({"scaled": 0.05}, {1}),
        ({"padded_soft": 0.6}, {2}),
        ({"padded_scaled": 0.2}, {3}),
        ({"padded": 0.03, "padded_soft": 0.02, "padded_scaled": 0.01}, {4}),
    ],
)
def test_a_claim_of_figure_4_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(FIGURE_4.claims(told_4(**changed)))
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


@pytest.mark.parametrize("size", replication.SIZES)
def test_what_differs_is_said_of_the_size_that_was_trained(size):
    results = told_4(size)
    recipe = results.outcomes[0].trial.recipe
    said = " ".join(replication.deviations(results))
    assert ("ours 2,048 tokens" in said) == (recipe.batch == 2048)
    assert ("bf16" in said) == (recipe.precision == "bf16")


def test_printed_differences_are_those_of_table_3():
    judged = judge(FIGURE_4.claims(told_4()))
    assert [one.claim.printed for one in judged] == [None, None, -0.339, -0.052, None]
    assert [one.value for one in judged[2:4]] == ["reproduced"] * 2
    assert judge(FIGURE_4.claims(told_4(padded=0.2)))[2].value == "contradicted"
    assert FIGURE_4.findings(told_4()).answer.startswith("With padding left out, smoothing of 0.3 lowers")
    assert {one.verdict for one in judge(FIGURE_4.claims(told_4("small")))} == {"not run yet"}


def told_5(**changed):
    known = {
        "cooler": 1.1,
        "replicated": 1.1,
        "bleu": 30.1,
        "low": 2.0,
        "high": 3.0,
        "time_low": 2.0,
        "time_high": 3.0,
    }
    known |= changed

    def measures(trial):
        jitter, soft = 1e-4 * trial.recipe.seed, trial.labels["alpha"] > 0
        found = {
            "temperature": known["cooler"] if soft else 1.6,
            "replicated_temperature": known["replicated"] if soft else 1.8,
            at("bleu", 1.0): known["bleu"] if soft else 30.0,
            at("nll", LOW): known["low"] if soft else 2.5,
            at("nll", HIGH): known["high"] if soft else 2.5,
            at("replicated_nll", LOW): known["time_low"] if soft else 2.5,
            at("replicated_nll", HIGH): known["time_high"] if soft else 2.5,
        }
        return {key: value + jitter * (1 + soft) for key, value in found.items()}

    return made_up(FIGURE_5, measures)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"cooler": 2.0}, {0}),
        ({"replicated": 2.2}, {1}),
        ({"bleu": 31.5}, {2}),
        ({"low": 2.8}, {3}),
        ({"high": 2.2}, {4}),
        ({"time_low": 2.8}, {5}),
        ({"time_high": 2.2}, {6}),
    ],
)
def test_a_claim_of_figure_5_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(FIGURE_5.claims(told_5(**changed)))
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)
    assert judged[1].claim.printed == pytest.approx(-0.7)


def test_the_answer_of_figure_5():
    assert FIGURE_5.findings(told_5()).answer == (
        "With smoothing of 0.3 the best temperature is lower than with hard targets. BLEU does not rise by half a "
        "point or more."
    )


def test_the_network_has_the_weights_of_pytorchs_tutorial():
    """Two embeddings and a last layer of their own; PyTorch's stacks have a norm more at their ends."""
    options = {key: value for key, value in REPLICATED.model.to_dict().items() if key != "name"}
    ours = Transformer(vocabulary=50, **options)
    theirs = [nn.Transformer(512, 8, 3, 3, 512, 0.0, batch_first=True), nn.Linear(512, 50)]
    theirs += [nn.Embedding(50, 512), nn.Embedding(50, 512)]
    norms = 2 * 2 * 512
    assert _weights(ours) == sum(map(_weights, theirs)) - norms
    ends = [layer.norm for layer in (theirs[0].encoder, theirs[0].decoder)]
    assert sum(map(_weights, ends)) == norms
    assert ours.head.weight is not ours.embed.target.weight


def _weights(module):
    return sum(parameter.numel() for parameter in module.parameters())
