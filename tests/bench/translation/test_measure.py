from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from torch.nn import functional

from benchmarks.clocks import WallClock
from benchmarks.translation import contestants, measure
from benchmarks.translation.contestants import OurRuns, batches, check_lengths, hugging_face, our_decoding
from benchmarks.translation.eager import EagerLoop, Seq2SeqTransformer
from benchmarks.translation.grid import grid
from benchmarks.translation.measure import SizeRound, decoding, measurer
from benchmarks.translation.results import DecodingCase, StepCase, TrainingCase
from benchmarks.translation.sentences import made_up
from benchmarks.translation.sizes import recipe
from softtargets.models import MODELS
from softtargets.training.machinery import Machinery

CPU = torch.device("cpu")
CLOCK = WallClock(CPU)
HOW = ("tiny", 128, "fp32")


@pytest.fixture(scope="module")
def text():
    return made_up(40, 6, CPU, pieces=50)


def test_both_sides_train_and_count_the_same_tokens(text):
    round_ = SizeRound(TrainingCase(*HOW, "synthetic", 1), text, ("eager",), CLOCK, 0.0)
    tokens = int(text.task.splits["train"].targets.lengths.sum())
    for runs in (1, 2):
        result = round_.measure(TrainingCase(*HOW, "synthetic", runs), 0)
        assert [(entry.name, entry.status, entry.reason) for entry in result.entries] == [
            ("ours", "ok", ""),
            ("eager", "ok", ""),
        ]
        ours, eager = result.entries
        assert [speed.tokens for speed in ours.speeds] == [runs * tokens]
        assert [speed.tokens for speed in eager.speeds] == [tokens] * 2  # before and after ours
        assert result.ratio() == pytest.approx(ours.rate / eager.rate)
        assert result.padding == text.task.splits["train"].padding
    steps = round_.steps(StepCase(*HOW, "synthetic"), 0)
    assert [entry.status for entry in steps.entries] == ["ok", "ok"]
    assert steps.ratio == pytest.approx(steps.entries[1].time.median / steps.entries[0].time.median)


