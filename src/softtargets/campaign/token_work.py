"""How much work a token is to a Transformer: by this, measured speeds are carried over to sizes nobody measured."""

from __future__ import annotations

from softtargets.recipes import Multi30k, Recipe, Transformer, TranslationDataset

# The vocabulary that models of the table of speeds were measured with.
_MEASURED = Multi30k().vocabulary


def token_work(model: Transformer, vocabulary: int = _MEASURED) -> int:
    """Multiplications of a forward pass for each token of the target, with a token of the source beside it.

    Of the linear layers: attention to sentences of some ten tokens costs next to nothing beside them. Of two sizes
    in results/speeds.yaml, of an H200, the larger has 2.13 times the work and takes 1.4 times as long.

    >>> token_work(Transformer(width=512, inner=512, encoder_layers=3, decoder_layers=3), vocabulary=8000)
    16678912
    """
    square, inner = model.width**2, 2 * model.width * model.inner
    encoder = model.encoder_layers * (4 * square + inner)
    decoder = model.decoder_layers * (8 * square + inner)
    return encoder + decoder + model.width * vocabulary


def work_of(recipe: Recipe) -> int | None:
    """That of a recipe; None where nothing is translated."""
    if isinstance(recipe.model, Transformer) and isinstance(recipe.data, TranslationDataset):
        return token_work(recipe.model, recipe.data.vocabulary)
    return None
