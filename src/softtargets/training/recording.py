"""Work for a GPU, recorded once and then replayed: the host launches one graph instead of hundreds of kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

# Before recording: libraries choose their algorithms, and what is compiled is compiled.
_TRIALS = 3


class Recorder:
    """A function as CUDA graphs, one for each combination of its arguments, on a stream of its own.

    The function must read and write the same tensors in every call. `changed` are those that it changes depending on
    what they were: trials before the recording leave no trace in them.
    """

    def __init__(self, function: Callable[..., None], changed: Sequence[Tensor]) -> None:
        self._function = function
        self._changed = changed
        self._graphs: dict[tuple[int, ...], torch.cuda.CUDAGraph] = {}
        self.stream = torch.cuda.Stream()

    def run(self, *arguments: int) -> None:
        """Call the function, after all that was asked of the device before."""
        self.stream.wait_stream(torch.cuda.current_stream())
        if arguments not in self._graphs:
            self._graphs[arguments] = self._record(arguments)
        with torch.cuda.stream(self.stream):
            self._graphs[arguments].replay()
        torch.cuda.current_stream().wait_stream(self.stream)

    def wait(self) -> None:
        """Until all of it is done."""
        self.stream.synchronize()

    def _record(self, arguments: tuple[int, ...]) -> torch.cuda.CUDAGraph:
        before = [tensor.detach().clone() for tensor in self._changed]
        with torch.cuda.stream(self.stream):
            for _ in range(_TRIALS):
                self._function(*arguments)
            with torch.no_grad():
                for tensor, value in zip(self._changed, before, strict=True):
                    tensor.copy_(value)
        self.stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self._function(*arguments)
        return graph
