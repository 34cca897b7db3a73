"""How many bytes of tensors are alive at a time, counted while something is computed."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class MemoryCounter(TorchDispatchMode):
    """Counts the tensors that are made inside this context; `most` is what there was of them at any one time.

    It counts what they would take, also of tensors that have a shape and no content (on "meta").

    >>> with MemoryCounter() as counter:
    ...     total = torch.zeros(100)
    ...     for _ in range(5):
    ...         total = total + torch.ones(100)
    >>> counter.most, counter.now  # the total, what is added and the sum, of 4 bytes a number; then the total alone
    (1200, 400)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.most = 0
        self._sizes: dict[int, int] = {}  # by address

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        given = {storage._cdata for storage in _storages((args, kwargs))}
        result = func(*args, **kwargs)
        for storage in _storages(result):
            address = storage._cdata
            if address not in given and address not in self._sizes:  # others are views, or changed in place
                self._sizes[address] = storage.nbytes()
                self.now += storage.nbytes()
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._gone, address)
        return result

    def _gone(self, address: int) -> None:
        self.now -= self._sizes.pop(address)


def _storages(values: Any) -> list[torch.UntypedStorage]:
    return [value.untyped_storage() for value in tree_leaves(values) if isinstance(value, Tensor)]
