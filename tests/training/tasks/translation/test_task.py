"""Translation through the engine: what is computed, resumed, taught and kept."""

from __future__ import annotations

import gc
import warnings
import weakref
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from softtargets import translation
from softtargets.data import Pairs
from softtargets.exceptions import DataError, RecipeError, RunError
from softtargets.losses import REGULARISERS
from softtargets.recipes import (
    BLEU,
    CNN,
    MLP,
    SGD,
    Calibration,
    Digits,
    Distillation,
    LabelSmoothing,
    ParallelText,
    Shift,
    Tatoeba,
)
from softtargets.runs import RunStore
from softtargets.training import probing
from softtargets.training import train as train_anywhere
from softtargets.training.building import build_model
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.scheduling import Resources
from softtargets.training.sizing import footprint
from softtargets.training.tasks import Teacher, TranslationTask, prepare
from softtargets.training.tasks.translation.corpus import digest_of, read_own
from softtargets.training.tasks.translation.sentences import Sentences
from softtargets.translation import EOS, IGNORED, Tokeniser

from ...making import CPU, advanced, finished, same, states
from .counting import recipe, write_corpus

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has:UserWarning")
train = partial(train_anywhere, device="cpu")


@pytest.fixture(scope="session")
def task(corpus):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepare(recipe().data, CPU, corpus)


def started(given, task, checkpoint=None, teacher=None):
    return Pack([Start(given, task, teacher, checkpoint)], Machinery(given, task, CPU, stacked=False))


def steps_of(pack, task):
    """The sentences of each step of the open epoch."""
    feed = pack.on_device.feed
    train_set = task.splits["train"]
    for begin, shape in zip(
        feed._begins[0].tolist(), task.epoch(pack.slots[0].recipe, 0).shapes, strict=True
    ):
        table = train_set.tables[shape.bucket]
        rows = feed._rows[0, begin : begin + shape.rows].tolist()
        yield [int(table.bucket.members[row]) for row in rows if row < len(table)]


# --- what it computes ---


@pytest.mark.parametrize(
    "regulariser", [LabelSmoothing(alpha=0.1), LabelSmoothing(alpha=0.2, prior="unigram")]
)
def test_training_is_what_plain_pytorch_would_do(task, regulariser):
    """An epoch re-derived sentence by sentence without padding: nothing of ours but model, weights and order."""
    plain = recipe(epochs=1, optimiser=SGD(lr=0.1), schedule="constant", regulariser=regulariser)
    plain = plain.replace({"model.dropout": 0.0})
    model = build_model(plain, task).double()
    pack = finished(started(plain, task))
    train_set, prior = task.splits["train"], torch.full((len(task.classes),), 1 / len(task.classes))
    if regulariser.prior == "unigram":
        prior = torch.bincount(torch.tensor(train_set.targets.flat).long(), minlength=len(task.classes))
        prior = prior.double() / prior.sum()
    total, seen = 0.0, []
    for chosen in steps_of(pack, task):
        losses = []
        for one in chosen:
            source, target = torch.tensor([train_set.sources[one]]), torch.tensor(train_set.targets[one])
            log = model(source, torch.tensor([[1, *train_set.targets[one][:-1]]]))[0].log_softmax(-1)
            alpha = regulariser.alpha
            losses.append(
                (1 - alpha) * F.nll_loss(log, target, reduction="none") - alpha * (log @ prior.double())
            )
            seen.append(one)
        losses = torch.cat(losses)
        total += losses.sum().item()
        parameters = list(model.parameters())
        gradients = torch.autograd.grad(losses.mean(), parameters)
        with torch.no_grad():
            for weight, gradient in zip(parameters, gradients, strict=True):
                weight -= 0.1 * gradient
    assert sorted(seen) == list(range(len(train_set)))
    for name, value in model.state_dict().items():
        torch.testing.assert_close(pack.weights(0)[name].double(), value, rtol=1e-3, atol=1e-4)
    (row,) = pack.slots[0].history
    assert row["train_loss"] == pytest.approx(total / len(train_set.targets.flat), rel=1e-5)
    assert "train_accuracy" not in row  # there are no logits of whole batches


