"""How well what a network has learnt can be reused: a linear classifier on its penultimate activations, elsewhere.

Kornblith et al., "Do better ImageNet models transfer better?", 2019, whom the paper cites, train logistic regression
on the penultimate activations of ImageNet networks. Ours are of CIFAR-100, and the classifier is for CIFAR-10, which
has none of its classes (Krizhevsky 2009). The strength of its L2 penalty is chosen on a fifth of the training images.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.recipes import CIFAR10, Dataset
from softtargets.runs import Run
from softtargets.studies.measures import TrainedNets
from softtargets.studies.muller_images import FULL, SMALL
from softtargets.studies.study import Place, Trial

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
# Where to, and how many of its training images; None is all.
TARGETS: dict[str, tuple[Dataset, int | None]] = {SMALL: (CIFAR10(), 2000), FULL: (CIFAR10(), None)}


class Transfer:
    """Measures the accuracy of the linear classifier on the other dataset's test images."""

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)

    def __call__(self, trial: Trial, run: Run) -> dict[str, float]:
        """`transfer_accuracy` of the networks on CIFAR-100; nothing of the others."""
        if trial.labels["network"] != "cifar100":
            return {}
        data, most = TARGETS[trial.labels["size"]]
        train = self._nets.on_images(run, trial.recipe, data, "train", most)
        test = self._nets.on_images(run, trial.recipe, data, "test")
        parts = (train["features"], train["labels"], test["features"], test["labels"])
        return {"transfer_accuracy": linear_probe(*parts)}


def linear_probe(
    features: Tensor,
    labels: Tensor,
    test_features: Tensor,
    test_labels: Tensor,
    penalties: Sequence[float] = PENALTIES,
) -> float:
    """Test accuracy of logistic regression on standardised features, with the penalty that suits a fifth of them best.

    >>> x = torch.linspace(-1, 1, 100)[:, None]
    >>> linear_probe(x, (x[:, 0] > 0).long(), x, (x[:, 0] > 0).long()) > 0.97
    True
    """
    mean, deviation = features.mean(0), features.std(0).clamp(min=1e-6)
    inputs, tests = ((part - mean) / deviation for part in (features, test_features))
    # Every fifth, so that a set that lies class by class is parted fairly too.
    chooses = torch.arange(len(labels), device=labels.device) % 5 == 0
    classes = int(labels.max()) + 1

    def right(weights: Tensor, x: Tensor, y: Tensor) -> float:
        return float(((x @ weights[:-1] + weights[-1]).argmax(-1) == y).double().mean())

    def chosen(penalty: float) -> float:
        fitted = _regression(inputs[~chooses], labels[~chooses], classes, penalty)
        return right(fitted, inputs[chooses], labels[chooses])

    best = max(penalties, key=chosen)
    return right(_regression(inputs, labels, classes, best), tests, test_labels)


def _regression(x: Tensor, y: Tensor, classes: int, penalty: float) -> Tensor:
    """Weights (D + 1, K), the last row the biases: cross-entropy plus penalty / 2 times the squared weights."""
    weights = torch.zeros(x.shape[1] + 1, classes, dtype=x.dtype, device=x.device, requires_grad=True)
    solver = torch.optim.LBFGS([weights], max_iter=200, history_size=10, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        solver.zero_grad()
        cost = F.cross_entropy(x @ weights[:-1] + weights[-1], y.long())
        cost = cost + penalty / 2 * weights[:-1].square().sum()
        torch.autograd.backward(cost)
        return cost

    with torch.enable_grad():
        solver.step(loss)
    return weights.detach()
