"""Tokens and where they stand, as vectors."""

from __future__ import annotations

from math import log, sqrt

import torch
from torch import Tensor, nn

from softtargets.exceptions import SofttargetsError
from softtargets.models.dropout import Dropout
from softtargets.models.look_up import look_up

PAD = 0  # the token that is no token


class Embed(nn.Module):
    """Tokens as vectors, with sines and cosines that say where they stand."""

    def __init__(self, vocabulary: int, width: int, dropout: float, longest: int, shared: bool) -> None:
        super().__init__()
        self.longest = longest
        self.source, self.target = _embedding(vocabulary, width), _embedding(vocabulary, width)
        if shared:
            # The weights, not the module: torch.func.functional_call gives a module's weights back only once.
            self.target.weight = self.source.weight
        # One each: the same would drop the same numbers of both sentences.
        self.source_dropout, self.target_dropout = Dropout(dropout), Dropout(dropout)

    def forward(self, source: Tensor, prefix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sources (N, S) and prefixes (N, T)."""
        self.check_length("prefix", prefix.shape[1])
        states, seen = self.read(source)
        return states, self.write(prefix, torch.arange(prefix.shape[1], device=prefix.device)), seen

    def read(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Of sources (N, S), and which of their positions count, (N, 1, 1, S): all, if there is nothing but padding."""
        self.check_length("source", source.shape[1])
        seen = source != PAD
        seen = seen | ~seen.any(-1, keepdim=True)
        places = torch.arange(source.shape[1], device=source.device)
        states: Tensor = self.source_dropout(_placed(self.source.weight, source, places))
        return states, seen[:, None, None]

    def write(self, prefix: Tensor, places: Tensor) -> Tensor:
        """Of target tokens (N, T) at places (T,) or (1,)."""
        states: Tensor = self.target_dropout(_placed(self.target.weight, prefix, places))
        return states

    def check_length(self, what: str, length: int) -> None:
        """Refuse what is longer than a net was made for.

        Not where a net is being compiled for all lengths: told that there are at most so many positions, torch would
        look at all of them at a time, in a kernel that takes many minutes to assemble.
        """
        if not torch.compiler.is_compiling() and length > self.longest:
            raise SofttargetsError(
                f"{what} has {length} positions, but the model was made for at most {self.longest}; shorten the "
                "text, or make the model with a larger `longest`"
            )


def sinusoids(places: Tensor, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """tensor2tensor's positions (T, width): half sines, half cosines, of wavelengths from 2 pi to 20,000 pi.

    Vaswani et al. 2017 (section 3.5) have sines and cosines in turns, which is the same but for the order.

    >>> sinusoids(torch.tensor([0, 1]), 4)
    tensor([[0.0000e+00, 0.0000e+00, 1.0000e+00, 1.0000e+00],
            [8.4147e-01, 1.0000e-04, 5.4030e-01, 1.0000e+00]])
    """
    half = width // 2
    rates = torch.exp(torch.arange(half, device=places.device, dtype=dtype) * (-log(1e4) / max(half - 1, 1)))
    angles = places.to(dtype)[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), -1)


def _placed(weight: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
    width = weight.shape[-1]
    vectors: Tensor = look_up(weight, tokens)
    waves = sinusoids(places, width, torch.promote_types(weight.dtype, torch.float32))
    return vectors * sqrt(width) + waves.to(vectors.dtype)


def _embedding(vocabulary: int, width: int) -> nn.Embedding:
    embedding = nn.Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=width**-0.5)
    return embedding
