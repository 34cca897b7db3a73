"""What the study of readings says: theory of where training rests, and models of each reading."""

from __future__ import annotations

from softtargets.claims import Claim, ComputedClaim, Region, Sample, above, judge, published, sources, zone
from softtargets.report import Section, Table
from softtargets.studies.labo.claiming import SEEDS, SMALL_GAIN
from softtargets.studies.labo.protocol import READINGS
from softtargets.studies.labo.telling import name_of, what_differs
from softtargets.studies.labo_readings import figures
from softtargets.studies.labo_readings.figures import VOCABULARY
from softtargets.studies.labo_readings.grid import ROWS, classes_of, predicted, trials
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol
from softtargets.studies.study import Findings
from softtargets.studies.words import answered, signed

# The temperatures that the paper tried for translation; "around 0.4" is 0.3 to 0.5; a label that is certain has 0.9.
TAUS, AROUND, CERTAIN = (1.15, 1.25), (0.3, 0.5), 0.9
# How near to the theory the measured probability must come, and the margin of the printed gain.
NEAR, GAIN_MARGIN = 0.1, 0.84
FIGURE_2 = "lu-2023/probabilities/iwslt14-de-en"
LITERAL, FIXED, REVERSED, WHOLE = (
    {"method": "labo", "reading": name} for name in ("literal", "fixed", "reversed", "hypergradient")
)
HARD = {"method": "hard"}


def findings(results: Results) -> Findings:
    """Table, figures and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Which reading was trained, and which one helps?"""
    judged = judge(made)
    first = answered(
        judged[0].verdict if judged[1].verdict == "reproduced" else judged[1].verdict,
        "Of all readings only the literal one rests at the probabilities of the paper's figure 2.",
        "Figure 2 of the paper does not tell the readings apart.",
        whether="the literal reading rests where figure 2 says",
    )
    helpful = [one for one in judged[5:] if one.verdict == "reproduced"]
    decided = [one for one in judged[5:] if one.verdict not in ("not run yet",)]
    if not decided:
        return first + " Which reading helps is not known yet: its runs have not all been made."
    names = [name for name, one in zip(READINGS, judged[5:], strict=True) if one in helpful]
    if not names:
        return first + " No reading is shown to be more accurate than hard targets."
    return first + f" Shown to be more accurate than hard targets: {', '.join(names)}."


def _sections(results: Results) -> tuple[Section, ...]:
    data = results.outcomes[0].trial.labels["data"] if results.outcomes else "cifar100"
    classes = classes_of(data)
    return (
        Section.of(
            "Where training rests",
            "With LABO the target of an example follows the model's own prediction. Training on it rests where the "
            "prediction is its own target, p = (1 − alpha) onehot(y) + alpha softmax(z/tau). If the label is "
            "certain and all wrong classes are alike, one number describes p, and the rest is found by bisection "
            "(labo_rests in softtargets.theory).",
            "Read literally, equation 16 moves more mass the more confident the model is: alpha = 1 − 0.5 H(p)/log K. "
            f"Then training rests at a label probability of {predicted('labo', 'literal', VOCABULARY):.2f} for a "
            f"vocabulary of {VOCABULARY:,} and tau = 1.25. With alpha fixed at 0.1 it would rest at "
            f"{predicted('labo', 'fixed', VOCABULARY):.2f}, and with the reversed reading, alpha = 0.5 H(p)/log K, the "
            "label is pulled towards 1 without end. The paper's figure 2 shows probabilities “around 0.4”.",
            "Equation 17 says that the gradient through the target vanishes. It does for a fixed alpha, not for the "
            "adaptive one (ERRATA.md, L1). With the whole gradient the literal reading rests at "
            f"{predicted('labo', 'hypergradient', VOCABULARY):.2f}: the objective itself rewards models that know "
            "less.",
            figures.pulls(classes),
        ),
        Section.of(
            "The readings side by side",
            "“The same in the warm-up” keeps the alpha of equation 16 while P is uniform, since Algorithm 1 swaps P "
            "alone; the others warm up with 0.1. “Whole gradient” follows alpha in the gradient.",
            _table(results, classes),
            figures.spreads(results),
        ),
        Section.of("What differs from the paper", *what_differs(results)),
    )


