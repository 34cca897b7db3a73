"""The linear section: a projection to the classes and a loss, fused, against materialising the logits."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.bench import Contestant
from benchmarks.clocks import Timed
from benchmarks.failures import verdict
from benchmarks.losses.check import BLOCK, TOLERANCE, Outcome, sampled, worst
from benchmarks.losses.contestants import linear_contestant
from benchmarks.losses.grid import DTYPES
from benchmarks.losses.results import LinearCase, LinearResult, LossEntry
from benchmarks.losses.rounds import GradientRound, LossSession
from benchmarks.losses.textbook import COMPARED

PRODUCT = "the plain product"


class LinearRound(GradientRound):
    """A loss of hidden states and a weight."""

    def __init__(self, case: LinearCase, session: LossSession) -> None:
        super().__init__(session)
        device = session.device
        self._case, self._compared = case, COMPARED[case.loss]
        generator = torch.Generator(device).manual_seed(case.rows * 1_000_003 + case.classes)
        dtype = getattr(torch, DTYPES[case.dtype])

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, device=device, dtype=dtype, generator=generator)

        hidden = normal(case.rows, case.hidden).requires_grad_()
        # Logits as wide as in the other section.
        weight = normal(case.classes, case.hidden).mul_(2 / case.hidden**0.5).requires_grad_()
        self.leaves = (hidden, weight)
        self.target = torch.randint(case.classes, (case.rows,), device=device, generator=generator)
        self.rows = (sampled(case.rows, device), sampled(case.classes, device))
        self.truth = self._reference(hidden.detach(), weight.detach().double())

    def contestant(self, name: str) -> Contestant:
        """On the same device."""
        return linear_contestant(name, self._compared, self._case.dtype, self.session.device)

    def complaint(self, name: str, outcomes: tuple[Outcome, ...]) -> str:
        """Rounding the logits to half precision is allowed here, and those who materialise them do it."""
        return worst(outcomes, self.truth).beyond(2 * TOLERANCE[self._case.dtype], "float64")

    def measured(self, names: tuple[str, ...]) -> tuple[float, tuple[LossEntry, ...]]:
        """The floor in seconds, and what everybody did."""
        hidden, weight = (leaf.detach() for leaf in self.leaves)
        found, timings = self.entries(names, {PRODUCT: Timed(lambda: hidden @ weight.T)})
        # Logits, gradient of the hidden states, gradient of the weight: nobody can do with fewer products.
        floor = 3 * timings[PRODUCT].median if PRODUCT in timings else 0.0
        # The gradients are there at the end whoever computes them; what counts is how much more it took.
        gradients = sum(leaf.nbytes for leaf in self.leaves)
        return floor, tuple(
            entry if entry.memory is None else replace(entry, lean=entry.memory - gradients)
            for entry in found.values()
        )

    def _reference(self, hidden: Tensor, weight: Tensor) -> tuple[Outcome, Outcome]:
        """In float64 and in blocks: the loss, and the gradients of a few hidden states and of a few classes."""
        rows, columns = self.rows
        total = 0.0
        of_hidden = torch.zeros(hidden.shape, dtype=torch.float64, device=weight.device)
        of_classes = torch.zeros(len(columns), weight.shape[1], dtype=torch.float64, device=weight.device)
        step = max(1, BLOCK // len(weight))
        for start in range(0, len(hidden), step):
            part = slice(start, start + step)
            block = hidden[part].double()
            logits = (block @ weight.T).requires_grad_()
            loss = self._compared.textbook(logits, self.target[part]) * (len(block) / len(hidden))
            loss.backward()
            assert logits.grad is not None
            total += float(loss.detach())
            of_hidden[part] = logits.grad @ weight
            of_classes += logits.grad[:, columns].T @ block
        return Outcome(total, of_hidden[rows]), Outcome(total, of_classes)


def measure_linear(case: LinearCase, names: tuple[str, ...], session: LossSession) -> LinearResult:
    """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
    try:
        floor, entries = LinearRound(case, session).measured(names)
    except Exception as error:
        floor, entries = 0.0, tuple(LossEntry(name, *verdict(error)) for name in names)
    itemsize = getattr(torch, DTYPES[case.dtype]).itemsize
    return LinearResult(
        case=case,
        session=session.number,
        entries=entries,
        floor=floor,
        logits_bytes=case.rows * case.classes * itemsize,
    )
