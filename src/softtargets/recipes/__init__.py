"""Recipes: frozen, validated, readable descriptions of one training. Nothing here imports torch.

Each file defines one kind of recipe part.
"""

# ruff: noqa: F403
from softtargets.recipes import (
    augmentation,
    datasets,
    models,
    noise,
    optimisation,
    probes,
    recipe,
    regularisers,
    sources,
)
from softtargets.recipes import schema as _schema
from softtargets.recipes import yaml as _yaml
from softtargets.recipes.augmentation import *
from softtargets.recipes.datasets import *
from softtargets.recipes.models import *
from softtargets.recipes.noise import *
from softtargets.recipes.optimisation import *
from softtargets.recipes.probes import *
from softtargets.recipes.recipe import *
from softtargets.recipes.regularisers import *
from softtargets.recipes.schema import *
from softtargets.recipes.sources import *
from softtargets.recipes.yaml import *

__all__ = [
    *augmentation.__all__, *datasets.__all__, *models.__all__, *noise.__all__, *optimisation.__all__, *probes.__all__,
    *recipe.__all__, *regularisers.__all__, *_schema.__all__, *sources.__all__, *_yaml.__all__,
]  # fmt: skip
