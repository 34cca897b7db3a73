"""The best smoothing matrix of the beta type, S* = T Tᵗ (Chen et al. 2020, section 4.2), trained on CIFAR-10.

At full size there are 24 runs of 5 million images.
"""

from __future__ import annotations

from softtargets.studies.chen_cifar10 import PAPER, QUICK
from softtargets.studies.chen_section_4 import Scope, study_of

# The paper's network takes a hundred times as long as that for MNIST: one rate of each kind.
study = study_of(
    Scope(
        dataset="CIFAR-10",
        sizes={
            "small": ((("symmetric", 0.5), ("pair", 0.45)), QUICK),
            "full": ((("symmetric", 0.5), ("pair", 0.45)), PAPER),
        },
        apart={
            "small": "This is the small size, for a CPU: a fully connected network with one hidden layer on the first "
            "1,000 images, which misclassifies most test images whatever its labels. The theory knows no such error.",
            "full": "Network and training are those of the paper's appendix C, as in the study chen-cifar10.",
        },
    ),
    "chen-section-4-cifar10",
    " on CIFAR-10",
)