@torch.no_grad()
def by_sentence(model, split):
    """Log-probabilities of every label, one sentence at a time in double precision."""
    model = model.double().eval()
    for one in range(len(split)):
        prefix = torch.tensor([[1, *split.targets[one][:-1]]])
        yield (
            model(torch.tensor([split.sources[one]]), prefix)[0].log_softmax(-1),
            torch.tensor(split.targets[one]),
        )


def test_what_is_measured_and_kept_is_that_of_every_sentence_alone(task):
    given = recipe(epochs=1)
    pack = finished(started(given, task))
    model = build_model(given, task)
    model.load_state_dict(pack.weights(0))
    for split in ("validation", "test"):
        kept = task.token_predictions(given, model.float(), split)
        said = list(by_sentence(model, task.splits[split]))
        labels = torch.cat([label for _, label in said])
        logs = torch.cat([log for log, _ in said])
        assert kept.lengths.tolist() == [len(label) for _, label in said]
        assert kept.labels.tolist() == labels.tolist()
        assert kept.predicted.tolist() == logs.argmax(-1).tolist()
        np.testing.assert_allclose(
            kept.costs, F.nll_loss(logs, labels, reduction="none"), rtol=3e-3, atol=1e-4
        )
        np.testing.assert_allclose(kept.confidence, logs.exp().amax(-1), atol=1e-4)
        (row,) = pack.slots[0].history
        assert row[f"{split}_loss"] == pytest.approx(float(F.nll_loss(logs, labels)), rel=1e-5)
        assert row[f"{split}_accuracy"] == pytest.approx(float((logs.argmax(-1) == labels).double().mean()))


def test_calibration_does_not_depend_on_batches(task, monkeypatch):
    given = recipe(epochs=1)
    model = build_model(given, task)
    whole = task.token_predictions(given, model, "test")
    monkeypatch.setattr("softtargets.training.tasks.translation.task.MEASURED", 1)
    alone = task.token_predictions(given, model, "test")
    assert alone.ece() == pytest.approx(whole.ece(), abs=1e-6)
    assert alone.nll == pytest.approx(whole.nll, rel=1e-5)
    assert alone.lengths.tolist() == whole.lengths.tolist()


# --- exactness ---


@pytest.mark.parametrize(
    "changes", [{}, {"average": 0.9}, {"average_last": 2}, {"best_by": "validation_loss"}]
)
def test_a_training_that_is_cut_in_the_middle_of_an_epoch_goes_on_as_if_it_had_not_been(task, changes):
    given = recipe(epochs=3, **changes)
    whole = finished(started(given, task))
    steps = whole.slots[0].course.steps_per_epoch
    for cut in (1, steps - 1, steps + 2):
        saved = advanced(started(given, task), cut).save(0)
        again = finished(started(given, task, saved))
        assert same(states(whole), states(again))
        assert same(whole.weights(0), again.weights(0))
        assert whole.slots[0].history == again.slots[0].history


def test_seeds_differ_and_one_seed_is_one_training(task):
    one, again, other = (finished(started(recipe(seed=seed), task)) for seed in (0, 0, 1))
    assert same(states(one), states(again))
    assert not same(states(one), states(other))


# --- every loss ---


@pytest.mark.parametrize(
    "name", [name for name in REGULARISERS if name not in ("distillation", "forward_correction")]
)
def test_every_loss_trains_on_tokens_or_is_refused_by_name(task, name):
    given = recipe(regulariser={"name": name})
    if name == "cs_kd":
        with pytest.raises(RecipeError, match="cs_kd is for images"):
            task.check(given, None)
        return
    task.check(given, None)
    pack = finished(started(given, task))
    assert pack.slots[0].failure is None
    assert pack.slots[0].history[-1]["train_loss"] < pack.slots[0].history[0]["train_loss"] * 1.01


