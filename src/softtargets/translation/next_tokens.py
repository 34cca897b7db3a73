"""What a model says of the tokens of reference translations, each with the correct prefix, many sentences at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softtargets.calibration import SweepSums
from softtargets.exceptions import SofttargetsError
from softtargets.models import Transformer
from softtargets.translation.batching import longest_first, padded, prefixes, room_for
from softtargets.translation.decoding import Progress, looking
from softtargets.translation.rows import rows_of
from softtargets.translation.symbols import EOS, IGNORED
from softtargets.translation.tokens import TokenCollector, TokenPredictions

# Positions on either side that a model is shown at a time; a GPU is busy with more.
_AT_A_TIME = {"cpu": 4096, "cuda": 2**15}


def predict_tokens(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    sweep: SweepSums | None = None,
    *,
    progress: Progress | None = None,
) -> TokenPredictions:
    """Predictions of every token of the targets and of their ends, sentence after sentence, padding left out.

    Sources and targets are pieces without symbols. A `sweep` is given all logits, for the same at other temperatures.
    ``progress(done, all)`` is called after each batch. Sentences of similar length are shown together, which changes
    nothing but the time it takes.

    >>> net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    >>> predict_tokens(net, [[5, 6], [7]], [[5, 5, 4], []]).lengths.tolist()
    [4, 1]
    """
    if len(sources) != len(targets):
        raise SofttargetsError(f"there are {len(sources)} sources and {len(targets)} targets")
    if not sources:
        raise SofttargetsError("there is nothing to measure: no sentence was given")
    pairs = [([*one, EOS], [*other, EOS]) for one, other in zip(sources, targets, strict=True)]
    lengths = [max(map(len, pair)) for pair in pairs]
    if (longest := max(lengths)) > model.longest:
        raise SofttargetsError(
            f"sentence {lengths.index(longest) + 1} has {longest} tokens, and the model takes at most {model.longest}; "
            "shorten it, or leave it out"
        )
    device = model.head.weight.device
    collector, order = TokenCollector(), list[int]()
    with looking(model):
        for places in longest_first(dict(enumerate(lengths)), room_for(model, _AT_A_TIME)):
            source = padded([pairs[place][0] for place in places]).to(device)
            labels = padded([pairs[place][1] for place in places], IGNORED).to(device)
            states = model.features(source, prefixes(labels))
            collector.add(states, labels, model.head)
            if sweep is not None:
                for logits, wanted in rows_of(states, labels, model.head):
                    sweep.add(logits, wanted)
            order += places
            if progress is not None:
                progress(len(order), len(pairs))
    return collector.finish().part(np.argsort(order))
