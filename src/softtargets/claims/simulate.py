"""How often the verdict rule is wrong, and how many seeds it takes: ``python -m softtargets.claims.simulate``.

Pages are drawn, not trained: each claim's values over seeds are normal, with the deviation over seeds as the unit, and
go through the arithmetic that judges real pages (`softtargets.claims.rule`). The same ``--seed`` gives the same tables.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from softtargets.claims.rule import (
    CONTRADICTED,
    LEVEL,
    NO_EFFECT,
    REPRODUCED,
    Array,
    Estimate,
    decide,
    estimate,
    examples_variance,
    for_every,
    for_some,
    p_inside,
    p_outside,
)

Places: TypeAlias = NDArray[np.int_]
Row: TypeAlias = tuple[str, ...]

SEEDS = (3, 5, 10, 20)
# Claims on a page: from the fewest of our studies to more than any has.
CLAIMS = (4, 10, 20)
# Printed effects in deviations over seeds. Effects below half of the printed one count as none, and a number is
# reproduced within half of the printed effect.
EFFECTS = (1.0, 2.0, 4.0, 8.0)
SMALL = 0.5


def judged(values: Array, printed: float) -> Places:
    """Verdicts on pages from values over (seeds, pages, claims); the claim is that there is an effect above zero."""
    return _verdicts(estimate(values), printed)


def no_effect(rng: np.random.Generator, pages: int, claims: int, seeds: int, printed: float = 2.0) -> Places:
    """Verdicts where nothing has any effect."""
    return judged(rng.normal(size=(seeds, pages, claims)), printed)


def printed_effect(rng: np.random.Generator, pages: int, claims: int, seeds: int, printed: float) -> Places:
    """Verdicts where all claims have the printed effect."""
    return judged(rng.normal(size=(seeds, pages, claims)) + printed, printed)


def some_effects(
    rng: np.random.Generator, pages: int, claims: int, seeds: int, effect: float = 8.0
) -> Places:
    """Verdicts on the first half of the claims, without effect, where the other half has a large one."""
    half = claims // 2
    effects = np.where(np.arange(claims) < half, 0.0, effect)
    return judged(rng.normal(size=(seeds, pages, claims)) + effects, 2.0)[:, :half]


def numbers(
    rng: np.random.Generator, pages: int, claims: int, seeds: int, printed: float, off: float
) -> Places:
    """Verdicts on the printed number where the true one lies `off` from it."""
    margin = SMALL * printed
    found = estimate(rng.normal(size=(seeds, pages, claims)) + printed + off)
    ends = (printed - margin, printed + margin)
    return decide(p_inside(found, *ends), p_outside(found, *ends), np.ones((pages, claims)))


def chosen_cells(
    rng: np.random.Generator, pages: int, claims: int, seeds: int, cells: int = 10, elsewhere: bool = True
) -> Places:
    """No effect in any cell; the best of them is claimed, chosen on a seed of its own, or on the seeds that judge."""
    values = rng.normal(size=(seeds, pages, claims, cells))
    choosing = rng.normal(size=(1, pages, claims, cells)) if elsewhere else values
    best = choosing.mean(0).argmax(-1)
    return judged(np.take_along_axis(values, best[None, ..., None], -1)[..., 0], 2.0)


def every_cell(
    rng: np.random.Generator, pages: int, claims: int, seeds: int, effect: float, cells: int = 10
) -> Places:
    """Claims about every cell of several, of which the first has no effect and the others have `effect`."""
    found = estimate(
        rng.normal(size=(seeds, pages, claims, cells)) + np.where(np.arange(cells) > 0, effect, 0.0)
    )
    inside, outside = for_every(p_inside(found, 0, np.inf)), for_some(p_outside(found, 0, np.inf))
    return decide(inside, outside, np.ones((pages, claims)))


def shared_examples(
    rng: np.random.Generator, pages: int, claims: int, seeds: int, two_way: bool, examples: int = 200
) -> Places:
    """No effect; what varies with the test example in all seeds alike is as large as what varies over seeds."""
    values, added = np.empty((seeds, pages, claims)), np.zeros((pages, claims))
    for place in range(pages * claims):
        table = rng.normal(size=(seeds, 1)) + np.sqrt(examples) * rng.normal(size=(1, examples))
        table += rng.normal(size=(seeds, examples))
        values.reshape(seeds, -1)[:, place] = table.mean(1)
        added.flat[place] = examples_variance(table) if two_way else 0.0
    return _verdicts(estimate(values, added), 2.0)


def tables(pages: int, seed: int) -> str:
    """Everything as Markdown."""
    rng = np.random.default_rng(seed)
    parts = [
        f"{pages:,} pages each, seed {seed}. Effects are in standard deviations over seeds; those below half of the "
        "printed one count as none.",
        _table(
            "No effect at all: pages on which at least one claim gets the verdict, and claims that are told “no "
            "effect” (printed effect: 2)",
            (
                "claims on a page",
                "seeds",
                "“reproduced”, pages",
                "“contradicted”, pages",
                "“no effect”, claims",
            ),
            _null_rows(rng, pages),
        ),
        _table(
            "Power: claims with the printed effect that are reproduced, 10 on a page",
            ("printed effect", *(f"{seeds} seeds" for seeds in SEEDS)),
            (
                (
                    f"{effect:g}",
                    *(_percent(_share(printed_effect(rng, pages, 10, n, effect), REPRODUCED)) for n in SEEDS),
                )
                for effect in EFFECTS
            ),
        ),
        _table(
            "The printed number within half of the printed effect, 10 claims on a page: claims whose number is "
            "reproduced if it is the true one; pages with a reproduced number if all true ones lie on the margin",
            ("printed effect", *(f"{seeds} seeds" for seeds in SEEDS)),
            ((f"{effect:g}", *(_both_numbers(rng, pages, n, effect) for n in SEEDS)) for effect in EFFECTS),
        ),
        _table(
            "Harder cases, 10 claims on a page: pages with a false “reproduced”",
            ("case", *(f"{seeds} seeds" for seeds in SEEDS[:3])),
            _hard_rows(rng, pages),
        ),
    ]
    return "\n\n".join(parts)


def _null_rows(rng: np.random.Generator, pages: int) -> Iterable[Row]:
    for claims in CLAIMS:
        for seeds in SEEDS:
            found = no_effect(rng, pages, claims, seeds)
            some = (_percent(_pages(found, verdict)) for verdict in (REPRODUCED, CONTRADICTED))
            yield str(claims), str(seeds), *some, _percent(_share(found, NO_EFFECT))


def _both_numbers(rng: np.random.Generator, pages: int, seeds: int, effect: float) -> str:
    true = numbers(rng, pages, 10, seeds, effect, 0.0)
    edge = numbers(rng, pages, 10, seeds, effect, SMALL * effect)
    return f"{_percent(_share(true, REPRODUCED))}; {_percent(_pages(edge, REPRODUCED))}"


def _hard_rows(rng: np.random.Generator, pages: int) -> Iterable[Row]:
    few = max(pages // 4, 20)  # tables of seeds x examples take longer
    cases: dict[str, Callable[[int], Places]] = {
        "5 claims without effect beside 5 with an effect of 8": lambda n: some_effects(rng, pages, 10, n),
        "the best of 10 cells, chosen on a seed of its own": lambda n: chosen_cells(rng, pages, 10, n),
        "the best of 10 cells, chosen on the seeds that judge (not our rule)": lambda n: chosen_cells(
            rng, pages, 10, n, elsewhere=False
        ),
        "every one of 10 cells; one has no effect, the others 8": lambda n: every_cell(
            rng, pages, 10, n, 8.0
        ),
        "test examples vary as much as seeds, interval over both": lambda n: shared_examples(
            rng, few, 10, n, two_way=True
        ),
        "the same, interval over seeds only (the fallback)": lambda n: shared_examples(
            rng, few, 10, n, two_way=False
        ),
    }
    for name, case in cases.items():
        yield name, *(_percent(_pages(case(n), REPRODUCED)) for n in SEEDS[:3])


def _verdicts(found: Estimate, printed: float) -> Places:
    width = SMALL * printed
    return decide(p_inside(found, 0, np.inf), p_outside(found, 0, np.inf), p_inside(found, -width, width))


def _pages(found: Places, verdict: int) -> float:
    return float((found == verdict).any(-1).mean())


def _share(found: Places, verdict: int) -> float:
    return float((found == verdict).mean())


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(title: str, head: Sequence[str], rows: Iterable[Row]) -> str:
    lines = [f"**{title}**", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m softtargets.claims.simulate",
        description=f"Simulate the verdict rule: false verdicts (at most {LEVEL:.0%} of pages) and power by seeds.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--pages", type=int, default=20_000, help="how many pages are drawn for each number")
    parser.add_argument("--seed", type=int, default=0, help="of the draws")
    chosen = parser.parse_args(arguments)
    if chosen.pages < 1:
        parser.error(f"--pages must be at least 1; got {chosen.pages}")
    sys.stdout.write(tables(chosen.pages, chosen.seed) + "\n")


if __name__ == "__main__":
    main()
