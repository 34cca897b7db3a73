"""Versions of the engine: raised by hand whenever the same recipe comes to other numbers than before.

The identity of a run says what was asked for. Which arithmetic answered is part of its provenance (``engine``): runs of
one recipe by two versions agree as two roundings of the same computation do, not bit for bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from softtargets.recipes import Recipe

# One sentence each, newest last: what a run of this version is, and why it differs from one of the version before.
ENGINES = {
    1: "On a GPU the sums of linear layers in a stack are cut up by how many runs train together.",
    2: "Weights of linear layers in a stack lie inputs first: a GPU adds up in another order (15 November 2026).",
    3: (
        "A run is what it would be alone, bit for bit: sums do not depend on how many runs train together, biases of "
        "convolutions are added before rounding, and images are standardised by exact sums (16 November 2026)."
    ),
    4: (
        "In fp32 and tf32 a GPU multiplies the matrices of a stack otherwise (fp32 as three products on tensor cores); "
        "bf16 and CPUs are as in version 3 (16 November 2026)."
    ),
    5: (
        "In bf16 a GPU computes whole blocks of ResNets, pre-activation or basic, with variances from sums of tiles "
        "and sums and norms before they are rounded; everything else is as in version 4 (18 November 2026)."
    ),
    6: (
        "Norms that gradients are clipped by are added up in one order, so that clipped runs of a stack are what they "
        "are alone too; single-precision convolutions of a GPU repeat their bits (18 November 2026)."
    ),
    7: (
        "How much of a gradient is kept by clipping is computed apart from the update on a GPU, so that clipped runs "
        "of a stack in bf16 are what they are alone too; in bf16 basic blocks whose channels are no multiples of 16 "
        "are computed by the kernels of the others (19 November 2026)."
    ),
    8: (
        "In bf16 a GPU trains a Transformer as a whole, with sums and norms in single precision between its "
        "products; gradients of looked-up rows are added up in other groups (19 November 2026)."
    ),
    9: (
        "Gradients of a Transformer's norms, biases and looked-up rows are added up in smaller parts on a GPU, and "
        "those of padding by themselves (20 November 2026)."
    ),
}
ENGINE = max(ENGINES)


def _convolves_exactly(recipe: Recipe) -> bool:
    """Whether there may be convolutions in single precision, TF32 included."""
    return recipe.precision != "bf16" and recipe.model.name not in ("mlp", "transformer")


def _looks_up(recipe: Recipe) -> bool:
    """Whether it is a network of tokens."""
    return recipe.model.name == "transformer"


def _is_filled_up(recipe: Recipe) -> bool:
    """Whether there may be basic blocks whose channels are no multiples of 16."""
    return recipe.model.name in ("resnet18", "resnet") and getattr(recipe.model, "width", 16) % 16 > 0


# Versions that compute a few recipes otherwise, perhaps on some devices only, and all others as the version before.
CONCERNED: dict[int, Callable[[Recipe, str], bool]] = {
    5: lambda recipe, device: recipe.model.name in ("preact_resnet", "resnet18", "resnet"),
    6: lambda recipe, device: recipe.clip is not None or (device != "cpu" and _convolves_exactly(recipe)),
    7: lambda recipe, device: device != "cpu" and (recipe.clip is not None or _is_filled_up(recipe)),
    8: lambda recipe, device: device != "cpu" and _looks_up(recipe),
    9: lambda recipe, device: device != "cpu" and _looks_up(recipe),
}
# Runs of before say nothing; which of the first two made them follows from their commit.
_UNSAID = "1 or 2"


def engine_of(provenance: Mapping[str, Any]) -> str:
    """The version that made a run, for people.

    >>> engine_of({"engine": 3}), engine_of({})
    ('3', '1 or 2')
    >>> engine_of({"engine": 6, "parts": [{"engine": 5}, {"engine": 6}]})
    '5, then 6'
    """
    versions = dict.fromkeys(str(part.get("engine", "unknown")) for part in provenance.get("parts", ()))
    return ", then ".join(versions) or str(provenance.get("engine", _UNSAID))


def mixed_engines(made: Iterable[tuple[Recipe, Mapping[str, Any]]]) -> list[str]:
    """What a reader must know where runs of several versions stand beside each other: a sentence, or none.

    made: of each run its recipe and its provenance. There is nothing to say if one version would have computed all of
    these runs as they are.

    >>> from softtargets.recipes import MLP, Digits
    >>> recipe = Recipe(data=Digits(), model=MLP(), epochs=1)
    >>> mixed_engines([(recipe, {"engine": 3}), (recipe, {})])[0]
    'The runs were made by several versions of the engine (1 or 2: 1 run, 3: 1 run), which may round differently.'
    >>> mixed_engines([(recipe, {"engine": 4}), (recipe, {"engine": 6})])
    []
    """
    runs = list(made)
    if not runs or set.intersection(*(_would_do(*run) for run in runs)):
        return []
    counts = sorted(Counter(engine_of(provenance) for _, provenance in runs).items())
    listed = ", ".join(f"{version}: {count} run{'s' * (count > 1)}" for version, count in counts)
    return [f"The runs were made by several versions of the engine ({listed}), which may round differently."]


def _would_do(recipe: Recipe, provenance: Mapping[str, Any]) -> set[int]:
    """Versions that would compute the whole training as it was computed; none, if its own parts differ."""
    told = [part for part in provenance.get("parts", ()) if "engine" in part]
    roundings = {rounding_of(recipe, {**provenance, **part}) for part in told or [provenance]}
    return {
        version
        for version in range(ENGINE + 1)
        if roundings == {rounding_of(recipe, {**provenance, "engine": version})}
    }


def rounding_of(recipe: Recipe, provenance: Mapping[str, Any]) -> int:
    """The first version that computes such a recipe as the one does that made the run; 0 where none is told.

    >>> from softtargets.recipes import MLP, Digits
    >>> recipe = Recipe(data=Digits(), model=MLP(), epochs=1)
    >>> rounding_of(recipe, {"engine": 6}), rounding_of(recipe.replace({"clip": 1.0}), {"engine": 6})
    (4, 6)
    """
    version, device = int(provenance.get("engine", 0)), str(provenance.get("device", "unknown"))
    while version in CONCERNED and not CONCERNED[version](recipe, device):
        version -= 1
    return version
