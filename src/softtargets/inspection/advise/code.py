"""The advice as lines to copy, for PyTorch, timm, Hugging Face and our own losses.

All four share the smoothed mass among all K classes, the label included: PyTorch by its documentation, timm by
``confidence * nll + smoothing * mean(-log p)``, the ``LabelSmoother`` of Hugging Face by the same formula with epsilon,
ours by ``spread="all"``. Losses that share it among the K - 1 others need the smaller ``alpha_others``.
"""

from __future__ import annotations


def loss_lines(alpha_all: float, alpha_others: float) -> dict[str, str]:
    """One line for each library that trains with this smoothing.

    >>> for library, line in loss_lines(0.2222, 0.2).items():
    ...     print(f"{library}: {line}")
    PyTorch: torch.nn.CrossEntropyLoss(label_smoothing=0.222)
    timm: timm.loss.LabelSmoothingCrossEntropy(smoothing=0.222)
    Hugging Face: transformers.TrainingArguments(..., label_smoothing_factor=0.222)
    softtargets: softtargets.losses.LabelSmoothing(alpha=0.222, spread="all")
    tensor2tensor, fairseq: label_smoothing=0.200  # shared among the other classes only
    """
    every, others = f"{alpha_all:.3f}", f"{alpha_others:.3f}"
    return {
        "PyTorch": f"torch.nn.CrossEntropyLoss(label_smoothing={every})",
        "timm": f"timm.loss.LabelSmoothingCrossEntropy(smoothing={every})",
        "Hugging Face": f"transformers.TrainingArguments(..., label_smoothing_factor={every})",
        "softtargets": f'softtargets.losses.LabelSmoothing(alpha={every}, spread="all")',
        "tensor2tensor, fairseq": f"label_smoothing={others}  # shared among the other classes only",
    }


def loss_code(alpha_all: float, alpha_others: float) -> str:
    """The same lines as one piece of code, each under the name of its library.

    >>> print(loss_code(0.2222, 0.2).splitlines()[:2])
    ['# PyTorch', 'torch.nn.CrossEntropyLoss(label_smoothing=0.222)']
    """
    lines = loss_lines(alpha_all, alpha_others)
    return "\n".join(f"# {library}\n{line}" for library, line in lines.items())


def matrix_code(classes: int, smoothing: bool) -> str:
    """Lines that train with the matrices of a page, whose directory they are run in.

    Forward correction takes T, what becomes of clean labels; smoothing takes S, the targets of given ones.
    """
    lines = [
        "import numpy, torch",
        "from softtargets.losses import ForwardCorrection" + (", LabelSmoothing" if smoothing else ""),
        'table = numpy.genfromtxt("tables/noise_matrix.csv", delimiter=",", names=True)',
        f'T = torch.tensor(table["share"].reshape({classes}, {classes}), dtype=torch.float32)',
        "loss = ForwardCorrection(matrix=T)  # the net then says what the clean label is",
    ]
    if smoothing:
        lines += [
            f'S = torch.tensor(table["target"].reshape({classes}, {classes}), dtype=torch.float32)',
            "loss = LabelSmoothing(alpha=1, matrix=S)  # or this: each label's own soft target",
        ]
    return "\n".join(lines)
