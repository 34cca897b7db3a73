"""The arithmetic a recipe asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """The context in which a forward pass runs."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Let float32 matrix products and convolutions use TF32 only if the recipe says so.

    NVIDIA's float32 convolutions may add up in any order, and a run would not have the same bits twice; those are asked
    for that do not. Convolutions in bf16 repeat their bits as they are. Which algorithm computes a convolution is not
    tried out either, whatever the caller's program has set: the fastest of a moment may not be that of the next, nor of
    a run beside others.
    """
    library = torch.backends.cudnn
    products, convolutions = torch.get_float32_matmul_precision(), library.allow_tf32
    deterministic, benchmark = library.deterministic, library.benchmark
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    library.allow_tf32 = precision == "tf32"
    library.deterministic = deterministic or precision != "bf16"
    library.benchmark = False
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(products)
        library.allow_tf32, library.deterministic = convolutions, deterministic
        library.benchmark = benchmark
