"""What the sweeps train: the literal reading over tau and over rho, from the paper's values."""

from __future__ import annotations

from softtargets.studies.grids import each_seed
from softtargets.studies.labo.protocol import base, labo, settings_of
from softtargets.studies.study import Settings, Trial

# The paper's rho, and the tau that all studies of LABO take.
TAU, RHO = 1.25, 0.5
TAUS = {"small": (1.0, 1.15, 1.25, 1.5, 2.0, 4.0), "full": (1.15, 1.25, 2.0)}
RHOS = {"small": (0.25, 0.5, 0.75, 1.0), "full": (0.5, 0.75, 1.0)}


def places(size: str) -> list[tuple[float, float]]:
    """All pairs of tau and rho; where the two sweeps meet there is one."""
    return list(dict.fromkeys([*((tau, RHO) for tau in TAUS[size]), *((TAU, rho) for rho in RHOS[size])]))


def trials(settings: Settings) -> list[Trial]:
    """For the first setting of table 3 each tau and each rho, for each seed."""
    data, model = settings_of(settings.size)[0]
    recipe = base(settings, data, model)
    cells = [
        (
            {"regulariser": labo(recipe, tau=tau, rho=rho)},
            {"data": data, "model": model, "method": "labo", "tau": tau, "rho": rho},
        )
        for tau, rho in places(settings.size)
    ]
    return each_seed(settings, recipe, cells)
