"""The rival: a loop around ``torch.nn.Transformer`` as PyTorch's tutorial has it. Nothing of our engine is in here.

Embeddings, sines and cosines, ``nn.Transformer``, a linear layer, ``nn.CrossEntropyLoss(label_smoothing=)``,
``torch.optim.Adam`` and autocast ("Language Translation with nn.Transformer and torchtext"). It is spared what makes
such loops slow: the batches of an epoch lie on the device, made before, of sentences of similar length, with the
padding that ours have; and it never waits for the device but at the end of an epoch. Dropout is where ours is: not on
attention weights and not inside of feed-forward layers, where the module also has it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

PAD, IGNORED = 0, -100


class Batch(NamedTuple):
    """Sources (N, S), prefixes and labels (N, T), and how many labels are no padding."""

    source: Tensor
    prefix: Tensor
    labels: Tensor
    tokens: int


class Seq2SeqTransformer(nn.Module):
    """The tutorial's model; `share` ties embeddings and the last layer as ours are."""

    positions: Tensor

    def __init__(
        self,
        vocabulary: int,
        width: int,
        heads: int,
        inner: int,
        encoder_layers: int,
        decoder_layers: int,
        dropout: float,
        share: str,
        longest: int = 1024,
    ) -> None:
        super().__init__()
        self.width = width
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.register_buffer("positions", _positions(longest, width), persistent=False)
        self.dropout = nn.Dropout(dropout)
        self.transformer = nn.Transformer(
            width, heads, encoder_layers, decoder_layers, inner, dropout, batch_first=True
        )
        self.generator = nn.Linear(width, vocabulary)
        for embedding in (self.source, self.target):
            nn.init.normal_(embedding.weight, std=width**-0.5)
        if share == "all":
            self.source.weight = self.target.weight
        if share != "none":
            self.generator.weight = self.target.weight
        for module in self.transformer.modules():
            if isinstance(module, nn.MultiheadAttention):
                module.dropout = 0.0
            elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
                module.dropout.p = 0.0

    def forward(self, source: Tensor, prefix: Tensor) -> Tensor:
        """Logits (N, T, V)."""
        length = prefix.shape[1]
        later = torch.ones(length, length, dtype=torch.bool, device=prefix.device).triu(1)
        padding = source == PAD
        states = self.transformer(
            self._embedded(self.source, source),
            self._embedded(self.target, prefix),
            tgt_mask=later,
            src_key_padding_mask=padding,
            tgt_key_padding_mask=prefix == PAD,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,  # else the module looks at the mask, and waits for the device
        )
        logits: Tensor = self.generator(states)
        return logits

    def _embedded(self, embedding: nn.Embedding, tokens: Tensor) -> Tensor:
        vectors = embedding(tokens) * math.sqrt(self.width) + self.positions[: tokens.shape[1]]
        return cast(Tensor, self.dropout(vectors))


class EagerLoop:
    """Epoch after epoch over the same batches; `compiled`, the model by ``torch.compile`` for all shapes."""

    def __init__(
        self, model: nn.Module, batches: Sequence[Batch], smoothing: float, bf16: bool, compiled: bool = False
    ) -> None:
        self.batches, self._bf16 = batches, bf16
        self.model = model.train()
        self._call = torch.compile(model, dynamic=True) if compiled else model
        self._loss = nn.CrossEntropyLoss(ignore_index=IGNORED, label_smoothing=smoothing)
        self._optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)

    @property
    def tokens(self) -> int:
        """Labels of an epoch that are no padding."""
        return sum(batch.tokens for batch in self.batches)

    def epoch(self) -> float:
        """Train on all batches; the mean of their losses."""
        device = self.batches[0].source.device
        total = torch.zeros((), device=device)
        for batch in self.batches:
            with torch.autocast(device.type, torch.bfloat16) if self._bf16 else nullcontext():
                logits = self._call(batch.source, batch.prefix)
                loss = self._loss(logits.flatten(0, 1), batch.labels.flatten())
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
            total += loss.detach()
        return float(total) / len(self.batches)


def _positions(longest: int, width: int) -> Tensor:
    rates = torch.exp(-torch.arange(0, width, 2) * math.log(10000) / width)
    angles = torch.arange(longest)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
