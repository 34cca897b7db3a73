"""The nets of a pack: one as it is, or several of one shape stacked and computed as one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from softtargets.models import Classifier

# Weights of one layer begin at a multiple of so many numbers: kernels read faster from even addresses.
_ALIGNED = 64

Named = dict[str, Tensor]


class Nets(Protocol):
    """What a pack asks of its nets. Tensors that go in and come out have the runs as first dimension."""

    runs: int
    lead: int  # dimensions that the parameters have before a net's own: 1 where nets are stacked
    names: list[str]  # of the parameters, as a net alone has them
    leaves: list[Tensor]  # to differentiate by: one for each name
    parameters: list[Tensor]  # to be moved by an update: the same numbers, perhaps in fewer tensors

    def train(self, images: Tensor) -> Tensor:
        """Logits (runs, batch, classes) of each run's own images, in training mode, with gradient."""

    def look(self, images: Tensor, shared: bool) -> Tensor:
        """Logits in evaluation mode, of the same images for all runs if `shared`, without gradient."""

    def set_place(self, steps: Tensor) -> None:
        """Tell whatever draws at random inside the nets which step of each run this is."""

    def collected(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients of the leaves, as those of the parameters."""

    def apart(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors like the parameters, as views, one for each name."""

    def state(self, run: int) -> Named:
        """The weights and buffers of one run, as its net alone would name them."""

    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        """Give one run these weights and buffers."""

    def changed(self) -> list[Tensor]:
        """All tensors that a training step writes to."""

    def swapped(self, parameters: Sequence[Tensor]) -> Nets:
        """The same nets with other parameters, such as averages of them, to be looked at."""


class Forward:
    """How nets of one shape are computed: by a skeleton that borrows their weights.

    Packs of one shape share it. With `compiled_for` a size of batch, training on such batches and evaluation are
    compiled, once for all packs; the one smaller batch of an epoch is not worth it.
    """

    def __init__(self, model: Classifier, stacked: bool, compiled_for: int | None = None) -> None:
        self._skeleton = deepcopy(model)
        self._stacked = stacked
        self._batch = compiled_for
        self._compiled: Callable[..., Tensor] = self._call
        if compiled_for is not None and not self._skeleton.repeated:
            self._compiled = torch.compile(self._call, dynamic=False)
        elif compiled_for is not None:
            # A deep net takes minutes as a whole. Its blocks are a few kinds, compiled once each.
            for block in self._skeleton.repeated:
                block.compile(dynamic=False)

    def __call__(
        self, parameters: Named, buffers: Named, images: Tensor, training: bool, shared: bool
    ) -> Tensor:
        """Logits; `shared` images are the same for all nets of a stack."""
        self._skeleton.train(training)
        size = images.shape[1 if self._stacked and not shared else 0]
        if training and self._batch is not None and size != self._batch:
            with torch.compiler.set_stance("force_eager"):
                return self._call(parameters, buffers, images, shared)
        return self._compiled(parameters, buffers, images, shared)

    def _call(self, parameters: Named, buffers: Named, images: Tensor, shared: bool) -> Tensor:
        if not self._stacked:
            logits: Tensor = functional_call(self._skeleton, (parameters, buffers), (images,))
            return logits

        def one(own: Named, kept: Named, seen: Tensor) -> Any:
            return functional_call(self._skeleton, (own, kept), (seen,))

        stacked: Tensor = torch.vmap(one, in_dims=(0, 0, None if shared else 0))(parameters, buffers, images)
        return stacked


class Single:
    """One net as it is; the weights that an update treats alike lie side by side, so that it is a few operations."""

    runs = 1
    lead = 0

    def __init__(
        self,
        model: Classifier,
        keys: Tensor,
        forward: Forward | None,
        buckets: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.model = model
        self.place = torch.cat((keys[0], keys.new_zeros(1)))
        model.draw_from(self.place)
        self._forward = forward
        self.names = [name for name, _ in model.named_parameters()]
        self.leaves: list[Tensor] = list(model.parameters())
        self._buckets = buckets or [[index] for index in range(len(self.leaves))]
        self.parameters = [
            self._flat([self.leaves[index].detach() for index in group]) for group in self._buckets
        ]
        for leaf, view in zip(self.leaves, self.apart(self.parameters), strict=True):
            leaf.data = view
        self._gradients = [torch.zeros_like(parameter) for parameter in self.parameters]

    def train(self, images: Tensor) -> Tensor:
        """In training mode, with gradient."""
        return self._logits(images[0], training=True)

    @torch.no_grad()
    def look(self, images: Tensor, shared: bool) -> Tensor:
        """In evaluation mode, without gradient."""
        return self._logits(images if shared else images[0], training=False)

    def set_place(self, steps: Tensor) -> None:
        """The step of the run."""
        self.place[2:] = steps

    def collected(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Side by side, as the weights."""
        torch._foreach_copy_(self.apart(self._gradients), list(gradients))
        return self._gradients

    def apart(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The part of each layer."""
        views: list[Tensor] = [torch.empty(0)] * len(self.leaves)
        for group, whole in zip(self._buckets, tensors, strict=True):
            begin = 0
            for index in group:
                shape = self.leaves[index].shape
                views[index] = whole[begin : begin + shape.numel()].view(shape)
                begin += -(-shape.numel() // _ALIGNED) * _ALIGNED
        return views

    def state(self, run: int) -> Named:
        """Of the one run."""
        return dict(self.model.state_dict())

    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        """Into the one run."""
        self.model.load_state_dict(dict(state))

    def changed(self) -> list[Tensor]:
        """Weights, buffers, and the place of the draws."""
        return [*self.parameters, *self.model.buffers(), self.place]

    def swapped(self, parameters: Sequence[Tensor]) -> Nets:
        """To be looked at with other parameters."""
        return _Swapped(self, dict(zip(self.names, self.apart(parameters), strict=True)))

    def _logits(self, images: Tensor, training: bool) -> Tensor:
        if self._forward is None:
            self.model.train(training)
            logits: Tensor = self.model(images)
        else:
            named: Named = dict(zip(self.names, self.leaves, strict=True))
            logits = self._forward(named, self._buffers(), images, training, shared=True)
        return logits.unsqueeze(0)

    def _buffers(self) -> Named:
        return dict(self.model.named_buffers(remove_duplicate=False))  # dropouts share their place

    def _flat(self, values: Sequence[Tensor]) -> Tensor:
        padded = [nn.functional.pad(value.flatten(), (0, -value.numel() % _ALIGNED)) for value in values]
        return torch.cat(padded)


class _Swapped(Single):
    """A net that is looked at with other parameters than its own."""

    def __init__(self, net: Single, parameters: Named) -> None:
        self.__dict__.update(net.__dict__)
        self._other = parameters

    def state(self, run: int) -> Named:
        return dict(self.model.state_dict()) | self._other

    def _logits(self, images: Tensor, training: bool) -> Tensor:
        buffers = self._buffers()
        if self._forward is not None:
            return self._forward(self._other, buffers, images, training, shared=True).unsqueeze(0)
        self.model.train(training)
        logits: Tensor = functional_call(self.model, (self._other, buffers), (images,))
        return logits.unsqueeze(0)


class Stacked:
    """Several nets of one shape, their tensors stacked; one call of `torch.vmap` computes all.

    A run's results agree with those of its net as it is up to rounding, since products may be added in another order.
    They do not depend on what the other runs hold; on a CPU, for layers of even widths, not even on how many there are.
    """

    lead = 1

    def __init__(self, models: Sequence[Classifier], keys: Tensor, forward: Forward | None) -> None:
        for model, key in zip(models, keys, strict=True):
            for (
                dropout
            ) in model.number_dropouts():  # one place each: of what is shared, only the first is stacked
                dropout.place = torch.cat((key, key.new_zeros(1)))
        self.runs = len(models)
        parameters, buffers = stack_module_state(list(models))
        self._forward = forward or Forward(models[0], stacked=True)
        self._buffers: Named = buffers
        self._places = [name for name in buffers if name.rpartition(".")[2] == "place"]
        self.names = list(parameters)
        self.parameters = [value.detach().requires_grad_() for value in parameters.values()]
        self.leaves = self.parameters

    def train(self, images: Tensor) -> Tensor:
        """In training mode, with gradient."""
        return self._forward(self._named(), self._buffers, images, training=True, shared=False)

    @torch.no_grad()
    def look(self, images: Tensor, shared: bool) -> Tensor:
        """In evaluation mode, without gradient."""
        return self._forward(self._named(), self._buffers, images, training=False, shared=shared)

    def set_place(self, steps: Tensor) -> None:
        """The step of each run."""
        for name in self._places:
            self._buffers[name][:, 2] = steps

    def collected(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """As they are."""
        return list(gradients)

    def apart(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """As they are."""
        return list(tensors)

    def state(self, run: int) -> Named:
        """Of one run."""
        own = self._named() | self._buffers
        return {name: value[run].detach() for name, value in own.items() if name not in self._places}

    @torch.no_grad()
    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        """Into one run."""
        own = self._named() | self._buffers
        for name, value in state.items():
            own[name][run].copy_(value)

    def changed(self) -> list[Tensor]:
        """Weights and buffers."""
        return [*self.parameters, *self._buffers.values()]

    def swapped(self, parameters: Sequence[Tensor]) -> Nets:
        """To be looked at with other parameters."""
        other: Stacked = object.__new__(Stacked)
        other.__dict__.update(self.__dict__)
        other.parameters = list(parameters)
        return other

    def _named(self) -> Named:
        return dict(zip(self.names, self.parameters, strict=True))
