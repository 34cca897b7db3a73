"""How translation models are trained: base recipes that several studies share, and how to make them small.

The text that the papers trained on (WMT'14, IWSLT'14 and IWSLT'17) is not always at hand. Multi30k is what the
replication took; Tatoeba stands in for IWSLT: about as many pairs, of shorter sentences. Recipes for IWSLT and WMT are
here too, for whoever has the files. All are computed in bf16, which is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.recipes import (
    BLEU,
    IWSLT14,
    IWSLT17,
    LABO,
    WMT14,
    Adam,
    AntiFocal,
    ConfidencePenalty,
    Constant,
    CrossEntropy,
    Focal,
    InverseSqrt,
    LabelSmoothing,
    Multi30k,
    Recipe,
    Regulariser,
    Tatoeba,
    Transformer,
)
from softtargets.studies.study import Settings

SIZES = ("small", "full")
# Fields that grids over corpora and losses vary.
AXES = (
    "seed",
    "data",
    "data.name",
    "data.source",
    "data.target",
    "regulariser",
    "regulariser.name",
    "regulariser.alpha",
)
# What studies of translation keep with a run, so that they can share it.
KEEP = ("test", "validation")

# --- Multi30k, ours ------------------------------------------------------------------------------------------------
# A model for 29,000 short sentences: small and with strong dropout (Wu et al., ACL 2021, train one like it there). The
# mean of the last five epochs is what is measured.
MULTI30K = Recipe(
    data=Multi30k(),
    model=Transformer(
        width=256, heads=4, inner=1024, encoder_layers=4, decoder_layers=4, dropout=0.3, norm="pre"
    ),
    optimiser=Adam(lr=2e-3, betas=(0.9, 0.98), eps=1e-9, weight_decay=1e-4, decoupled=True),
    schedule=InverseSqrt(warmup=1000),
    epochs=40,
    batch=4096,
    average_last=5,
    precision="bf16",
)

# --- the replication -----------------------------------------------------------------------------------------------
# Of the replication's code: 3 + 3 layers of width 512 with 512 inner units and 8 heads, norms behind the layers, no
# dropout, embeddings and a last layer of their own, Adam at a constant rate of 1e-4, 18 epochs, batches of 128
# sentences. Ours: byte-pair pieces instead of spaCy's words (its tokenisers were swapped, ERRATA.md), and batches by
# tokens: 128 sentences of Multi30k are about 2,000 tokens on a side. PyTorch's stacks have a norm more at their ends.
REPLICATED = Recipe(
    data=Multi30k(),
    model=Transformer(
        width=512,
        heads=8,
        inner=512,
        encoder_layers=3,
        decoder_layers=3,
        dropout=0.0,
        norm="post",
        share="none",
    ),
    optimiser=Adam(lr=1e-4, betas=(0.9, 0.98), eps=1e-9),
    schedule=Constant(),
    epochs=18,
    batch=2048,
    precision="bf16",
)

# --- IWSLT, and what stands in for it ------------------------------------------------------------------------------
# Of Lu et al. 2023 (section 4.1, appendix): fairseq's model for IWSLT (6 + 6 layers, 512 / 1024, 4 heads), dropout 0.3,
# batches of 4,096 tokens, Adam (0.9, 0.98) at 5e-4 with 1,000 steps of warm-up, weight decay 1e-4, 150 epochs, the
# checkpoint that does best on the validation set. Ours: the decay is decoupled as fairseq's Adam has it, and Tatoeba,
# whose sentences are a third as long, has 20 epochs. "Best" is by BLEU of 1,000 sentences, decoded greedily every 1,000
# steps, when held-out losses are measured too; otherwise after every fifth epoch. It cannot be by validation loss:
# LABO's labels make likelihood worse, so that the best loss of such a training is that of its warm-up, which is label
# smoothing.
IWSLT = Recipe(
    data=IWSLT14(),
    model=Transformer(width=512, heads=4, inner=1024, encoder_layers=6, decoder_layers=6, dropout=0.3),
    optimiser=Adam(lr=5e-4, betas=(0.9, 0.98), weight_decay=1e-4, decoupled=True),
    schedule=InverseSqrt(warmup=1000),
    epochs=150,
    batch=4096,
    probes=(BLEU(every=1000, sentences=1000),),
    best_by="validation_bleu",
    measure_epochs=5,
    precision="bf16",
)
TATOEBA = IWSLT.replace({"data": Tatoeba(), "epochs": 20})
IWSLT_SEVERAL = IWSLT.replace({"data": IWSLT17()})
TATOEBA_SEVERAL = TATOEBA.replace({"data": Tatoeba(source="de+fr", vocabulary=16_000)})

# --- WMT -----------------------------------------------------------------------------------------------------------
# Of Müller et al. 2019 (appendix A.3): tensor2tensor's transformer_base, 300,000 steps, no average of checkpoints,
# 32,000 pieces. Its rate 2 * 512**-0.5 * min(step * 8000**-1.5, step**-0.5) peaks at 2 / sqrt(512 * 8000) = 9.88e-4.
WMT = Recipe(
    data=WMT14(),
    model=Transformer(
        width=512,
        heads=8,
        inner=2048,
        encoder_layers=6,
        decoder_layers=6,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.1,
        norm="pre",
    ),
    optimiser=Adam(lr=9.88e-4, betas=(0.9, 0.997), eps=1e-9),
    schedule=InverseSqrt(warmup=8000),
    steps=300_000,
    batch=4096,
    precision="bf16",
)
# Of Lu et al. 2023 (section 4.1, appendix): the same layers, but all else as for IWSLT, with a rate of 7e-4 and 50
# epochs. Ours: what is decoded to choose the checkpoint, every 5,000 steps.
WMT_LU = IWSLT.replace(
    {
        "data": WMT14(),
        "model": Transformer(width=512, heads=8, inner=2048, encoder_layers=6, decoder_layers=6, dropout=0.3),
        "optimiser.lr": 7e-4,
        "epochs": 50,
        "probes": (BLEU(every=5000, sentences=1000),),
    }
)

# --- small ---------------------------------------------------------------------------------------------------------
# For a CPU and minutes, on a slice of the same text.
_SMALL: Mapping[str, Any] = {
    "data.limit": 3000,
    "data.vocabulary": 1000,
    "model.width": 64,
    "model.heads": 4,
    "model.inner": 128,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "epochs": 8,
    "measure_epochs": 1,
    "batch": 1024,
    "precision": "fp32",
}
# Sentences of a test set that are translated at each size; all, if nothing is said.
SENTENCES: Mapping[str, int | None] = {"small": 200, "full": None}


def sized(settings: Settings, recipe: Recipe) -> Recipe:
    """A base recipe at the size that was asked for, with the user's changes.

    >>> small = sized(Settings(1, {}, "small"), MULTI30K)
    >>> small.data.limit, small.model.width, small.schedule.warmup, small.average_last
    (3000, 64, 100, 2)
    """
    if settings.size == "small":
        changes = dict(_SMALL)
        if isinstance(recipe.schedule, InverseSqrt):
            changes |= {"schedule.warmup": 100, "optimiser.lr": 3e-3}
        else:
            changes["optimiser.lr"] = 1e-3
        if recipe.best_by is not None:  # translating takes longer than training here
            changes |= {"best_by": None, "probes": ()}
        if recipe.average_last is not None:
            changes["average_last"] = 2
        recipe = recipe.replace(changes)
    return settings.base(recipe)


# --- losses --------------------------------------------------------------------------------------------------------
SMOOTHING = 0.1
# The temperature of LABO: 1.25 of the two that the paper tried.
TAU = 1.25
# Steps of LABO's own warm-up, by size. Of Lu et al. 2023 (appendix): 10,000 for WMT, 5,000 for IWSLT, which are four
# or five epochs there. Tatoeba has 465 steps in an epoch, and 5,000 would be more than half of its training: 2,000 are
# as many epochs.
WARM_UP: Mapping[str, int] = {"small": 100, "full": 2_000, "iwslt": 5_000, "wmt": 10_000}
# Readings of equation 16, as in the study labo-readings.
READINGS: Mapping[str, Mapping[str, Any]] = {
    "literal": {},
    "fixed": {"alpha": 0.1},
    "reversed": {"reading": "reversed"},
}


def methods(size: str = "full", warm_up: int | None = None) -> dict[str, Regulariser]:
    """The losses of table 1 of Lu et al. 2023, by its names; LABO by its readings, the literal one first.

    warm_up: steps of LABO's, where they are not those of the size.

    >>> list(methods())
    ['hard', 'ls', 'cp', 'fl', 'afl', 'labo-literal', 'labo-fixed', 'labo-reversed']
    >>> methods("iwslt")["labo-fixed"].warmup_steps
    5000
    """
    steps = WARM_UP[size] if warm_up is None else warm_up
    return {
        "hard": CrossEntropy(),
        "ls": LabelSmoothing(alpha=SMOOTHING),
        "cp": ConfidencePenalty(beta=0.1),
        "fl": Focal(gamma=1.0, detach=True),
        "afl": AntiFocal(gamma=1.0, alpha=0.5),
        **{
            f"labo-{name}": LABO(tau=TAU, warmup_steps=steps, **options) for name, options in READINGS.items()
        },
    }
