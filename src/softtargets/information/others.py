"""The same mutual information with the example itself left out of the average that it is compared with."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.information.estimate import TINY, Information, checked_samples

_AT_A_TIME = 1 << 22  # pairs of a draw and an example


def information_against_others(samples: ArrayLike) -> Information:
    """How much better a logit difference fits its own example than the other ones, in nats.

    The estimate of Müller et al. 2019, section 4, with an inner average over the N - 1 *other* examples:

        J = mean over x, draws of log N(y; mu_x, s2) - log 1/(N - 1) sum over x' != x of N(y; mu_x', s2)

    The paper's formula has the letter x in both sums, so that it can be read in this way or as an average over all N
    (`estimate_information`), which is the mutual information between an example of the N and y and at most log N. J is
    at least as large, and has no upper bound: for examples drawn from many, J is above their mutual information on
    average and the other estimate below it (Poole et al. 2019, section 2). Both agree where an example has many
    neighbours, and differ where it has none: J then grows with the square of the distance to the nearest one.

    Means and variance are estimated as in `estimate_information`. Time and memory are in proportion to N * N * L.
    Without noise J is infinite as soon as one example has a value of its own.

    >>> import torch
    >>> noise = torch.randn(500, 5, generator=torch.Generator().manual_seed(0))
    >>> print(f"{information_against_others(torch.linspace(-2, 2, 500)[:, None] + noise).value:.2f}")
    0.39
    """
    values = checked_samples(samples)
    examples, draws = values.shape
    if examples < 2:
        raise ValueError("a single example has no others to be compared with; pass at least 2")
    scale = float(values.abs().max()) or 1.0
    values = values / scale
    apart = values - values[:, :1]
    means = values[:, 0] + apart.mean(1)
    noise = (apart - apart.mean(1, keepdim=True)).square().mean(1)
    width = math.sqrt(float(noise.mean()))
    if width < TINY:
        gains, pulls, slope = _without_noise(means), torch.ones_like(means), 0.0
    else:
        gains, pulls, slope = _with_noise(values / width, means / width)
        noise = noise / width**2
    found = float(gains.mean())
    influence = gains - found - (pulls - 1) + slope * (noise - 1)
    return Information(
        value=max(found, 0.0),
        bound=math.log(examples),
        variance=width * width * draws / (draws - 1) * scale * scale,
        standard_error=math.sqrt(float(influence.square().sum()) / (examples * (examples - 1))),
        unclipped=found,
    )


def _with_noise(values: Tensor, means: Tensor) -> tuple[Tensor, Tensor, float]:
    """J of the draws of each example, its part in the others' sums, and the derivative by the log of the variance.

    Distances are in units of the square root of s2 (1 - 1/L), as in `estimate_information`.
    """
    examples, draws = values.shape
    gains, pulls, slope = torch.empty_like(means), torch.zeros_like(means), 0.0
    for some in torch.arange(examples, device=means.device).split(max(1, _AT_A_TIME // (examples * draws))):
        exponents = (
            values[some, :, None] - means
        ).square() / -2  # (examples of this block, draws, all examples)
        own = exponents.gather(2, some[:, None, None].expand(-1, draws, 1)).squeeze(2)
        exponents.scatter_(2, some[:, None, None].expand(-1, draws, 1), -math.inf)
        sums = exponents.logsumexp(2)
        shares = (exponents - sums[..., None]).exp()
        gains[some] = (own - sums).mean(1)
        pulls += shares.sum((0, 1))
        slope += float((torch.where(shares > 0, shares * exponents, 0.0).sum(2) - own).sum())
    constant = math.log(examples - 1) + 0.5 * math.log(1 - 1 / draws)
    return gains + constant, pulls / draws, slope / (examples * draws)


def _without_noise(means: Tensor) -> Tensor:
    """log (N - 1)/(n - 1) where n examples have the same value."""
    _, which, counts = means.unique(return_inverse=True, return_counts=True)
    gains: Tensor = ((len(means) - 1) / (counts[which].double() - 1)).log()
    return gains
