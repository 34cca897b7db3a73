"""Translations drawn at random from a Transformer, with what was computed before kept."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from softtargets.models import Cache, Transformer
from softtargets.translation.batching import longest_first, padded, room_for
from softtargets.translation.beam import Hypothesis
from softtargets.translation.decoding import Progress, looking, most_tokens
from softtargets.translation.sampling import sample
from softtargets.translation.sources import checked_sources
from softtargets.translation.symbols import BOS, EOS

_AT_A_TIME = {"cpu": 4096, "cuda": 2**18}


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
    what it is translated together with, apart from rounding. Sources are as for `decode`; an empty one has the empty
    translation. Without `max_length` no translation is longer than `decode` allows for its source. Scores are the
    model's own log-probabilities, at temperature 1.

    >>> net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    >>> one, nothing = sample_translations(net, [[5, 6], []], max_length=4)
    >>> len(one.tokens) <= 4, nothing.tokens
    (True, [2])
    """
    checked = checked_sources(model, sources)
    found = [Hypothesis([EOS], 0.0, 0.0) for _ in checked]
    limits = {
        place: most_tokens(model, len(one) - 1, max_length)
        for place, one in enumerate(checked)
        if len(one) > 1
    }
    device = model.head.weight.device
    done = len(checked) - len(limits)
    with looking(model):
        for places in longest_first(limits, room_for(model, _AT_A_TIME)):
            source = padded([checked[place] for place in places]).to(device)
            most = [limits[place] for place in places]
            drawn = sample(
                partial(_next_log_probs, model, model.start(model.encode(source), capacity=max(most))),
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
            done += len(places)
            if progress is not None:
                progress(done, len(checked))
    return found


def _next_log_probs(model: Transformer, cache: Cache, read: Tensor) -> Tensor:
    states, _ = model.advance(read[:, -1], cache)
    found: Tensor = model.head(states).float().log_softmax(-1)
    return found
