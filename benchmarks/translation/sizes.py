"""The models whose speed is measured, as recipes that both sides follow. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.recipes import Adam, InverseSqrt, LabelSmoothing, Multi30k, Recipe, Regulariser, Transformer

# Nobody waits for the end of a training whose speed is measured.
ENDLESS = 1_000_000


@dataclass(frozen=True)
class Size:
    """A model, and how many times the eager loop's speed is asked of one run, and of a pack, if anything."""

    title: str
    model: Transformer
    asked: float | None = None
    asked_packed: float | None = None


# The replication's has an embedding for each side and a matrix before the softmax, as PyTorch's tutorial; the others
# have one for all three.
SIZES = {
    "replication": Size(
        "3+3 layers, 512/512, 8 heads",
        Transformer(
            width=512, heads=8, inner=512, encoder_layers=3, decoder_layers=3, dropout=0.0, share="none"
        ),
        asked=4.0,
        asked_packed=8.0,
    ),
    "iwslt": Size(
        "6+6 layers, 512/1024, 4 heads", Transformer(width=512, heads=4, inner=1024, dropout=0.3), asked=3.0
    ),
    "base": Size("6+6 layers, 512/2048, 8 heads", Transformer(width=512, heads=8, inner=2048, dropout=0.1)),
    "multi30k": Size(
        "4+4 layers, 256/1024, 4 heads",
        Transformer(width=256, heads=4, inner=1024, encoder_layers=4, decoder_layers=4, dropout=0.3),
    ),
    "tiny": Size(
        "2+1 layers, 16/32, 2 heads",
        Transformer(
            width=16, heads=2, inner=32, encoder_layers=2, decoder_layers=1, dropout=0.1, share="decoder"
        ),
    ),
}
# LABO's step may take so many times as long as that of label smoothing.
ASKED_STEP = 1.05
# Sentences a second of ours over those of Hugging Face.
ASKED_DECODING = 10.0


def recipe(
    size: str, tokens: int, precision: str, seed: int = 0, regulariser: Regulariser | None = None
) -> Recipe:
    """How a model is trained here; the rate is small since made-up sentences may be learnt: nothing diverges."""
    return Recipe(
        data=Multi30k(),
        model=SIZES[size].model,
        regulariser=LabelSmoothing(alpha=0.1) if regulariser is None else regulariser,
        optimiser=Adam(lr=1e-4, betas=(0.9, 0.98), eps=1e-9),
        schedule=InverseSqrt(warmup=4000),
        epochs=ENDLESS,
        batch=tokens,
        precision=precision,  # type: ignore[arg-type]
        seed=seed,
    )