def test_larger_packs_go_on_with_the_runs_of_smaller_ones(text):
    ours = OurRuns(
        lambda seed: recipe(*HOW, seed), text, Machinery(recipe(*HOW), text.task, CPU, stacked=False)
    )
    for runs in (1, 3, 2):
        ours.pack(runs)()
    assert [slot.recipe.seed for slot in ours._all.slots] == [0, 1, 2]
    assert [slot.step // ours.steps for slot in ours._all.slots] == [3, 2, 1]


def test_the_rival_is_given_the_batches_of_our_first_epoch(text):
    given = recipe(*HOW)
    found = batches(given, text)
    epoch = text.task.epoch(given, 0)
    assert [batch.tokens for batch in found] == list(epoch.units)
    assert [(*batch.source.shape, batch.prefix.shape[1]) for batch in found] == [
        (shape.rows, shape.source, shape.target) for shape in epoch.shapes
    ]


@pytest.mark.parametrize("share", ["all", "decoder", "none"])
def test_the_rivals_model_has_our_weights_and_two_norms_more(share):
    options = {
        "width": 16,
        "heads": 2,
        "inner": 24,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "dropout": 0.1,
        "share": share,
    }
    rival, ours = Seq2SeqTransformer(50, **options), MODELS["transformer"](vocabulary=50, **options)
    count = [sum(weight.numel() for weight in net.parameters()) for net in (rival, ours)]
    assert count[0] == count[1] + 2 * 2 * 16  # nn.Transformer ends both stacks with a norm
    # Nor does it drop anything where ours does not.
    dropping = [module for module in rival.modules() if isinstance(module, torch.nn.Dropout) and module.p > 0]
    ours_drop = [module for module in ours.modules() if type(module).__name__ == "Dropout" and module.p > 0]
    assert len(dropping) == len(ours_drop) - 1  # one for both embeddings
    assert all(m.dropout == 0 for m in rival.modules() if isinstance(m, torch.nn.MultiheadAttention))


def test_the_rivals_loss_is_that_of_each_sentence_alone(text):
    made = batches(recipe(*HOW), text)[:1]
    torch.manual_seed(0)
    model = Seq2SeqTransformer(50, 16, 2, 24, 1, 1, dropout=0.0, share="none")
    total, count = 0.0, 0
    for source, prefix, labels in zip(made[0].source, made[0].prefix, made[0].labels, strict=True):
        there = labels != -100
        if there.any():
            logits = model.train()(source[source != 0][None], prefix[there][None])[0]
            total += functional.cross_entropy(
                logits, labels[there], label_smoothing=0.1, reduction="sum"
            ).item()
            count += int(there.sum())
    assert EagerLoop(model, made, 0.1, bf16=False).epoch() == pytest.approx(total / count, rel=1e-4)
    assert count == made[0].tokens


def test_ours_goes_on_to_the_last_token_and_who_stops_early_is_refused(text):
    case = DecodingCase("tiny", 3, 7, 8, "fp32", "synthetic")
    found = our_decoding(case, text, CPU)()
    check_lengths(found, case)
    assert all(2 not in tokens for tokens in found)
    with pytest.raises(RuntimeError, match="8 translations, 1 of them of other than 7 tokens: \\[6\\]"):
        check_lengths([found[0][:-1], *found[1:]], case)
    with pytest.raises(RuntimeError, match="7 translations"):
        check_lengths(found[1:], case)


class FakeModel:
    """Stands in for a package that is not installed: says what it was asked for."""

    asked: ClassVar[list] = []

    def __init__(self, config):
        self.config = config

    def to(self, *_):
        return self

    def eval(self):
        return self

    def generate(self, input_ids, attention_mask, generation_config):
        self.asked.append((input_ids, attention_mask, generation_config))
        first = torch.ones(len(input_ids), 1, dtype=torch.int64)
        return torch.cat((first, input_ids[:, :1].expand(-1, generation_config["max_new_tokens"])), 1)


@pytest.fixture
def faked(monkeypatch):
    FakeModel.asked.clear()
    module = SimpleNamespace(MarianConfig=dict, GenerationConfig=dict, MarianMTModel=FakeModel)
    monkeypatch.setitem(sys.modules, "transformers", module)
    monkeypatch.setattr(contestants, "installed", lambda *_, **__: module)
    return FakeModel


def test_hugging_face_is_asked_for_the_same(text, faked):
    case = DecodingCase("tiny", 3, 7, 6, "fp32", "synthetic")
    found = hugging_face(case, 4, text, CPU)()
    check_lengths(found, case)
    # In the order of the sources, though batches are of similar length.
    assert [row[0] for row in found] == [source[0] for source in text.sources]
    assert [len(ids) for ids, *_ in faked.asked] == [4, 2]
    lengths = [int(row.sum()) for _, mask, _ in faked.asked for row in mask]
    assert lengths == sorted(len(source) + 1 for source in text.sources)
    options = faked.asked[0][2]
    assert [options[name] for name in ("min_new_tokens", "max_new_tokens", "num_beams")] == [7, 7, 3]


def test_decoding_is_timed_in_turns_and_who_is_absent_is_named(text, faked, monkeypatch):
    case = DecodingCase("tiny", 2, 4, 6, "fp32", "synthetic")
    names = ("ours", "hugging face 6")
    result = decoding(case, text, CLOCK, names, 2, 0)
    assert [entry.status for entry in result.entries] == ["ok", "ok"]
    assert [entry.time.repetitions for entry in result.entries] == [2, 2]
    assert result.rival == "hugging face 6"
    assert result.ratio == pytest.approx(result.entries[1].time.median / result.entries[0].time.median)
    monkeypatch.undo()
    absent = decoding(case, text, CLOCK, names, 1, 0).entry("hugging face 6")
    assert absent.status == "absent" or absent.time is not None  # where the package is installed


def test_who_breaks_is_written_down_and_the_others_are_measured(text, monkeypatch):
    def full(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    round_ = SizeRound(TrainingCase(*HOW, "synthetic", 1), text, ("eager",), CLOCK, 0.0)
    monkeypatch.setattr(round_._ours, "pack", full)
    result = round_.measure(TrainingCase(*HOW, "synthetic", 1), 0)
    assert (result.entry("ours").status, result.entry("ours").reason) == ("failed", "out of memory")
    assert result.entry("eager").rate > 0
    assert result.ratio() is None


def test_cases_of_one_size_share_a_round(text, monkeypatch):
    made = []

    class Round:
        def __init__(self, case, *_):
            made.append(case.size)

        def measure(self, case, session):
            return case

        steps = measure

    monkeypatch.setattr(measure, "SizeRound", Round)
    monkeypatch.setattr(measure, "read_text", lambda *_: text)
    chosen = grid("cpu", sizes="tiny,base", packs="1,2", decoded="none", synthetic=True)
    run = measurer(chosen, CPU, 0)
    assert [run(case) for case in chosen.cases] == list(chosen.cases)
    assert made == ["tiny", "base"]


@pytest.mark.cuda
def test_everything_on_a_gpu():
    device = torch.device("cuda")
    text = made_up(400, 40, device, pieces=200)
    how = ("tiny", 512, "bf16")
    round_ = SizeRound(TrainingCase(*how, "synthetic", 1), text, ("eager",), WallClock(device), 0.05)
    for runs in (1, 3):
        result = round_.measure(TrainingCase(*how, "synthetic", runs), 0)
        assert [entry.reason for entry in result.entries] == ["", ""]
        assert result.ratio() > 0
    assert round_.steps(StepCase(*how, "synthetic"), 0).ratio > 0
    case = DecodingCase("tiny", 5, 12, 40, "bf16", "synthetic")
    assert decoding(case, text, WallClock(device), ("ours",), 2, 0).rate() > 0
