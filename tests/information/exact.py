"""The information of a Gaussian mixture by adaptive quadrature, and the estimates of it by plain loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import integrate


def by_quadrature(means, std):
    """-integral of p log p, less the entropy of the noise; scipy looks at every unit of the noise by itself."""

    def minus_p_log_p(y):
        p = math.fsum(math.exp(-(((y - m) / std) ** 2) / 2) for m in means)
        p /= len(means) * std * math.sqrt(2 * math.pi)
        return -p * math.log(p) if p > 0 else 0.0

    edges = np.arange(min(means) - 10 * std, max(means) + 11 * std, 2 * std)
    pieces = [integrate.quad(minus_p_log_p, a, b, epsabs=1e-11)[0] for a, b in itertools.pairwise(edges)]
    return math.fsum(pieces) - 0.5 * math.log(2 * math.pi * math.e * std**2)


def normal(distance, variance):
    return math.exp(-(distance**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def pooled_variance(samples):
    squares = math.fsum(
        (y - math.fsum(row) / len(row)) ** 2 for row in samples for y in row
    )  # around each example's mean
    return squares / (len(samples) * (len(samples[0]) - 1))


def held_out_by_loops(samples):
    """The estimate as it is derived: an example's own density from its other draws, brought to its true width."""
    examples, draws = len(samples), len(samples[0])
    variance = pooled_variance(samples)
    terms = []
    for x, row in enumerate(samples):
        for left_out, y in enumerate(row):
            others = [value for place, value in enumerate(row) if place != left_out]
            distance = (y - math.fsum(others) / (draws - 1)) / math.sqrt(1 + 1 / (draws - 1))
            own = normal(distance, variance)
            rest = [
                normal(y - math.fsum(other) / draws, variance * (1 - 1 / draws))
                for z, other in enumerate(samples)
                if z != x
            ]
            terms.append(math.log(own) - math.log((own + math.fsum(rest)) / examples))
    return math.fsum(terms) / len(terms)


def plug_in_by_loops(samples):
    """The formula of Müller et al. as printed, but for the inner index: means and variance of the same draws."""
    means = [math.fsum(row) / len(row) for row in samples]
    variance = pooled_variance(samples) * (1 - 1 / len(samples[0]))
    terms = [
        math.log(normal(y - means[x], variance) / np.mean([normal(y - m, variance) for m in means]))
        for x, row in enumerate(samples)
        for y in row
    ]
    return math.fsum(terms) / len(terms)
