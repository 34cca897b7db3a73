"""Who takes part: our engine, the loop around ``nn.Transformer``, our beam search, Hugging Face's `generate`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from benchmarks.failures import installed
from benchmarks.translation.eager import IGNORED, Batch, EagerLoop, Seq2SeqTransformer
from benchmarks.translation.results import COMPILED, DecodingCase
from benchmarks.translation.sentences import Text
from benchmarks.translation.sizes import SIZES
from softtargets.models import MODELS
from softtargets.recipes import LabelSmoothing, Recipe
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Start
from softtargets.training.precision import autocast, float32_products
from softtargets.translation import BOS, EOS, PAD, Searcher

SEED = 0


class OurRuns:
    """Runs as the engine's loop holds them, each on a stream of its own, without its files.

    They are made once and go on: a larger pack has the runs of the smaller ones, and some more.
    """

    def __init__(self, recipe: Callable[[int], Recipe], text: Text, machinery: Machinery) -> None:
        self._recipe, self._task = recipe, text.task
        self._machinery = machinery
        self._all = Fleet([], machinery)

    def pack(self, runs: int) -> Callable[[], int]:
        """What trains the first so many runs for an epoch, and says how many tokens that were."""
        there = list(range(len(self._all.slots)))
        new = [Start(self._recipe(seed), self._task) for seed in range(len(there), runs)]
        if new:
            self._all = Fleet(new, self._machinery, self._all.still(there))
        fleet = Fleet([], self._machinery, self._all.still(range(runs)))
        steps = fleet.slots[0].course.steps_per_epoch

        def epoch() -> int:
            before = sum(slot.units for slot in fleet.slots)
            with float32_products(self._recipe(0).precision):
                for _ in range(steps):
                    if due := fleet.advance():
                        fleet.measure(due)
            # A run that has failed is no longer trained, which would look like speed.
            for slot in fleet.slots:
                if slot.failure is not None:
                    raise RuntimeError(f"a run diverged: {slot.failure}")
            return sum(slot.units for slot in fleet.slots) - before

        return epoch

    @property
    def steps(self) -> int:
        """Of an epoch."""
        return len(self._task.epoch(self._recipe(0), 0).shapes)


def batches(recipe: Recipe, text: Text) -> list[Batch]:
    """The batches of our first epoch, with labels counted anew."""
    task = text.task
    device = task.splits["train"].device
    feed = task.feed([recipe], [task], Machinery(recipe, task, device, stacked=False, plain=True))
    feed.open(torch.zeros(1, dtype=torch.int64, device=device))
    made = []
    for place, shape in enumerate(task.epoch(recipe, 0).shapes):
        shown = feed.batch(torch.tensor([place], device=device), shape)
        source, prefix = (each[0].contiguous() for each in shown.inputs)
        labels = shown.labels.view(prefix.shape)
        made.append(Batch(source, prefix, labels, int((labels != IGNORED).sum())))
    return made


def eager(name: str, recipe: Recipe, text: Text, device: torch.device) -> Callable[[], int]:
    """What trains the rival's model for an epoch, and says how many tokens that were."""
    part = vars(recipe.model)
    known = ("width", "heads", "inner", "encoder_layers", "decoder_layers", "dropout", "share")
    assert isinstance(recipe.regulariser, LabelSmoothing)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = Seq2SeqTransformer(text.pieces, **{option: part[option] for option in known}).to(device)
    smoothing, bf16 = recipe.regulariser.alpha, recipe.precision == "bf16"
    loop = EagerLoop(model, batches(recipe, text), smoothing, bf16, compiled=name == COMPILED)

    def epoch() -> int:
        with eager_products(recipe.precision, device):
            if not math.isfinite(loop.epoch()):
                raise RuntimeError("the loop diverged")
        return loop.tokens

    return epoch


def eager_products(precision: str, device: torch.device) -> AbstractContextManager[None]:
    """What is left in float32 on the rival's side may use TF32 on a GPU."""
    return float32_products("tf32" if device.type == "cuda" and precision != "fp32" else precision)


# --- decoding ---


def our_decoding(case: DecodingCase, text: Text, device: torch.device) -> Callable[[], list[list[int]]]:
    """Our beam search; the end of a sentence has no probability, so that all go on to the last token."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model: Any = MODELS["transformer"](vocabulary=text.pieces, **vars(SIZES[case.size].model))
    with torch.no_grad():
        model.head.bias[EOS] = -math.inf
    model.to(device)
    sources = _sources(case, text)
    searcher = Searcher(model, case.beam)

    def search() -> list[list[int]]:
        with autocast(case.precision, device):
            found = searcher(sources, case.length)
        return [best[0].tokens for best in found]

    return search


def hugging_face(
    case: DecodingCase, batch: int, text: Text, device: torch.device
) -> Callable[[], list[list[int]]]:
    """`generate` of a Marian model of the same size with the same beam, `batch` sentences of similar length at a time.

    Its weights are in the low precision itself, which is faster than autocast.
    """
    transformers = installed("transformers", title="Hugging Face transformers")
    part = SIZES[case.size].model
    longest = max(case.length + 1, max(map(len, text.sources)) + 1)
    config = transformers.MarianConfig(
        vocab_size=text.pieces,
        d_model=part.width,
        encoder_layers=part.encoder_layers,
        decoder_layers=part.decoder_layers,
        encoder_attention_heads=part.heads,
        decoder_attention_heads=part.heads,
        encoder_ffn_dim=part.inner,
        decoder_ffn_dim=part.inner,
        activation_function="relu",
        max_position_embeddings=longest,
        scale_embedding=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )
    # All of it said here: what a configuration of a model leaves to `generate` differs from version to version.
    asked = transformers.GenerationConfig(
        num_beams=case.beam,
        do_sample=False,
        min_new_tokens=case.length,
        max_new_tokens=case.length,
        use_cache=True,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        model = transformers.MarianMTModel(config)
    model.to(device, torch.bfloat16 if case.precision == "bf16" else torch.float32).eval()
    sources = _sources(case, text)
    order = sorted(range(len(sources)), key=lambda place: len(sources[place]))

    @torch.no_grad()
    def generate() -> list[list[int]]:
        found: list[list[int]] = [[] for _ in sources]
        for begin in range(0, len(order), batch):
            chosen = order[begin : begin + batch]
            tokens = _padded([sources[place] for place in chosen]).to(device)
            with _same_products(case.precision):
                seen = (tokens != PAD).long()
                said = model.generate(input_ids=tokens, attention_mask=seen, generation_config=asked)
            for place, row in zip(chosen, said[:, 1:].tolist(), strict=True):
                found[place] = row
        return found

    return generate


def check_lengths(found: Sequence[Sequence[int]], case: DecodingCase) -> None:
    """Who gives shorter translations, or fewer, has done less."""
    wrong = [len(tokens) for tokens in found if len(tokens) != case.length]
    if wrong or len(found) != case.sentences:
        raise RuntimeError(
            f"{len(found)} translations, {len(wrong)} of them of other than {case.length} tokens: {wrong[:3]}"
        )


def _sources(case: DecodingCase, text: Text) -> list[list[int]]:
    """As many as asked for, from the beginning again where there are fewer; with the end."""
    there = text.sources
    return [[*there[place % len(there)], EOS] for place in range(case.sentences)]


def _padded(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])


def _same_products(precision: str) -> AbstractContextManager[None]:
    return nullcontext() if precision == "bf16" else float32_products(precision)
