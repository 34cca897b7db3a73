"""The losses of a pack: runs that share a kind of loss are computed as one, each with its own numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from softtargets.losses import (
    CSKD,
    BetaSmoothing,
    DisturbLabel,
    KnowledgeRefinery,
    SoftTargetLoss,
    WholeBatch,
)
from softtargets.recipes import Recipe
from softtargets.training.building import build_loss, free_numbers
from softtargets.training.sums import run_sums

# They ask the net itself for more, follow it, or draw from torch's generators: one run at a time.
ALONE: tuple[type[SoftTargetLoss], ...] = (CSKD, BetaSmoothing, DisturbLabel, KnowledgeRefinery)
# Batches of fewer rows than this are one run after another on a GPU, where torch adds up a few rows over classes in
# another way than many; a stack has many.
_FEW = 32


def kind_of_loss(recipe: Recipe) -> tuple[Any, ...]:
    """Losses of the same kind may be stacked: the same class and choices; what is tensors of one size may differ."""
    part = recipe.regulariser
    free = free_numbers(part)
    choices = ((name, value) for name, value in vars(part).items() if not isinstance(value, Recipe))
    # An absent number is a choice: LABO without alpha is another loss than with one.
    return part.name, *((name, _size(value) if name in free else value) for name, value in choices)


def _size(value: Any) -> str:
    return f"free, {len(value)} rows" if isinstance(value, tuple) else "free"


@dataclass
class _Group:
    runs: list[int]
    index: Tensor  # the same, on the device
    skeleton: SoftTargetLoss
    state: dict[str, Tensor]


class SingleLoss:
    """The loss of one run; with a `head` it is given penultimate activations, and multiplies them by that layer."""

    def __init__(
        self,
        recipe: Recipe,
        classes: int,
        device: torch.device,
        head: nn.Linear | None = None,
        frequencies: Tensor | None = None,
    ) -> None:
        self.loss = build_loss(recipe, classes, frequencies=frequencies).to(device)
        self._head = head
        if head is not None:
            from softtargets.losses import LinearLoss  # here, since torch's compiler comes with it

            self._linear = LinearLoss(self.loss)

    def __call__(self, said: Tensor, labels: Tensor, given: Tensor | None) -> Tensor:
        """The mean over the batch, (1,), or the sum over its rows here (`share`).

        Everything given has the run as first dimension.
        """
        advice = () if given is None else (given[0],)
        if self._head is None:
            loss: Tensor = self.loss(said[0].float(), labels[0], *advice)
        else:
            loss = self._linear(said[0], self._head.weight, labels[0], self._head.bias, *advice)
        return loss.unsqueeze(0)

    def share(self, whole: WholeBatch) -> None:
        """Be a sum over the rows that are given, of a batch of which other processes have more."""
        self.loss.reduction, self.loss.whole = "sum", whole

    def end_epoch(self) -> None:
        """All examples have been seen once more."""
        self.loss.end_epoch()

    def changed(self) -> list[Tensor]:
        """All tensors that a call writes to."""
        return [*self.loss.named_state().values(), *self.loss.parameters()]

    def state(self, run: int) -> dict[str, Tensor]:
        """What the loss keeps."""
        return dict(self.loss.state_dict())

    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        """Go back to what a loss kept."""
        self.loss.load_state_dict(dict(state))


class StackedLoss:
    """The losses of several runs, in groups of one kind."""

    def __init__(
        self,
        recipes: Sequence[Recipe],
        classes: int,
        device: torch.device,
        frequencies: Tensor | None = None,
    ) -> None:
        kinds: dict[tuple[Any, ...], list[int]] = {}
        for run, recipe in enumerate(recipes):
            kinds.setdefault(kind_of_loss(recipe), []).append(run)
        self._groups: list[_Group] = []
        for runs in kinds.values():
            losses = [build_loss(recipes[run], classes, True, frequencies) for run in runs]
            losses[0].reduction = "none"  # what is added up in which order is decided here
            states = [loss.named_state() for loss in losses]
            state = {name: torch.stack([each[name] for each in states]).to(device) for name in states[0]}
            self._groups.append(_Group(runs, torch.tensor(runs, device=device), losses[0].to(device), state))
        order = [run for group in self._groups for run in group.runs]
        self._back = torch.tensor(sorted(range(len(order)), key=order.__getitem__), device=device)
        self._of_run = {run: (group, place) for group in self._groups for place, run in enumerate(group.runs)}

    def __call__(self, logits: Tensor, labels: Tensor, given: Tensor | None) -> Tensor:
        """The mean over each run's batch, (runs,)."""
        logits = logits.float()
        rows = [self._of_group(group, logits, labels, given) for group in self._groups]
        losses = rows[0] if len(rows) == 1 else torch.cat(rows).index_select(0, self._back)
        return run_sums(losses) / (labels != self._groups[0].skeleton.ignore_index).sum(-1)

    def _of_group(self, group: _Group, logits: Tensor, labels: Tensor, given: Tensor | None) -> Tensor:
        """The loss of every row, (runs of the group, rows)."""
        seen: tuple[Tensor, ...] = (logits, labels)
        if group.skeleton.needs:
            assert given is not None
            seen = (*seen, given)
        if len(self._groups) > 1:
            seen = tuple(each.index_select(0, group.index) for each in seen)

        def one(state: dict[str, Tensor], *call: Tensor) -> Any:
            return functional_call(group.skeleton, state, call)

        apart = logits.is_cuda and labels.shape[1] < _FEW
        rows: Tensor = torch.vmap(one, chunk_size=1 if apart else None)(group.state, *seen)
        return rows

    def end_epoch(self) -> None:
        """All examples have been seen once more."""
        for group in self._groups:
            if type(group.skeleton).end_epoch is not SoftTargetLoss.end_epoch:
                for place in range(len(group.runs)):
                    _of_one(group, place).end_epoch()

    def changed(self) -> list[Tensor]:
        """All tensors that a call writes to."""
        return [value for group in self._groups for value in group.state.values()]

    def state(self, run: int) -> dict[str, Tensor]:
        """What the loss of one run keeps."""
        group, place = self._of_run[run]
        numbers = group.skeleton._in_tensors  # the recipe has them already
        return {name: value[place] for name, value in group.state.items() if name not in numbers}

    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        """Go back to what a loss kept."""
        group, place = self._of_run[run]
        for name, value in state.items():
            group.state[name][place].copy_(value)


def _of_one(group: _Group, place: int) -> SoftTargetLoss:
    """The skeleton on one run's own tensors: what it changes in place is changed in the stack."""
    for name, value in group.state.items():
        owner, _, last = name.rpartition(".")
        setattr(group.skeleton.get_submodule(owner), last, value[place])
    return group.skeleton
