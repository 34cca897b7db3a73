"""A language that is easily learnt: digits in one language, words in the other, sentences of one to nine of them."""

from __future__ import annotations

import random

from softtargets.recipes import Adam, InverseSqrt, ParallelText, Recipe, Transformer

WORDS = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]


def write_corpus(folder, train=160, held_out=24, name="numbers"):
    """Files as users have them; returns the data directory."""
    draw = random.Random(5)
    (folder / name).mkdir(parents=True)
    for part, count in {"train": train, "validation": held_out, "test": held_out}.items():
        rows = [[draw.randrange(10) for _ in range(draw.randint(1, 9))] for _ in range(count)]
        texts = {
            "digits": [" ".join(map(str, row)) for row in rows],
            "words": [" ".join(WORDS[digit] for digit in row) for row in rows],
        }
        for language, lines in texts.items():
            (folder / name / f"{part}.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def recipe(**changes):
    """A small training on it."""
    base = Recipe(
        data=ParallelText(corpus="numbers", source="digits", target="words", vocabulary=60, ratio=None),
        model=Transformer(width=16, heads=2, inner=32, encoder_layers=1, decoder_layers=1, dropout=0.1),
        optimiser=Adam(lr=5e-3, betas=(0.9, 0.98)),
        schedule=InverseSqrt(warmup=20),
        epochs=2,
        batch=128,
    )
    return base.replace(changes) if changes else base
