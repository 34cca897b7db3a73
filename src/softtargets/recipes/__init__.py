"""Recipes: frozen, validated, readable descriptions of one training. Nothing here imports torch.

Every file says for itself what of it recipes are made of.
"""

# ruff: noqa: F403
from softtargets.recipes.augmentation import *
from softtargets.recipes.datasets import *
from softtargets.recipes.models import *
from softtargets.recipes.noise import *
from softtargets.recipes.optimisation import *
from softtargets.recipes.probes import *
from softtargets.recipes.recipe import *
from softtargets.recipes.regularisers import *
from softtargets.recipes.schema import *
from softtargets.recipes.yaml import *
