"""Tensors that a module keeps for its own process, and how those of several processes are added up.

``DistributedDataParallel`` writes the first process's buffers over everyone's before each forward pass of a training,
so what every process counts by itself must be no buffer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, distributed, nn


class ProcessState(nn.Module):
    """A module with tensors of its own process (`fresh`), which move, and are saved and copied, as buffers are.

    `named_state` has them by name; for ``torch.export`` they are constants. ``.to`` never rounds them.
    A checkpoint from before the module was there is still loaded strictly: where none of its tensors is found, none
    is missing. `persistent` says whether they are part of ``state_dict``. After a time without content, on the meta
    device, they begin anew.
    """

    def __init__(self, *, persistent: bool) -> None:
        super().__init__()
        self._saved = persistent
        self._kept: tuple[str, ...] = ()

    def fresh(self, device: torch.device) -> dict[str, Tensor]:
        """The tensors as they are at first, by name."""
        return {}

    def begin(self, device: torch.device | None = None) -> None:
        """Forget everything; where the tensors are, unless a device is given."""
        where = device or (getattr(self, self._kept[0]).device if self._kept else torch.empty(0).device)
        with torch.inference_mode(False):  # what is made in that mode could not be changed outside of it
            tensors = self.fresh(where)
        for name, tensor in tensors.items():
            setattr(self, name, tensor)
        self._kept = tuple(tensors)

    def persistent(self, mode: bool = True) -> ProcessState:
        """Say whether the tensors are part of ``state_dict``; they are loaded where they are found in any case."""
        self._saved = mode
        return self

    def awake(self, device: torch.device) -> None:
        """Begin, before a call with data on a device, if the tensors have no content but the data do."""
        if device.type != "meta" and self._kept and getattr(self, self._kept[0]).is_meta:
            self.begin(device)

    def named_state(self) -> dict[str, Tensor]:
        """Buffers and the tensors of this process by name, as ``torch.func.functional_call`` takes them."""
        return dict(self.named_buffers()) | {name: getattr(self, name) for name in self._kept}

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> ProcessState:
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name in self._kept:
            tensor: Tensor = getattr(self, name)
            moved = fn(torch.empty(0, dtype=tensor.dtype, device=tensor.device))
            dtype = torch.promote_types(tensor.dtype, moved.dtype)
            if tensor.is_meta and not moved.is_meta:
                tensor = self.fresh(moved.device)[name]
            setattr(self, name, tensor.to(moved.device, dtype))
        return self

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._saved:
            destination.update({prefix + name: getattr(self, name).detach() for name in self._kept})

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        names = {prefix + name: name for name in (*self._buffers, *self._kept)}
        absent = not names.keys() & state_dict.keys()
        found = {name: state_dict.pop(prefix + name) for name in self._kept if prefix + name in state_dict}
        lists = missing_keys, unexpected_keys, error_msgs
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, *lists)
        if absent:
            missing_keys[:] = [key for key in missing_keys if key not in names]
            return
        missing_keys += [prefix + name for name in self._kept if name not in found]
        for name, value in found.items():
            own: Tensor = getattr(self, name)
            if value.shape != own.shape:
                error_msgs.append(
                    f"{prefix}{name} must have the shape {tuple(own.shape)}, not {tuple(value.shape)}"
                )
            elif own.is_meta:
                setattr(self, name, value.detach().clone().to(own.dtype))
            else:
                own.copy_(value)


def several_processes() -> bool:
    """Whether this is one of several processes that ``torch.distributed`` connects."""
    there = distributed.is_available() and distributed.is_initialized()
    return there and distributed.get_world_size() > 1


def added_up(tensors: dict[str, Tensor], caller: str, switch: str, group: Any = None) -> dict[str, Tensor]:
    """The sums of tensors over all processes of a group, which must all call this: one exchange for each precision.

    Nobody waits for ever: who calls alone gets an error, which names the `caller` and the `switch` that turns this off,
    after the timeout of ``torch.distributed.init_process_group``, and has not disturbed what others exchange meanwhile.
    """
    _meet(caller, switch, group)
    found: dict[str, Tensor] = {}
    for dtype in sorted({tensor.dtype for tensor in tensors.values()}, key=str):
        named = {name: tensor for name, tensor in tensors.items() if tensor.dtype == dtype}
        flat = torch.cat([tensor.flatten() for tensor in named.values()])
        distributed.all_reduce(flat, group=group)
        parts = flat.split([tensor.numel() for tensor in named.values()])
        for (name, tensor), part in zip(named.items(), parts, strict=True):
            found[name] = part.view(tensor.shape)
    return found


_meetings: Counter[str] = Counter()


def _meet(caller: str, switch: str, group: Any) -> None:
    """Wait until every process of a group is here, without an exchange that another one could be taken for."""
    ranks = distributed.get_process_group_ranks(group or distributed.group.WORLD)
    store: Any = distributed.distributed_c10d._get_default_store()
    if store is None:  # with MPI
        return
    place = f"softtargets/{caller}/{'-'.join(map(str, ranks))}"
    turn = _meetings[place]
    _meetings[place] += 1
    own = distributed.get_rank()
    store.set(f"{place}/{turn}/{own}", "here")
    try:
        store.wait([f"{place}/{turn}/{rank}" for rank in ranks])
    except RuntimeError as error:
        raise RuntimeError(
            f"{caller} adds up what all {len(ranks)} processes have seen, but not all of them have called it: call it "
            f"in every process, or set {switch} to False"
        ) from error
    if turn:  # who is here has left the meeting before
        store.delete_key(f"{place}/{turn - 1}/{own}")