def test_a_loss_is_the_same_with_and_without_whole_logits(task, monkeypatch):
    found = []
    for fused in (True, False):
        monkeypatch.setattr(TranslationTask, "fuses_head", lambda self, recipe, fused=fused: fused)
        pack = advanced(started(recipe(regulariser={"name": "labo", "warmup_steps": 3}), task), 6)
        found.append(pack.on_device._losses[0, :6].tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-5)
    assert len(set(found[0])) == 6


def test_a_student_learns_what_its_teacher_says_of_every_token(task):
    taught = recipe(epochs=1, seed=5)
    model = build_model(taught, task)
    model.load_state_dict(finished(started(taught, task)).weights(0))
    soft = Distillation(teacher=taught, temperature=2.0, beta=0.7)
    given = recipe(regulariser=soft, epochs=1, optimiser=SGD(lr=0.0001), schedule="constant").replace(
        {"model.dropout": 0.0}
    )
    pack = finished(started(given, task, teacher=Teacher(taught, model, task)))
    student = build_model(given, task)
    chosen = next(steps_of(pack, task))
    split, losses = task.splits["train"], []
    for one in chosen:
        source, prefix = torch.tensor([split.sources[one]]), torch.tensor([[1, *split.targets[one][:-1]]])
        log = student.train()(source, prefix)[0]
        said = (model.eval()(source, prefix)[0] / 2.0).softmax(-1)
        hard = F.cross_entropy(log, torch.tensor(split.targets[one]), reduction="none")
        losses.append(0.3 * hard - 0.7 * (said * log.log_softmax(-1)).sum(-1))
    assert float(pack.on_device._losses[0, 0]) == pytest.approx(torch.cat(losses).mean().item(), rel=1e-4)


# --- a whole run ---


@pytest.fixture(scope="module")
def learnt(corpus, tmp_path_factory):
    """A run that has learnt to count."""
    given = recipe(epochs=30, seed=1, probes=(BLEU(every=100), Calibration(every=1000))).replace(
        {
            "model.width": 32,
            "model.inner": 64,
            "model.norm": "pre",
            "model.dropout": 0.0,
            "optimiser.lr": 0.01,
        }
    )
    (run,) = train([given], RunStore(tmp_path_factory.mktemp("runs")), data_dir=corpus)
    return run


def test_it_learns_to_count(learnt):
    history = learnt.history()
    assert history[-1]["test_loss"] < 0.6 * history[0]["test_loss"]
    course = [row["bleu.validation_bleu"] for row in history if "bleu.validation_bleu" in row]
    assert course[0] < 10 < 25 < course[-1]
    assert 0 < history[-1]["calibration.test_ece"] < 1


def test_instruments_look_at_every_run_with_one_net_and_one_searcher(task, monkeypatch):
    """A net of tens of millions of weights, and what a GPU records for it, take longer to make than to look at."""
    watched = [recipe(epochs=2, seed=seed, probes=(BLEU(every=4, sentences=20),)) for seed in range(3)]
    built, searchers = [], []
    real_build, real_searcher = probing.build_model, translation.Searcher
    monkeypatch.setattr(probing, "build_model", lambda *of: built.append(of) or real_build(*of))
    monkeypatch.setattr(
        translation, "Searcher", lambda *of, **how: searchers.append(of) or real_searcher(*of, **how)
    )
    starts = [Start(each, task) for each in watched]
    pack = finished(Fleet(starts, Machinery(watched[0], task, CPU, stacked=False)))
    looks = [row for slot in pack.slots for row in slot.history if "bleu.validation_bleu" in row]
    assert len(looks) >= 6
    assert (len(built), len(searchers)) == (1, 1)
    for run, (each, slot) in enumerate(zip(watched, pack.slots, strict=True)):
        model = build_model(each, task)
        model.load_state_dict(pack.weights(run))
        found = task.translate(each, model, "validation", 20, beam=1)
        texts = task.tokeniser.decode([best.tokens for best, *_ in found])
        wanted = translation.bleu(texts, task.splits["validation"].texts.targets[:20]).value
        assert slot.history[-1]["bleu.validation_bleu"] == pytest.approx(wanted)


