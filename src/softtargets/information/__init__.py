"""How much a logit tells about its example: mutual information, estimated and exact."""

from softtargets.information.difference import logit_difference
from softtargets.information.estimate import Information, estimate_information, example_information
from softtargets.information.evolution import Evolution, EvolutionBand, band, evolution
from softtargets.information.mixture import mixture_information

__all__ = [
    "Evolution",
    "EvolutionBand",
    "Information",
    "band",
    "estimate_information",
    "evolution",
    "example_information",
    "logit_difference",
    "mixture_information",
]
