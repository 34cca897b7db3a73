"""From tensors to launches of the kernels: shapes and block sizes."""

from softtargets.models.kernels.launch.convolution import (
    Shape,
    Tiles,
    convolve,
    gradient_of_maps,
    gradient_of_weights,
    gradient_tiles,
    product_tiles,
)
from softtargets.models.kernels.launch.pooling import POOL_BLOCK, Pooling, gradient_of_pool, pool
from softtargets.models.kernels.launch.response_norm import NORM_ROWS, gradient_of_norm, normalise

__all__ = [
    "NORM_ROWS",
    "POOL_BLOCK",
    "Pooling",
    "Shape",
    "Tiles",
    "convolve",
    "gradient_of_maps",
    "gradient_of_norm",
    "gradient_of_pool",
    "gradient_of_weights",
    "gradient_tiles",
    "normalise",
    "pool",
    "product_tiles",
]
