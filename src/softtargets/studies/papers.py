"""The papers that studies are about."""

from __future__ import annotations

CHEN = "Chen, Ziyin, Wang, Liang: An investigation of how label smoothing affects generalization, 2020"
MULLER = "Müller, Kornblith, Hinton: When does label smoothing help? NeurIPS 2019"
PATRINI = (
    "Patrini, Rozza, Menon, Nock, Qu: Making deep neural networks robust to label noise: a loss correction "
    "approach, 2017"
)
WAGNER = "Wagner, Kurowski, Holländer, Uelwer: [Re] When does label smoothing help? ReScience C 2023"
WEI = (
    "Wei, Zhu, Cheng, Liu, Niu, Liu: Learning with noisy labels revisited: a study using real-world human "
    "annotations, ICLR 2022"
)
