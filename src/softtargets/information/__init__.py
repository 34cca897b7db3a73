"""How much a logit tells about its example: mutual information, estimated and exact."""

from softtargets.information.difference import logit_difference
from softtargets.information.estimate import Information, estimate_information, example_information
from softtargets.information.evolution import Evolution, EvolutionBand, band, evolution
from softtargets.information.mixture import mixture_information
from softtargets.information.others import information_against_others

__all__ = [
    "Evolution",
    "EvolutionBand",
    "Information",
    "band",
    "estimate_information",
    "evolution",
    "example_information",
    "information_against_others",
    "logit_difference",
    "mixture_information",
]