def test_what_is_kept_can_be_used_without_the_corpus(learnt, task):
    from softtargets.translation import Tokeniser

    tokeniser = Tokeniser.from_json(learnt.about_weights()["tokeniser"])
    assert tokeniser == task.tokeniser
    kept = learnt.kept("test")
    assert set(kept) == {"labels", "predicted", "codes", "lengths"}
    compact = learnt.compact("test")
    assert learnt.has_compact("test")
    assert compact.right.mean() == pytest.approx(learnt.summary["test_accuracy"], abs=1e-6)
    assert compact.costs.mean() == pytest.approx(learnt.summary["test_loss"], rel=1e-3)
    told = learnt.provenance
    assert told["tokeniser"] == tokeniser.digest
    assert told["vocabulary"] == len(tokeniser)
    assert 0 <= told["padding"] < 0.5
    assert told["cleaning"].startswith("160 of 160 sentence pairs were kept")
    assert learnt.units == told["tokens"] == 30 * len(task.splits["train"].targets.flat)


# --- what is refused ---


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"model": MLP()}, "model: mlp is for images; translate with transformer"),
        ({"model": CNN()}, "model: cnn is for images"),
        ({"batch": 8}, "batch: a batch of 8 tokens is too small for a sentence of"),
        ({"model.longest": 5}, "model.longest: 5 is less than the"),
        ({"augmentation": (Shift(),)}, "shift is for images, but parallel-text has tokens"),
    ],
)
def test_what_cannot_be_trained_is_refused(task, changes, says):
    with pytest.raises(RecipeError, match=says):
        task.check(recipe(**changes), None)


def test_a_held_out_sentence_that_is_too_long_is_named(task):
    split = task.splits["test"]
    sides = np.maximum(split.sources.lengths, split.targets.lengths)
    pair = int(np.flatnonzero(sides == sides.max())[0]) + 1
    # What is trained on is short enough.
    short = Sentences.of([[5]], [[5]], Pairs(("a",), ("b",)), {}, CPU)
    given = recipe(**{"model.longest": int(sides.max()) - 1})
    with pytest.raises(
        RecipeError,
        match=f"the {sides.max()} tokens of the longest sentence in the test split, pair {pair}; shorten",
    ):
        replace(task, splits={"train": short, "test": split}).check(given, None)


def test_images_are_no_sentences():
    given = recipe().replace({"data": Digits()})
    with pytest.raises(
        RecipeError, match="model: transformer is a network for translation, but digits has images"
    ):
        prepare(given.data, CPU).check(given, None)
    probed = given.replace({"model": MLP(), "probes": (BLEU(),), "data.validation": 10})
    with pytest.raises(RecipeError, match="bleu is for translations"):
        prepare(probed.data, CPU).check(probed, None)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"limit": 161}, "data.limit: 161 is more than the 160 training pairs"),
        ({"validation": 160}, "data.validation: 160 leaves nothing to train on"),
    ],
)
def test_a_corpus_that_leaves_nothing_is_refused(corpus, data, says):
    part = recipe().replace({f"data.{key}": value for key, value in data.items()}).data
    with pytest.raises(RecipeError, match=says):
        prepare(part, CPU, corpus)


def test_a_corpus_of_nothing_but_lopsided_pairs_is_refused(tmp_path):
    (tmp_path / "odd").mkdir()
    for part in ("train", "validation", "test"):
        (tmp_path / "odd" / f"{part}.a").write_text("eins zwei drei vier fünf sechs\n" * 3, encoding="utf-8")
        (tmp_path / "odd" / f"{part}.b").write_text("z\n" * 3, encoding="utf-8")
    part = ParallelText(corpus="odd", source="a", target="b", vocabulary=30)
    with pytest.raises(RecipeError, match="nothing is left to train on: 0 of 3 sentence pairs were kept"):
        prepare(part, CPU, tmp_path)


