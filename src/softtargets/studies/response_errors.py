"""The authors' response to the reviewers of Müller et al. 2019: errors inside and outside the right superclass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.claims import Claim, Region, Sample, above, judge, paper, published, sources, zone
from softtargets.data import CIFAR100_SUPERCLASS
from softtargets.errors import fine_and_coarse_errors
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import BLUE, RED
from softtargets.runs import Run
from softtargets.studies.examples import pseudo_values
from softtargets.studies.measures import accuracy
from softtargets.studies.muller_images import (
    AXES,
    KEEP,
    SIZES,
    as_printed,
    deviations,
    held_out_split,
    shown_alpha,
    trials_of,
)
from softtargets.studies.printed import printed_number
from softtargets.studies.results import Results, over
from softtargets.studies.study import MULLER, Findings, Settings, Study, Trial
from softtargets.studies.words import answered

RESPONSE = paper("response-2019").citation
ALPHAS = (0.0, 0.1)
KINDS = dict(zip(ALPHAS, ("hard", "smoothed"), strict=True))
HARD, SMOOTHED = {"alpha": 0.0}, {"alpha": 0.1}
# As many runs as the response has.
SEEDS = 5
PER = 10_000
# Of 10,000 images: what counts as a change, what counts as “close to constant”, and what the response's own deviations
# leave open of a difference. Points of the share.
CHANGE, CONSTANT, CHANGE_MARGIN, STABLE = 10, 40, 40, 2.0
_MEASURES = {"errors": "all errors", "fine": "fine errors", "coarse": "coarse errors"}
_KEYS = {"errors": "errors", "fine": "fine-errors", "coarse": "coarse-errors"}


def _measure(trial: Trial, run: Run) -> dict[str, float]:
    """Errors of 10,000 test images and, as ``held_out_...``, of 10,000 held-out ones; how many are fine."""
    test, others = run.predictions("test"), run.predictions(held_out_split(run))
    measured = {"accuracy": accuracy(test), **_errors(test.logits, test.labels)}
    held_out = _errors(others.logits, others.labels)
    return measured | {f"held_out_{key}": value for key, value in held_out.items()}


def _details(trial: Trial, run: Run) -> dict[str, Any]:
    """What groups of test images contribute to each number, for the chance of these images (`studies.examples`)."""
    said = run.predictions("test")
    predicted, labels = said.logits.argmax(-1), said.labels

    def contributions(key: str) -> list[float]:
        def of(chosen: NDArray[np.int64]) -> float:
            places = torch.from_numpy(chosen)
            return _errors(predicted[places], labels[places]).get(key, 0.0)

        return [round(float(value), 10) for value in pseudo_values(of, len(labels))]

    return {"pseudo_values": {key: contributions(key) for key in (*_MEASURES, "fine_share")}}


def _errors(predicted: Tensor, labels: Tensor) -> dict[str, float]:
    counted = fine_and_coarse_errors(predicted, labels, torch.tensor(CIFAR100_SUPERCLASS))
    rates = {"errors": counted.error_rate, "fine": counted.fine_rate, "coarse": counted.coarse_rate}
    found = {key: PER * rate for key, rate in rates.items()}
    # A model without an error has no share of them.
    return found | ({"fine_share": counted.fine_share} if counted.errors else {})


def claims(results: Results) -> tuple[Claim, ...]:
    """Printed counts, and what smoothing does to each kind of error."""
    printed = bool(as_printed(results, ("cifar100",)))
    numbers = [_count(results, kind, alpha) for kind in _KEYS for alpha in ALPHAS] if printed else []
    return (*numbers, *_directions(results, printed))


def _count(results: Results, kind: str, alpha: float) -> Claim:
    key = f"response-2019/{_KEYS[kind]}/cifar100/{KINDS[alpha]}"
    value = published(key).value or 0.0
    errors = _MEASURES[kind].removeprefix("all ")
    return printed_number(
        f"ResNet-56 on CIFAR-100 with {shown_alpha(alpha)} makes {{}} {errors} in 10,000 images.",
        key,
        results.sample(f"held_out_{kind}", alpha=alpha),
        round(2 * math.sqrt(value * (1 - value / PER)), 0),
        quantity=f"{_MEASURES[kind]} of 10,000 held-out images at alpha {alpha:g}",
        seeds=SEEDS,
        remark="The margin is two standard errors of a count on 10,000 images.",
        digits=0,
    )


def _directions(results: Results, printed: bool) -> tuple[Claim, ...]:
    def number(kind: str) -> dict[str, Any]:
        pair = (published(f"response-2019/{_KEYS[kind]}/cifar100/{name}").value for name in KINDS.values())
        hard, smoothed = pair
        change = (smoothed or 0) - (hard or 0)
        return {"printed": round(change, 6), "margin": CHANGE_MARGIN} if printed else {}

    def change(kind: str) -> Sample:
        return results.difference(kind, SMOOTHED, HARD)

    def then(kind: str) -> str:
        return results.then(kind, ".0f", HARD, SMOOTHED)

    shared: dict[str, Any] = {"digits": 0, "seeds": SEEDS}
    counts = "response-2019/{}/cifar100"
    share = change("fine_share")
    return (
        Claim(
            "Label smoothing reduces the number of errors.",
            sources(counts.format("errors"), *KINDS.values()),
            "errors of 10,000 test images at alpha 0.1 minus at alpha 0",
            change("errors"),
            Region(high=0),
            then("errors"),
            "",
            zone=zone(CHANGE),
            **shared,
            **number("errors"),
        ),
        Claim(
            "Label smoothing reduces errors outside the right superclass.",
            sources(counts.format("coarse-errors"), *KINDS.values()),
            "coarse errors of 10,000 test images at alpha 0.1 minus at alpha 0",
            change("coarse"),
            Region(high=0),
            then("coarse"),
            "",
            zone=zone(CHANGE),
            **shared,
            **number("coarse"),
        ),
        Claim(
            "Label smoothing leaves errors inside the right superclass close to constant.",
            sources(counts.format("fine-errors"), *KINDS.values()),
            "fine errors of 10,000 test images at alpha 0.1 minus at alpha 0",
            change("fine"),
            Region(-CONSTANT, CONSTANT),
            then("fine"),
            f"“Close to constant” is a change of fewer than {CONSTANT} in 10,000.",
            **shared,
            **number("fine"),
        ),
        Claim(
            "The share of errors that stay inside the right superclass remains stable.",
            sources(counts.format("fine-share"), *KINDS.values()),
            "fine errors as a share of errors, alpha 0.1 minus alpha 0, test images",
            share.times(100),
            Region(-STABLE, STABLE),
            results.then("fine_share", ".1%", HARD, SMOOTHED),
            f"“Stable” is a change of less than {STABLE:g} points.",
            digits=1,
            seeds=SEEDS,
            unit="points",
        ),
        Claim(
            "Most errors are outside the right superclass.",
            sources(counts.format("coarse-errors"), *KINDS.values()),
            "coarse errors minus fine errors of 10,000 test images, alpha 0",
            *above(0, results.contrast((("coarse", HARD), ("fine", HARD)))),
            f"{results.shown('coarse', '.0f', HARD)} outside, {results.shown('fine', '.0f', HARD)} inside",
            "",
            **shared,
        ),
    )


def findings(results: Results) -> Findings:
    """Table, figure, claims."""
    made = claims(results)
    sections = (
        Section.of(
            "Fine and coarse errors",
            "CIFAR-100 has 20 superclasses of five classes. An error is fine if the predicted class belongs to the "
            "right superclass, and coarse if it does not. Counts are for 10,000 images.",
            _table(results),
            _figure(results),
        ),
        Section.of("What differs from the response", *deviations(results)),
    )
    return Findings(sections, made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Which errors does label smoothing save?"""
    total, coarse, fine = (one.verdict for one in judge(made)[-5:-2])
    if "not run yet" in (total, coarse, fine):
        return "Not known yet: the runs that decide which errors smoothing saves have not all been made."
    first = answered(
        coarse,
        "It saves errors outside the right superclass.",
        "It saves no errors outside the right superclass.",
        whether="it saves errors outside the right superclass",
    )
    second = answered(
        fine,
        "Those inside stay close to constant.",
        "Those inside change.",
        whether="those inside stay constant",
    )
    return f"{first} {second}"