def _table(results: Results, classes: int) -> Table:
    rows: list[Row] = [
        {
            "name": name_of(labels),
            "predicted": predicted(labels["method"], labels["reading"], classes),
            "label_probability_train": results.sample("label_probability_train", **labels),
            "label_probability": results.sample("label_probability", **labels),
            "accuracy": results.sample("accuracy", **labels),
            "gain": results.gain("accuracy", [(labels, HARD)], scale=100)
            if labels["method"] != "hard"
            else None,
            "ece": results.sample("ece", **labels),
            "temperature": results.sample("temperature", **labels),
            "ece_scaled": results.sample("ece_scaled", **labels),
        }
        for labels in ROWS
    ]
    return Table.of(
        "readings",
        "Label probabilities, accuracy and calibration of each reading.",
        "name: trained with | predicted .2f: label probability, theory | label_probability_train .2f: training images "
        "| label_probability .2f: test images | accuracy .2% | gain .2f: gain, points | ece: ECE | temperature .2f: "
        "fitted T | ece_scaled: ECE at fitted T",
        rows,
        "Mean ± standard deviation over seeds; gains are over hard targets. Theory is for a label that is certain and "
        "wrong classes that are alike. Training images are the first 10,000, without augmentation. T is fitted on "
        "held-out images.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Two that are computed, three about theory and models, and one of the printed gain for each reading."""
    followed = by_protocol(results, trials)
    return (*_computed(), *_rests(followed), *(_gain(followed, name) for name in READINGS))


def _computed() -> tuple[Claim, ...]:
    literal = [predicted("labo", "literal", VOCABULARY, tau) for tau in TAUS]
    others = [predicted("labo", name, VOCABULARY, tau) for name in ("fixed", "reversed") for tau in TAUS]
    return (
        ComputedClaim(
            "LABO concentrates probabilities around 0.4: there the literal reading of equation 16 rests.",
            sources(f"{FIGURE_2}/labo"),
            f"label probability at which the literal reading rests, {VOCABULARY:,} classes, tau 1.15 and 1.25",
            Sample.of(literal),
            Region(*AROUND),
            " and ".join(f"{p:.2f}" for p in literal),
            "“Around 0.4” is 0.3 to 0.5. The paper prints neither the size of its vocabulary nor which tau it took.",
            digits=2,
        ),
        ComputedClaim(
            "No other reading of alpha rests there: labels become nearly certain.",
            sources(f"{FIGURE_2}/labo"),
            f"label probability at which alpha = 0.1 and the reversed reading rest, {VOCABULARY:,} classes",
            Sample.of(others),
            Region(low=CERTAIN),
            " to ".join(f"{p:.2f}" for p in (min(others), max(others))),
            "Our own statement; it is what lets figure 2 tell the readings apart.",
            digits=2,
        ),
    )


def _rests(results: Results) -> tuple[Claim, ...]:
    classes, key = classes_of("cifar100"), "label_probability_train"

    def near(labels: dict[str, str], what: str) -> Claim:
        place = predicted(labels["method"], labels["reading"], classes)
        return Claim(
            f"{what} gives the labels of training images the probability that theory says, {place:.2f}.",
            sources(f"{FIGURE_2}/labo"),
            "average label probability on 10,000 training images of CIFAR-100",
            results.sample(key, **labels),
            Region(round(place - NEAR, 3), round(place + NEAR, 3)),
            results.shown(key, ".2f", labels),
            "Our own statement. Theory takes all wrong classes as alike, which they are not.",
            digits=2,
            seeds=SEEDS,
        )

    return (
        near(LITERAL, "The literal reading"),
        near(WHOLE, "The literal reading with the whole gradient"),
        Claim.every(
            "With alpha fixed at 0.1 and with the reversed reading the labels of training images become nearly "
            "certain.",
            sources(f"{FIGURE_2}/labo"),
            "average label probability on 10,000 training images of CIFAR-100",
            {name: results.sample(key, method="labo", reading=name) for name in ("fixed", "reversed")},
            Region(low=CERTAIN),
            f"{results.shown(key, '.2f', FIXED)} fixed, {results.shown(key, '.2f', REVERSED)} reversed",
            "Our own statement.",
            digits=2,
            seeds=SEEDS,
        ),
    )


def _gain(results: Results, reading: str) -> Claim:
    labels = {"method": "labo", "reading": reading}
    key = "lu-2023/accuracy/cifar100-resnet18"
    labo, hard = (published(f"{key}/{method}").value or 0.0 for method in ("labo", "hard"))
    printed = round(100 * (labo - hard), 2)
    return Claim(
        f"LABO is more accurate than hard targets (reading: {reading}).",
        sources(key, "hard", "labo"),
        "accuracy of this reading minus accuracy of hard targets",
        *above(0, results.gain("accuracy", [(labels, HARD)], scale=100)),
        results.then("accuracy", ".2%", HARD, labels),
        f"The paper gains {signed(printed)} points and does not say with which reading.",
        digits=2,
        seeds=SEEDS,
        zone=zone(SMALL_GAIN),
        printed=printed,
        margin=GAIN_MARGIN,
        unit="points",
    )
