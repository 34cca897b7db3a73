"""The template plane of a translation model: three target tokens, and where their occurrences lie on their plane.

Müller et al. 2019, figure 7, and figure 1 of the authors' response: penultimate representations of a Transformer at the
positions at which a token is to be predicted. The papers' text does not say which tokens these are, so they are chosen
by a rule that does not look at what the picture will show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.geometry import PlaneView, Triple, pick_triples, plane_view
from softtargets.translation.symbols import BOS, EOS, IGNORED, PAD, UNK

CANDIDATES = 200
FEWEST = 100


def choose_tokens(
    templates: Tensor,
    counts: NDArray[Any] | Tensor,
    kind: str = "mixed",
    *,
    candidates: int = CANDIDATES,
    fewest: int = FEWEST,
    excluded: Iterable[int] = (PAD, BOS, EOS, UNK),
) -> Triple:
    """Three tokens: of the most frequent ones two similar and one different ("mixed"), or all "close", or all "far".

    Among the `candidates` most frequent tokens of `counts` (V,), those of the data that will be shown, with at least
    `fewest` occurrences and without symbols, by the distances of their templates (V, D): see
    `softtargets.geometry.pick_triples`. Rare tokens have templates that were barely trained, and too few points to see.
    Choose once, with one model, and show the same tokens for all.

    >>> templates = torch.tensor([[0.0, 0.0]] * 4 + [[0.0, 1.0], [0.0, 1.2], [5.0, 0.0], [9.0, 9.0]])
    >>> choose_tokens(templates, np.array([900, 900, 900, 900, 500, 400, 300, 2])).classes
    (4, 5, 6)
    """
    if kind not in ("close", "mixed", "far"):
        raise SofttargetsError(f"must be close, mixed or far, not {kind}", argument="kind")
    frequency = np.array(counts.cpu().numpy() if isinstance(counts, Tensor) else counts, dtype=np.float64)
    if frequency.shape != (len(templates),):
        raise SofttargetsError(
            f"there must be one count for each of the {len(templates)} tokens, not {frequency.shape}"
        )
    left_out = [token for token in excluded if 0 <= token < len(frequency)]
    frequency[left_out] = 0
    order = np.argsort(-frequency, kind="stable")[:candidates]
    chosen = order[frequency[order] >= max(fewest, 1)]
    if len(chosen) < 3:
        raise SofttargetsError(
            f"three tokens with at least {fewest} occurrences are needed, but only {len(chosen)} have as many; add "
            "more sentences, or lower fewest"
        )
    found: Triple = getattr(pick_triples(templates.detach(), chosen.tolist()), kind)
    return found


class TokenStates:
    """Collects the penultimate states of three tokens and nothing else, batch by batch.

    >>> states = TokenStates([4, 5, 6])
    >>> states.add(torch.arange(10.0).view(1, 5, 2), torch.tensor([[4, 9, 6, 5, -100]]))
    >>> states.counts
    {4: 1, 5: 1, 6: 1}
    """

    def __init__(self, tokens: Sequence[int], *, ignore_index: int = IGNORED) -> None:
        self.tokens = tuple(int(token) for token in tokens)
        if len(set(self.tokens)) != 3 or min(self.tokens) < 0:
            raise SofttargetsError(f"a plane needs three different tokens, not {list(tokens)}")
        if ignore_index in self.tokens:
            raise SofttargetsError(f"token {ignore_index} marks padding and cannot be shown")
        self._rows: list[Tensor] = []
        self._labels: list[Tensor] = []

    @torch.no_grad()
    def add(self, states: Tensor, labels: Tensor) -> None:
        """Add states (..., D) at whose positions the labels (...) are to be predicted, given the correct prefix."""
        if states.ndim < 2 or states.shape[:-1] != labels.shape:
            raise ValueError(
                f"need states (..., width) and labels (...), not {tuple(states.shape)} and {tuple(labels.shape)}"
            )
        flat, y = states.detach().reshape(-1, states.shape[-1]), labels.detach().reshape(-1).to(states.device)
        wanted = torch.isin(y, torch.tensor(self.tokens, device=y.device)).nonzero().squeeze(1)
        self._rows.append(flat.index_select(0, wanted).float().cpu())
        self._labels.append(y.index_select(0, wanted).cpu())

    @property
    def counts(self) -> dict[int, int]:
        """How many occurrences of each token there are."""
        labels = torch.cat(self._labels) if self._labels else torch.zeros(0, dtype=torch.int64)
        return {token: int((labels == token).sum()) for token in self.tokens}

    def view(
        self,
        templates: Tensor,
        *,
        names: Mapping[int, str] | Sequence[str] | None = None,
        most: int | None = 300,
        net: str = "",
        split: str = "",
    ) -> PlaneView:
        """The states on the plane through the templates (V, D) of the tokens; see `softtargets.geometry.plane_view`."""
        if missing := [token for token, count in self.counts.items() if not count]:
            called = missing[0] if names is None else names[missing[0]]
            raise SofttargetsError(
                f"the token {called!r} does not occur in what was added; choose a frequent one"
            )
        shown = None if names is None else [str(names[token]) for token in self.tokens]
        rows, labels = torch.cat(self._rows), torch.cat(self._labels)
        # Three classes of their own: the vocabulary's other templates have no part in this.
        own = torch.tensor(self.tokens)
        places = (labels.unsqueeze(1) == own).long().argmax(1)
        return _renamed(
            plane_view(
                rows,
                places,
                templates.detach()[own.to(templates.device)].float().cpu(),
                (0, 1, 2),
                names=shown or [str(token) for token in self.tokens],
                most=most,
                net=net,
                split=split,
            ),
            self.tokens,
        )


def _renamed(view: PlaneView, tokens: Sequence[int]) -> PlaneView:
    """The same view, with classes and labels called by the numbers of their tokens."""
    first, second, third = tokens
    return replace(view, labels=torch.tensor(list(tokens))[view.labels], classes=(first, second, third))
