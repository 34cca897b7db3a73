"""What is left of a campaign, as the order of trainings needs it: cells, how far they are, how fast they go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from softtargets.campaign.cells import Cell, State, cells_of, light_teachers, states, to_train
from softtargets.campaign.file import Campaign
from softtargets.campaign.order import Wanted
from softtargets.campaign.speeds import SPEEDS, Speeds, read_table
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore, environment
from softtargets.training import choose_device, kind_of_run, most_together


@dataclass
class Outlook:
    """A campaign in a store, on a device: what is there and what is left; `look` sees what has changed."""

    campaign: Campaign
    store: RunStore
    speeds: Speeds
    device: torch.device
    cells: dict[str, Cell] = field(init=False)
    states: dict[str, State] = field(init=False)

    def __post_init__(self) -> None:
        self.cells = cells_of(self.campaign)
        self.look()
        self.learn(self.done())

    def look(self) -> None:
        """Read from the store how far all cells are."""
        self.states = states(self.cells, self.store)

    def learn(self, keys: Iterable[str]) -> None:
        """Take the speeds of these finished runs."""
        self.speeds.learn(self.run(key) for key in keys)

    def run(self, key: str) -> Run:
        """The run of a cell, whether it is there or not."""
        return Run(self.store.root / key)

    def done(self) -> list[str]:
        """The cells with a finished run; teachers that nobody needs any more may be done without one."""
        ended = (key for key, state in self.states.items() if state.status == "done")
        return [key for key in ended if (self.store.root / key).exists()]

    def running(self) -> list[str]:
        """Those that other processes are training at the moment."""
        return [key for key, state in self.states.items() if state.status == "running"]

    def wanted(self) -> list[Wanted]:
        """What is left to train, in the order of the campaign."""
        left = to_train(self.cells, self.states)
        return [self._wanted(key, left) for key in self.cells if key in left]

    def rank(self, key: str) -> int:
        """Of the first entry that waits for a cell."""
        cell, waiting = self.cells[key], self.states[key].unmeasured
        return min(cell.studies[study] for study in waiting) if waiting else cell.rank

    def unreachable(self) -> list[str]:
        """Cells that nobody will train: their teachers are damaged, and people must look at those."""
        return [key for key, state in self.states.items() if state.status == "damaged"]

    def _wanted(self, key: str, left: set[str]) -> Wanted:
        recipe, state, units = self.cells[key].recipe, self.states[key], self.cells[key].recipe.units
        teacher = recipe.teacher
        return Wanted(
            id=key,
            rank=self.rank(key),
            kind=kind_of_run(recipe),
            units=None if units is None else units * (1 - state.share),
            speed=self.speeds.of(recipe),
            most_together=most_together(recipe, self.device),
            begun=state.status == "interrupted",
            needs=teacher.id if teacher is not None and teacher.id in left else None,
            again=tuple(self._once_more(one) for one in light_teachers(recipe, self.states)),
        )

    def _once_more(self, recipe: Recipe) -> Wanted:
        """A finished run that is trained from its beginning."""
        rank, together = self.cells[recipe.id].rank, most_together(recipe, self.device)
        return Wanted(recipe.id, rank, kind_of_run(recipe), recipe.units, self.speeds.of(recipe), together)


def outlook(campaign: Campaign, store: RunStore, device: str = "auto") -> Outlook:
    """A campaign on the device that would train it."""
    chosen = choose_device(device)
    name = environment(str(chosen))["device_name"]
    table = read_table(campaign.path.parent / SPEEDS)
    return Outlook(campaign, store, Speeds(name, chosen.type, table.get(name, ())), chosen)


def outlook_elsewhere(campaign: Campaign, store: RunStore) -> Outlook:
    """A campaign on the GPU of this machine; where there is none, on the first device of the table of speeds."""
    table = read_table(campaign.path.parent / SPEEDS)
    if torch.cuda.is_available() or not table:
        return outlook(campaign, store)
    name, rows = next(iter(table.items()))
    return Outlook(campaign, store, Speeds(name, "cuda", rows), torch.device("cuda"))
