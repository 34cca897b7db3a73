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
    shadows: list[
        Tensor | None
    ]  # copies of parameters in lower precision, to be kept up to date; None: there is none

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

    Packs of one shape share it. With `compiled_for` a size of batch, which is for a GPU, training on such batches and
    evaluation are compiled, once for all packs, with our own kernels where they are faster; the one smaller batch of an
    epoch is not worth compiling. A deep net would take minutes as a whole: its links are of a few kinds, compiled once
    each.
    """

    def __init__(self, model: Classifier, stacked: bool, compiled_for: int | None = None) -> None:
        self._skeleton = deepcopy(model)
        self._stacked = stacked
        self._batch = compiled_for
        if compiled_for is not None:
            from softtargets.models.kernels import use_kernels  # Triton, which not every machine has

            use_kernels(self._skeleton, stacked)
        self._links = self._kinds(compiled_for is not None)

    def __call__(
        self, parameters: Named, buffers: Named, images: Tensor, training: bool, shared: bool
    ) -> Tensor:
        """Logits; `shared` images are the same for all nets of a stack."""
        self._skeleton.train(training)
        size = images.shape[1 if self._stacked and not shared else 0]
        compiled = self._batch is not None and not (training and size != self._batch)
        values = images
        for prefix, link in self._links:
            own, kept = _part(parameters, prefix), _part(buffers, prefix)
            values = (link.compiled if compiled else link.plain)(own, kept, values, shared)
            shared = not self._stacked
        return values

    def _kinds(self, compiled: bool) -> list[tuple[str, _Link]]:
        """The links with the prefixes of their weights; those that are alike are computed by the first of them."""
        links = self._skeleton.links if compiled else []
        names = {module: f"{name}." for name, module in self._skeleton.named_modules() if name}
        found: dict[object, _Link] = {}
        return [
            (names[link], found.setdefault(_kind_of(link), _Link(link, self._stacked, compiled)))
            for link in links
        ] or [("", _Link(self._skeleton, self._stacked, compiled))]


class _Link:
    """A part of a net, or all of it."""

    def __init__(self, module: nn.Module, stacked: bool, compiled: bool) -> None:
        self._module, self._stacked = module, stacked
        self.compiled: Callable[..., Tensor] = self.plain
        if compiled:
            # Tensor cores want the channels last.
            self.compiled = torch.compile(
                self.plain, dynamic=False, options={"force_layout_optimization": True}
            )

    def plain(self, parameters: Named, buffers: Named, values: Tensor, shared: bool) -> Tensor:
        if not self._stacked:
            result: Tensor = functional_call(self._module, (parameters, buffers), (values,))
            return result

        def one(own: Named, kept: Named, seen: Tensor) -> Any:
            return functional_call(self._module, (own, kept), (seen,))

        stacked: Tensor = torch.vmap(one, in_dims=(0, 0, None if shared else 0))(parameters, buffers, values)
        return stacked


def _kind_of(link: nn.Module) -> object:
    return repr(link), tuple((name, value.shape) for name, value in link.state_dict().items())


def _part(named: Named, prefix: str) -> Named:
    return {name.removeprefix(prefix): value for name, value in named.items() if name.startswith(prefix)}


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
        self.shadows: list[Tensor | None] = [None] * len(self.parameters)
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

    With a `low` precision the weights of linear layers, which autocast would copy to it in every step, have a shadow in
    it that is written together with them. It is what is differentiated by: the numbers are the same, and a third of
    what a step reads and writes is saved. These weights lie in memory as their gradients come out of the backward pass,
    inputs before outputs, so that an update reads all of them in the same order.
    """

    lead = 1

    def __init__(
        self,
        models: Sequence[Classifier],
        keys: Tensor,
        forward: Forward | None,
        low: torch.dtype | None = None,
    ) -> None:
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
        linear = _linear_weights(models[0]) if low is not None else set()
        self.parameters = [
            (_turned(value) if name in linear else value).detach().requires_grad_()
            for name, value in parameters.items()
        ]
        self.shadows: list[Tensor | None] = [
            parameter.detach().to(low).requires_grad_() if name in linear else None
            for name, parameter in zip(self.names, self.parameters, strict=True)
        ]
        self.leaves = [
            parameter if shadow is None else shadow
            for parameter, shadow in zip(self.parameters, self.shadows, strict=True)
        ]

    def train(self, images: Tensor) -> Tensor:
        """In training mode, with gradient."""
        return self._forward(self._computed(), self._buffers, images, training=True, shared=False)

    @torch.no_grad()
    def look(self, images: Tensor, shared: bool) -> Tensor:
        """In evaluation mode, without gradient."""
        return self._forward(self._computed(), self._buffers, images, training=False, shared=shared)

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
        for shadow, parameter in zip(self.shadows, self.parameters, strict=True):
            if shadow is not None:
                shadow[run].copy_(parameter[run])

    def changed(self) -> list[Tensor]:
        """Weights, their shadows and buffers."""
        shadows = [shadow for shadow in self.shadows if shadow is not None]
        return [*self.parameters, *shadows, *self._buffers.values()]

    def swapped(self, parameters: Sequence[Tensor]) -> Nets:
        """To be looked at with other parameters."""
        other: Stacked = object.__new__(Stacked)
        other.__dict__.update(self.__dict__)
        other.parameters = other.leaves = list(parameters)
        return other

    def _named(self) -> Named:
        return dict(zip(self.names, self.parameters, strict=True))

    def _computed(self) -> Named:
        """What layers read."""
        return dict(zip(self.names, self.leaves, strict=True))


def _linear_weights(model: Classifier) -> set[str]:
    return {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def _turned(weights: Tensor) -> Tensor:
    """The same (runs, outputs, inputs), in memory with the inputs before the outputs."""
    return weights.transpose(1, 2).contiguous().transpose(1, 2)
