"""What a picture shows, for those who cannot see it."""

from __future__ import annotations

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg


def ink(drawing) -> float:
    """The share of the picture that is not white."""
    canvas = FigureCanvasAgg(drawing)
    canvas.draw()
    return float((np.asarray(canvas.buffer_rgba())[..., :3] < 200).any(-1).mean())


def texts(axes) -> list[str]:
    return [text.get_text() for text in axes.texts]