def _table(results: Results) -> Table:
    rows = []
    for alpha, kind in KINDS.items():
        for measure, title in {**_MEASURES, "fine_share": "fine, share of errors, %"}.items():
            share = measure == "fine_share"
            key = "fine-share" if share else _KEYS[measure]
            held_out, test = (
                results.sample(f"{split}{measure}", alpha=alpha).times(100 if share else 1)
                for split in ("held_out_", "")
            )
            rows.append(
                {"targets": shown_alpha(alpha), "kind": title}
                | {"response": published(f"response-2019/{key}/cifar100/{kind}").printed}
                | {"held_out": held_out, "test": test}
            )
    return Table.of(
        "errors",
        "Errors by kind.",
        "targets | kind: errors | response | held_out .1f: ours, held-out images | test .1f: ours, test set",
        rows,
        "Ours: mean ± standard deviation over seeds. The response does not say what its ± is.",
    )


def _figure(results: Results) -> Figure:
    rows = results.rows(over(alpha=ALPHAS), *_MEASURES)
    places = range(len(_MEASURES))
    curves = [
        Curve.of(
            shown_alpha(row["alpha"]),
            colour,
            [place + shift for place in places],
            [row[kind] for kind in _MEASURES],
            line="none",
        )
        for row, colour, shift in zip(rows, (RED, BLUE), (-0.06, 0.06), strict=True)
        if row["errors"].n
    ]
    ticks = list(zip(places, _MEASURES.values(), strict=True))
    panel = Panel("", "", "errors in 10,000 test images", curves, ticks, xlimits=(-0.5, 2.5), digits=0)
    return lines(
        "errors_by_kind",
        "Errors by kind and targets.",
        (panel,),
        rows,
        "Points are means over seeds, pale dots single seeds, bars one standard deviation.",
        "All errors, fine errors and coarse errors with hard targets and with smoothing.",
    )


def _trials(settings: Settings) -> list[Trial]:
    return trials_of(settings, {"cifar100": ALPHAS})


study = Study(
    name="response-errors",
    title="Which errors does label smoothing save?",
    lead=(
        "Asked whether smoothing helps with similar classes, the authors of “When does label smoothing help?” counted "
        "the errors of five runs on CIFAR-100: smoothing saves errors outside the right superclass, and those inside "
        "it stay as many. Here is the same count."
    ),
    papers=(RESPONSE, MULLER),
    trials=_trials,
    keep=KEEP,
    measure=_measure,
    details=_details,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES[:2],
)
