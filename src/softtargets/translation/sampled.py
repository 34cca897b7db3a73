"""Translations drawn at random from a Transformer, with what was computed before kept."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.models import Transformer
from softtargets.translation.beam import Hypothesis
from softtargets.translation.decoding import Progress
from softtargets.translation.sampling import sample
from softtargets.translation.symbols import BOS, EOS, PAD

_AT_A_TIME = {"cpu": 4096, "cuda": 2**18}


@torch.no_grad()
def sample_translations(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    max_length: int | None = None,
    *,
    first: int = 0,
    progress: Progress | None = None,
) -> list[Hypothesis]:
    """One translation of each source, drawn token by token from softmax(logits / temperature).

    What is drawn for a source depends on the seed and on its number, which is `first` for the first one, and not on
    what it is translated together with, apart from rounding. Sources are pieces without symbols; an empty one has the
    empty translation. Without `max_length` no translation is longer than `decode` allows for the longest source. Scores
    are the model's own log-probabilities, at temperature 1.

    >>> net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    >>> one, nothing = sample_translations(net, [[5, 6], []], max_length=4)
    >>> len(one.tokens) <= 4, nothing.tokens
    (True, [2])
    """
    found = [Hypothesis([EOS], 0.0, 0.0) for _ in sources]
    waiting = sorted((place for place, one in enumerate(sources) if one), key=lambda p: -len(sources[p]))
    if not waiting:
        return found
    ended = {place: [*sources[place][: model.longest - 1], EOS] for place in waiting}
    most = min(int(1.2 * len(sources[waiting[0]])) + 10 if max_length is None else max_length, model.longest)
    device = model.head.weight.device
    rows = max(1, _AT_A_TIME.get(device.type, _AT_A_TIME["cpu"]) // most)
    training = model.training
    model.eval()
    for begin in range(0, len(waiting), rows):
        places = waiting[begin : begin + rows]
        length = max(len(ended[place]) for place in places)
        source = torch.tensor([ended[place] + [PAD] * (length - len(ended[place])) for place in places])
        cache = model.start(model.encode(source.to(device)), capacity=most)

        def next_log_probs(prefixes: Tensor, cache: object = cache) -> Tensor:
            states, _ = model.advance(prefixes[:, -1], cache)  # type: ignore[arg-type]
            return model.head(states).float().log_softmax(-1)  # type: ignore[no-any-return]

        drawn = sample(
            next_log_probs,
            len(places),
            BOS,
            EOS,
            most,
            temperature,
            top_k,
            seed,
            device,
            numbers=[first + place for place in places],
        )
        for place, one in zip(places, drawn, strict=True):
            found[place] = one
        if progress is not None:
            progress(len(sources) - len(waiting) + begin + len(places), len(sources))
    model.train(training)
    return found
