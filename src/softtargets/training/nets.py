"""The nets of a pack: one as it is, or several of one shape stacked and computed as one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from softtargets.models import Classifier

# Weights of one layer begin at a multiple of so many numbers: kernels read faster from even addresses.
_ALIGNED = 64

Named = dict[str, Tensor]
Buckets = Sequence[Sequence[int]]  # which parameters lie side by side
Inputs = tuple[Tensor, ...]


class Nets(ABC):
    """What a pack asks of its nets. Tensors that go in and come out have the runs as first dimension."""

    runs: int
    lead: ClassVar[int]  # dimensions that the parameters have before a net's own: 1 where nets are stacked
    names: list[str]  # of the parameters, as a net alone has them
    leaves: list[Tensor]  # to differentiate by: one for each name
    parameters: list[Tensor]  # to be moved by an update: the same numbers, perhaps in fewer tensors
    shadows: list[Tensor | None]  # copies of parameters in lower precision, to be kept up to date
    _forward: Forward

    def train(self, inputs: Inputs) -> Tensor:
        """What each net says of its run's own inputs, in training mode, with gradient: logits (runs, ..., classes)."""
        return self._said(inputs, training=True, shared=False)

    @torch.no_grad()
    def look(self, inputs: Inputs, shared: bool) -> Tensor:
        """Logits in evaluation mode, of the same inputs for all runs if `shared`, without gradient."""
        return self._said(inputs, training=False, shared=shared)

    def swapped(self, parameters: Sequence[Tensor]) -> Nets:
        """The same nets with other parameters, such as averages of them, to be looked at."""
        other = copy(self)
        other.parameters, other.leaves = list(parameters), self.apart(parameters)
        return other

    @abstractmethod
    def set_place(self, steps: Tensor) -> None:
        """Tell whatever draws at random inside the nets which step of each run this is."""

    def collected(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients of the leaves, as those of the parameters: as they are, unless parameters lie side by side."""
        return list(gradients)

    def apart(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Tensors like the parameters, as views, one for each name."""
        return list(tensors)

    @abstractmethod
    def state(self, run: int) -> Named:
        """The weights and buffers of one run, as its net alone would name them."""

    @abstractmethod
    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        """Give one run these weights and buffers."""

    @abstractmethod
    def changed(self) -> list[Tensor]:
        """All tensors that a training step writes to."""

    @abstractmethod
    def _said(self, inputs: Inputs, training: bool, shared: bool) -> Tensor:
        """What the nets say, computed from the leaves."""

    def _named(self, tensors: Sequence[Tensor]) -> Named:
        return dict(zip(self.names, tensors, strict=True))


class Forward:
    """How nets of one shape are computed: by a skeleton that borrows their weights.

    Packs of one shape share it. With `worth`, which is for a GPU, evaluation is compiled, and training on first inputs
    of the shapes that it says are worth it, once for all packs, with our own kernels where they are faster. A deep net
    would take minutes as a whole: its links are of a few kinds, compiled once each; `dynamic`: for inputs of any shape.
    """

    def __init__(
        self,
        model: Classifier,
        stacked: bool,
        worth: Callable[[torch.Size], bool] | None = None,
        dynamic: bool = False,
    ) -> None:
        self._skeleton = model if worth is None else deepcopy(model)
        self._stacked = stacked
        self._worth, self._dynamic = worth, dynamic
        if worth is not None:
            from softtargets.models.kernels import use_kernels  # Triton, which not every machine has

            use_kernels(self._skeleton, stacked)
        self._links = self._kinds(worth is not None)
        # What kernels compute as a whole in training has links for evaluation, and for where they do not.
        self._whole = None if worth is None else self._as_a_whole()

    def __call__(
        self, parameters: Named, buffers: Named, inputs: Inputs, training: bool, shared: bool
    ) -> Tensor:
        """What the net says; `shared` inputs are the same for all nets of a stack."""
        self._skeleton.train(training)
        shape = inputs[0].shape[1 if self._stacked and not shared else 0 :]
        compiled = self._worth is not None and (not training or self._worth(shape))
        if compiled and training and self._whole is not None:
            names, trains_whole, whole = self._whole
            own = {name: parameters[known] for name, known in names.items()}
            if trains_whole(inputs, {**own, **buffers}):
                found = whole.plain(own, buffers, inputs, shared)
                assert isinstance(found, Tensor)
                return found
        for prefix, names, link in self._links:
            own = {name: parameters[known] for name, known in names.items()}
            kept = {n.removeprefix(prefix): value for n, value in buffers.items() if n.startswith(prefix)}
            values = (link.compiled if compiled else link.plain)(own, kept, inputs, shared)
            inputs, shared = values if isinstance(values, tuple) else (values,), not self._stacked
        (said,) = inputs
        return said

    def _as_a_whole(self) -> tuple[Mapping[str, str], Callable[..., bool], _Link] | None:
        """The names of its weights, when kernels compute the net as a whole, and the net."""
        trains_whole = getattr(self._skeleton, "trains_whole", None)
        if trains_whole is None:
            return None
        return _first_names(self._skeleton), trains_whole, _Link(self._skeleton, self._stacked, False, False)

    def _kinds(self, compiled: bool) -> list[tuple[str, Mapping[str, str], _Link]]:
        """The links, those that are alike computed by the first of them, with what their names begin with in the net,
        and the names of their weights there: one that several layers share has the first of its names.
        """
        links = (self._skeleton.links if compiled else []) or [self._skeleton]
        prefixes = {module: f"{name}." if name else "" for name, module in self._skeleton.named_modules()}
        first = _first_names(self._skeleton)
        found: dict[object, _Link] = {}
        made: list[tuple[str, Mapping[str, str], _Link]] = []
        for link in links:
            prefix = prefixes[link]
            own = link.named_parameters(prefix.removesuffix("."), remove_duplicate=False)
            names = {name.removeprefix(prefix): first[name] for name, _ in own}
            made_anew = _Link(link, self._stacked, compiled, self._dynamic)
            alike = found.setdefault(_kind_of(link), made_anew)
            made.append((prefix, names, alike))
        return made


class _Link:
    """A part of a net, or all of it."""

    def __init__(self, module: nn.Module, stacked: bool, compiled: bool, dynamic: bool) -> None:
        self._module, self._stacked = module, stacked
        self.compiled: Callable[..., Any] = self.plain
        # Of a link that computes nothing the compiler says that `plain` is not worth compiling, and believes it of all.
        if compiled and not getattr(module, "slight", False):
            # Tensor cores want the channels last.
            self.compiled = torch.compile(
                self.plain, dynamic=dynamic, options={"force_layout_optimization": True}
            )

    def plain(
        self, parameters: Named, buffers: Named, inputs: Inputs, shared: bool
    ) -> Tensor | tuple[Tensor, ...]:
        """What it gives for what was given before: to the next link, a tensor or several."""

        def one(own: Named, kept: Named, seen: Inputs) -> Any:
            return functional_call(self._module, (own, kept), seen)

        if self._stacked:
            one = torch.vmap(one, in_dims=(0, 0, None if shared else 0))
        values: Tensor | tuple[Tensor, ...] = one(parameters, buffers, inputs)
        return values


def _kind_of(link: nn.Module) -> object:
    return repr(link), tuple((name, value.shape) for name, value in link.state_dict().items())


class Single(Nets):
    """One net as it is; the weights that an update treats alike lie side by side, so that it is a few operations.

    With a `low` precision the weights of linear layers but for the head have a shadow in it, written together with
    them, which these layers read and are differentiated by: autocast would copy each of them in every step, and each
    gradient back, which is the same numbers and, in a small Transformer, a hundred kernels more. Where such weights lie
    by themselves, so do their gradients, in the low precision, and a kernel that knows may write them there.
    """

    runs = 1
    lead = 0

    def __init__(
        self,
        model: Classifier,
        keys: Tensor,
        forward: Forward | None,
        buckets: Buckets | None = None,
        low: torch.dtype | None = None,
        sliced: bool = False,
    ) -> None:
        self.model = model
        # With the number of rows before one's own where others have those of the same batch.
        self.place = torch.cat((keys[0], keys.new_zeros(2 if sliced else 1)))
        model.draw_from(self.place)
        self._forward = forward or Forward(model, stacked=False)
        self.names = [name for name, _ in model.named_parameters()]
        self._first = _first_names(model)
        self._shapes = [parameter.shape for parameter in model.parameters()]
        self.leaves = list(model.parameters())
        self._buckets = buckets or [[index] for index in range(len(self.leaves))]
        self.parameters = [
            self._flat([self.leaves[index].detach() for index in group]) for group in self._buckets
        ]
        for leaf, view in zip(self.leaves, self.apart(self.parameters), strict=True):
            leaf.data = view
        self.shadows: list[Tensor | None] = [None] * len(self.parameters)
        self._gradients = [torch.zeros_like(parameter) for parameter in self.parameters]
        if low is not None:
            self._differentiate_in(low)

    def _differentiate_in(self, low: torch.dtype) -> None:
        """Take the shadows of linear layers for leaves, and let their gradients be written where updates read them."""
        inner = inner_linear(self.model)
        for number, group in enumerate(self._buckets):
            if set(group) & set(inner):
                self.shadows[number] = self.parameters[number].to(low)
            if set(group) <= set(inner):
                self._gradients[number] = self._gradients[number].to(low)
        copies = self.apart(
            [self.parameters[i] if own is None else own for i, own in enumerate(self.shadows)]
        )
        for index in inner:
            # A parameter, whose shape the compiler takes for granted; of other tensors it may vary.
            self.leaves[index] = nn.Parameter(copies[index].detach())
        for leaf, place in zip(self.leaves, self.apart(self._gradients), strict=True):
            if leaf.dtype == place.dtype:
                leaf.gradient_goes_to = place  # type: ignore[attr-defined]

    def set_place(self, steps: Tensor) -> None:
        self.place[2:3] = steps

    def set_row(self, first: int) -> None:
        """Tell whatever draws at random how many rows of the batch come before those that are given."""
        self.place[3:].fill_(first)

    def gather_into(self, extra: int) -> Tensor:
        """Put all gradients into one tensor from now on, with room for some numbers more at its end."""
        room = self._flat([torch.zeros_like(parameter) for parameter in self.parameters])
        room = nn.functional.pad(room, (0, extra))
        sizes = [parameter.numel() for parameter in self.parameters]
        assert not any(size % _ALIGNED for size in sizes)
        self._gradients = list(room[: sum(sizes)].split(sizes))
        for leaf in self.leaves:
            leaf.gradient_goes_to = None  # type: ignore[attr-defined]
        return room

    def collected(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Side by side, as the weights; where a kernel has written them there already, as they are."""
        # Of one precision at a time, and apart what lies otherwise in memory: a list that is not of one kind would be
        # copied tensor by tensor.
        kinds: dict[object, tuple[list[Tensor], list[Tensor]]] = {}
        for place, gradient in zip(self.apart(self._gradients), gradients, strict=True):
            if gradient.data_ptr() == place.data_ptr() and gradient.numel():
                continue  # written there
            kind = gradient.dtype, gradient.stride() == place.stride()
            into, of = kinds.setdefault(kind, ([], []))
            into.append(place)
            of.append(gradient)
        for into, of in kinds.values():
            torch._foreach_copy_(into, of)
        return self._gradients

    def apart(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The part of each layer."""
        views: list[Tensor] = [torch.empty(0)] * len(self._shapes)
        for group, whole in zip(self._buckets, tensors, strict=True):
            begin = 0
            for index in group:
                shape = self._shapes[index]
                views[index] = whole[begin : begin + shape.numel()].view(shape)
                begin += -(-shape.numel() // _ALIGNED) * _ALIGNED
        return views

    def state(self, run: int) -> Named:
        own = self._named(self.apart(self.parameters))
        # By all names: a matrix that layers share would else be averaged under one, and the last one under others.
        return dict(self.model.state_dict()) | {name: own[first] for name, first in self._first.items()}

    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        self.model.load_state_dict(dict(state))
        for shadow, parameter in zip(self.shadows, self.parameters, strict=True):
            if shadow is not None:
                shadow.copy_(parameter)

    def changed(self) -> list[Tensor]:
        """Weights, their shadows, buffers, and the place of the draws."""
        shadows = [shadow for shadow in self.shadows if shadow is not None]
        return [*self.parameters, *shadows, *self.model.buffers(), self.place]

    def _said(self, inputs: Inputs, training: bool, shared: bool) -> Tensor:
        own = inputs if shared else tuple(each[0] for each in inputs)
        buffers = dict(self.model.named_buffers(remove_duplicate=False))  # dropouts share their place
        return self._forward(self._named(self.leaves), buffers, own, training, shared=True).unsqueeze(0)

    def _flat(self, values: Sequence[Tensor]) -> Tensor:
        padded = [nn.functional.pad(value.flatten(), (0, -value.numel() % _ALIGNED)) for value in values]
        return torch.cat(padded)


class Stacked(Nets):
    """Several nets of one shape, their tensors stacked; one call of `torch.vmap` computes all.

    A run's results agree with those of its net as it is up to rounding, since products may be added in another order.
    They depend neither on what the other runs hold nor on how many there are (on a CPU for layers of even widths).

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
        _give_places(models, keys)
        self.runs = len(models)
        parameters, self._buffers = stack_module_state(list(models))
        self._forward = forward or Forward(models[0], stacked=True)
        self._places = [name for name in self._buffers if name.rpartition(".")[2] == "place"]
        # Where dropouts draw, and which they are, follows from the recipe and is no part of a state.
        self._not_kept = {name for name in self._buffers if name.rpartition(".")[2] in ("place", "position")}
        self.names = list(parameters)
        linear = _linear_weights(models[0]) if low is not None else set()
        self.parameters, self.shadows, self.leaves = [], [], []
        for name, value in parameters.items():
            parameter = (_turned(value) if name in linear else value).detach().requires_grad_()
            shadow = parameter.detach().to(low).requires_grad_() if name in linear else None
            self.parameters.append(parameter)
            self.shadows.append(shadow)
            self.leaves.append(parameter if shadow is None else shadow)

    def set_place(self, steps: Tensor) -> None:
        for name in self._places:
            self._buffers[name][:, 2] = steps

    def state(self, run: int) -> Named:
        own = self._named(self.parameters) | self._buffers
        return {name: value[run].detach() for name, value in own.items() if name not in self._not_kept}

    @torch.no_grad()
    def load(self, run: int, state: Mapping[str, Tensor]) -> None:
        own = self._named(self.parameters) | self._buffers
        for name, value in state.items():
            own[name][run].copy_(value)
        for shadow, parameter in zip(self.shadows, self.parameters, strict=True):
            if shadow is not None:
                shadow[run].copy_(parameter[run])

    def changed(self) -> list[Tensor]:
        """Weights, their shadows and buffers."""
        shadows = [shadow for shadow in self.shadows if shadow is not None]
        return [*self.parameters, *shadows, *self._buffers.values()]

    def _said(self, inputs: Inputs, training: bool, shared: bool) -> Tensor:
        return self._forward(self._named(self.leaves), self._buffers, inputs, training, shared)


def _give_places(models: Sequence[Classifier], keys: Tensor) -> None:
    """To each dropout one of its own: of what is shared, only the first is stacked."""
    for model, key in zip(models, keys, strict=True):
        for dropout in model.number_dropouts():
            dropout.place = torch.cat((key, key.new_zeros(1)))


def _linear_weights(model: Classifier) -> set[str]:
    return {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def _first_names(model: nn.Module) -> dict[str, str]:
    """Of every name of a parameter the first one that the same parameter has: layers may share one."""
    first = {value: name for name, value in model.named_parameters()}
    return {name: first[value] for name, value in model.named_parameters(remove_duplicate=False)}


def inner_linear(model: Classifier) -> list[int]:
    """Which of the parameters are weights and biases of linear layers, and not of the head nor shared with others."""
    owners: dict[nn.Parameter, list[nn.Module]] = {}
    for module in model.modules():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(parameter, []).append(module)

    def inner(parameter: nn.Parameter) -> bool:
        return all(isinstance(one, nn.Linear) and one is not model.head for one in owners[parameter])

    return [index for index, parameter in enumerate(model.parameters()) if inner(parameter)]


def _turned(weights: Tensor) -> Tensor:
    """The same (runs, outputs, inputs), in memory with the inputs before the outputs."""
    return weights.transpose(1, 2).contiguous().transpose(1, 2)
