"""The best smoothing matrix of the beta type, S* = T Tᵗ (Chen et al. 2020, section 4.2), trained on MNIST.

`chen_section_4_cifar10` is the same on CIFAR-10. At full size there are 48 runs of 6 million images, of which 30 are
also in chen-mnist and chen-forward-correction.
"""

from functools import partial

from softtargets.studies.chen_mnist import PAPER, QUICK
from softtargets.studies.chen_section_4.findings import SEEDS, claims, findings
from softtargets.studies.chen_section_4.grid import AXES, Scope, trials
from softtargets.studies.chen_section_4.measures import measure
from softtargets.studies.study import CHEN, Study

__all__ = ["Scope", "study", "study_of"]

TITLE = "Is S* = T Tᵗ the best smoothing where test labels are wrong too{}?"


def study_of(scope: Scope, name: str, where: str = "") -> Study:
    """The study on one dataset."""
    return Study(
        name=name,
        title=TITLE.format(where),
        lead=(
            "Chen, Ziyin, Wang and Liang (2020) derive the smoothing matrix with the lowest loss against test labels "
            "that are as wrong as those of the training, and say that it has never been explored. They do not train "
            "with it. Here it is trained, beside hard labels, smoothing by one p and the best matrix against clean "
            "test labels."
        ),
        papers=(CHEN,),
        trials=partial(trials, scope),
        keep=("test:scores",),
        measure=measure,
        findings=partial(findings, scope),
        claims=partial(claims, scope),
        seeds=SEEDS,
        axes=AXES,
        sizes=tuple(scope.sizes),
    )


study = study_of(
    Scope(
        dataset="MNIST",
        sizes={
            "small": ((("symmetric", 0.5), ("pair", 0.45)), QUICK),
            "full": ((("symmetric", 0.15), ("symmetric", 0.5), ("pair", 0.15), ("pair", 0.45)), PAPER),
        },
        apart={
            "small": "This is the small size, for a CPU: a fully connected network with one hidden layer on the first "
            "2,000 digits.",
            "full": "Network and training are those of the paper's appendix C, as in the study chen-mnist.",
        },
    ),
    "chen-section-4",
)