def test_one_direction_must_be_english():
    with pytest.raises(RecipeError, match="there are no pairs from de to fr: one of the two must be en"):
        Tatoeba(source="de", target="fr")
    with pytest.raises(RecipeError, match="en is also the source"):
        Tatoeba(source="en", target="en")


def test_text_that_was_changed_is_refused(tmp_path):
    folder = write_corpus(tmp_path, train=20, held_out=3)
    own = read_own(folder / "numbers", "digits", "words")
    part = ParallelText(
        corpus="numbers", source="digits", target="words", vocabulary=40, ratio=None, digest=digest_of(own)
    )
    prepare(part, CPU, folder)
    with (folder / "numbers" / "test.words").open("r+", encoding="utf-8") as file:
        file.write("neun")
    with pytest.raises(DataError, match="is not that of the recipe: its digest is"):
        prepare(part, CPU, folder)


# --- splits ---


def test_a_limit_takes_pairs_that_are_drawn_once_and_validation_can_be_cut_out(corpus):
    def prepared(**changes):
        return prepare(
            recipe().replace({f"data.{key}": value for key, value in changes.items()}).data, CPU, corpus
        )

    whole, less, cut = prepared(), prepared(limit=40), prepared(validation=30, limit=100)
    pairs = set(whole.splits["train"].texts)
    assert len(less.splits["train"]) == 40
    assert set(less.splits["train"].texts) <= pairs
    assert list(less.splits["train"].texts) != list(whole.splits["train"].texts)[:40]
    assert len(cut.splits["validation"]) == 30
    assert len(cut.splits["train"]) == 100
    texts = [*cut.splits["train"].texts, *cut.splits["validation"].texts]
    assert len(set(texts)) >= len(set(texts) & pairs) > 100


def test_memory_is_told_beforehand(task):
    need = footprint(recipe(), task, CPU, stacked=False)
    assert need.of(1) > 4 * sum(weight.numel() for weight in build_model(recipe(), task).parameters())


def test_no_label_of_a_training_set_is_padding_in_a_loss(task):
    pack = advanced(started(recipe(), task), 1)
    shape = task.epoch(recipe(), 0).shapes[0]
    shown = pack.on_device.feed.batch(torch.tensor([0]), shape)
    counted = shown.labels[shown.labels != IGNORED]
    assert len(counted) == task.epoch(recipe(), 0).units[0]
    assert int((counted == EOS).sum()) <= shape.rows


def with_other_pieces(task):
    """The same corpus, as another version of the package that learns pieces might cut it."""
    pieces = list(task.tokeniser.pieces)
    pieces[-1], pieces[-2] = pieces[-2], pieces[-1]
    return replace(task, tokeniser=Tokeniser(pieces, task.tokeniser.merges))


def test_weights_of_other_pieces_are_neither_gone_on_with_nor_measured_nor_taught_by(task, corpus, tmp_path):
    other = with_other_pieces(task)
    saved = advanced(started(recipe(), task), 3).save(0)
    with pytest.raises(RunError, match=f"{task.tokeniser.digest}, but the text now gives {other.learnt}"):
        started(recipe(), other, saved)
    store = RunStore(tmp_path)
    (run,) = train([recipe(epochs=1)], store, data_dir=corpus)
    resources = Resources(store, CPU, corpus)
    assert resources.restored(run, task)
    with pytest.raises(RunError, match=f"run {run.id} was trained with the tokeniser"):
        resources.restored(run, other)
    resources._kept[run.recipe.data] = other
    with pytest.raises(RunError, match=f"run {run.id} was trained with the tokeniser"):
        resources.teacher(recipe(regulariser=Distillation(teacher=run.recipe)))


def test_nothing_keeps_a_task_that_nobody_uses_any_more(corpus):
    task = prepare(recipe().data, CPU, corpus)
    pack = advanced(started(recipe(), task), 2)
    gone = weakref.ref(task), weakref.ref(task.layout(recipe()))
    del task, pack
    gc.collect()
    assert [one() for one in gone] == [None, None]
