"""Work for a GPU, recorded once and then replayed: the host launches one graph instead of hundreds of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

# Before recording: libraries choose their algorithms, and what is compiled is compiled.
_TRIALS = 3
_KINDS = 1024


class Recorder:
    """A function as CUDA graphs, one for each combination of its arguments.

    The function must read and write the same tensors in every call. `changed` are those that it changes depending on
    what they were: trials before the recording leave no trace in them.
    """

    def __init__(self, function: Callable[..., None], changed: Sequence[Tensor]) -> None:
        self._function = function
        self._changed = changed
        self._graphs: dict[tuple[int, ...], torch.cuda.CUDAGraph] = {}

    def run(self, *arguments: int) -> None:
        """Call the function on the current stream, which must not be the default one."""
        self.ready(*arguments)
        self._graphs[arguments].replay()

    def ready(self, *arguments: int) -> None:
        """Record what `run` will replay, if that has not been done; random numbers are best seeded in between."""
        if arguments not in self._graphs:
            self._graphs[arguments] = self._record(arguments)

    def _record(self, arguments: tuple[int, ...]) -> torch.cuda.CUDAGraph:
        import torch._dynamo  # here, since it takes seconds

        before = [tensor.detach().clone() for tensor in self._changed]
        # Nets and sizes of batch are many, and share the code that is compiled for each of them.
        with torch._dynamo.config.patch(recompile_limit=_KINDS, accumulated_recompile_limit=_KINDS):
            for _ in range(_TRIALS):
                self._function(*arguments)
                with torch.no_grad():
                    for tensor, value in zip(self._changed, before, strict=True):
                        tensor.copy_(value)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(
                graph, stream=torch.cuda.current_stream(), capture_error_mode="thread_local"
            ):
                self._function(*arguments)
        return graph
