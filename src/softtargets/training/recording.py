"""Work for a GPU, recorded once and then replayed: the host launches one graph instead of hundreds of kernels."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from softtargets.models import known_attention

# Before recording: libraries choose their algorithms, and what is compiled is compiled.
_TRIALS = 3
_KINDS = 1024


class Recorder:
    """A function as CUDA graphs, one for each combination of its arguments.

    The function must be the same, and read and write the same tensors, in every call. `changed` are those that it
    changes depending on what they were: trials before the recording leave no trace in them. Where there is no GPU it is
    not `on`, and functions are called.

    What a graph needs only while it is replayed lies in a `pool`, where other graphs have theirs too: a step of another
    shape takes no more memory. So graphs of one pool must be replayed one after another, as they are on one stream,
    and leave their results in tensors that were there before.
    """

    def __init__(self, changed: Sequence[Tensor], on: bool = True, pool: Any = None) -> None:
        self._changed = changed
        self._on = on
        self._pool = pool
        self._graphs: dict[tuple[Hashable, ...], torch.cuda.CUDAGraph] = {}

    def run(self, function: Callable[..., None], *arguments: Hashable) -> None:
        """Call the function on the current stream, which must not be the default one."""
        self.ready(function, *arguments)
        if self._on:
            self._graphs[arguments].replay()
        else:
            function(*arguments)

    def ready(self, function: Callable[..., None], *arguments: Hashable) -> None:
        """Record what `run` will replay, if that has not been done; random numbers are best seeded in between."""
        if self._on and arguments not in self._graphs:
            self._graphs[arguments] = self._record(function, arguments)

    def _record(self, function: Callable[..., None], arguments: tuple[Hashable, ...]) -> torch.cuda.CUDAGraph:
        before = [tensor.detach().clone() for tensor in self._changed]
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        with compiling_as_often_as_needed(), known_attention():
            for _ in range(_TRIALS):
                function(*arguments)
                with torch.no_grad():
                    for tensor, value in zip(self._changed, before, strict=True):
                        tensor.copy_(value)
            graph = torch.cuda.CUDAGraph()
            stream = torch.cuda.current_stream()
            with torch.cuda.graph(graph, self._pool, stream, capture_error_mode="thread_local"):
                function(*arguments)
        return graph


@contextmanager
def compiling_as_often_as_needed() -> Iterator[None]:
    """Nets, links of nets and sizes of batch are many and share code, of which torch else compiles eight versions.

    And that two lengths are the same in the first batch does not mean that they always are: torch would take it for
    granted, and compile again where they differ.
    """
    import torch._dynamo  # here, since it takes seconds
    import torch.fx.experimental._config

    new = hasattr(torch._dynamo.config, "recompile_limit")
    limits = ("recompile_limit", "accumulated_recompile_limit")
    limits = limits if new else ("cache_size_limit", "accumulated_cache_size_limit")
    with ExitStack() as patched:
        patched.enter_context(torch._dynamo.config.patch(dict.fromkeys(limits, _KINDS)))
        shapes: Any = torch.fx.experimental._config
        if hasattr(shapes, "use_duck_shape"):
            patched.enter_context(shapes.patch(use_duck_shape=False))
        yield
