"""Pictures for the cards of instruments: each instrument, used on real digits (on real text for tokens), drawn.

Two small networks learn a few hundred of scikit-learn's digits, one from hard labels and one from smoothed labels. What
is drawn is what the instruments say of them, so that a picture and its instrument cannot part.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from torch import Tensor, nn

from softtargets import plotting
from softtargets.calibration import brier_decomposition
from softtargets.distillation import smoothness_index
from softtargets.errors import confusion_matrix, error_overlap
from softtargets.geometry import draw_panels, neural_collapse, plane_view
from softtargets.information import estimate_information
from softtargets.losses import LabelSmoothing
from softtargets.noise import assess_noise, symmetric

ROOT = Path(__file__).parents[2]
KNOWN, WIDTH, EPOCHS, ALPHA = 400, 128, 300, 0.1
HARD, SMOOTH = "hard labels", f"label smoothing {ALPHA}"
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#666666"
COLOURS = {HARD: BLUE, SMOOTH: ORANGE}


@dataclass(frozen=True)
class Trained:
    """A network, and how far it had collapsed after some of its epochs."""

    network: nn.Sequential
    collapse: dict[int, Any]

    def logits(self, images: Tensor) -> Tensor:
        """What it says of images."""
        with torch.no_grad():
            found: Tensor = self.network(images)
        return found

    def activations(self, images: Tensor) -> Tensor:
        """What goes into its last layer."""
        with torch.no_grad():
            found: Tensor = self.network[:-1](images)
        return found

    @property
    def head(self) -> nn.Linear:
        """Its last layer."""
        layer = self.network[-1]
        assert isinstance(layer, nn.Linear)
        return layer


@cache
def digits() -> tuple[Tensor, Tensor]:
    """Images (1797, 64) and labels."""
    images, labels = load_digits(return_X_y=True)
    return torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)


def held_out() -> tuple[Tensor, Tensor]:
    """The digits that no network has learnt."""
    images, labels = digits()
    return images[KNOWN:], labels[KNOWN:]


@cache
def trained(alpha: float = 0.0, seed: int = 0) -> Trained:
    """A network with two hidden layers that learnt the first digits with this much smoothing."""
    images, labels = (part[:KNOWN] for part in digits())
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = nn.Sequential(
            nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)
        )
    loss = LabelSmoothing(alpha)
    optimiser = torch.optim.SGD(network.parameters(), 0.1, momentum=0.9, weight_decay=5e-4)
    made = Trained(network, {})
    for epoch in range(1, EPOCHS + 1):
        optimiser.zero_grad()
        loss(network(images), labels).backward()
        optimiser.step()
        if epoch in {30, 60, 100, 150, 200, EPOCHS}:
            weights, bias = made.head.weight.detach(), made.head.bias.detach()
            made.collapse[epoch] = neural_collapse(made.activations(images), labels, weights, bias)
    return made


def both() -> dict[str, Trained]:
    """The two networks, by the labels that they learnt from."""
    return {HARD: trained(), SMOOTH: trained(ALPHA)}


def calibration_error(figure: Figure) -> None:
    """Reliability diagrams of the two networks."""
    images, labels = held_out()
    for ax, (name, made) in zip(figure.subplots(1, 2, sharey=True), both().items(), strict=True):
        plotting.reliability_diagram(made.logits(images), labels, bins=10, ax=ax, title=name)
        _without_words(ax)


def temperature(figure: Figure) -> None:
    """The calibration error over temperatures."""
    images, labels = held_out()
    scores = {name: made.logits(images) for name, made in both().items()}
    plotting.temperature_sweep(scores, labels, ax=figure.subplots())


def proper_scores(figure: Figure) -> None:
    """What a probability costs, and what the Brier scores of the networks are made of."""
    left, right = figure.subplots(1, 2)
    p = np.linspace(0.01, 1, 100)
    left.plot(p, -np.log(p), color=BLUE, label="−log p")
    left.plot(p, 2 * (1 - p) ** 2, "--", color=RED, label="Brier, 2 classes")
    left.set(xlabel="probability of the label", ylabel="loss", title="one example", ylim=(0, 4.2))
    left.legend(frameon=False)
    images, labels = held_out()
    found = {
        name: brier_decomposition(made.logits(images).softmax(-1), labels) for name, made in both().items()
    }
    places = range(len(found))
    miscalibrated = [one.reliability for one in found.values()]
    rest = [one.score - one.reliability for one in found.values()]
    right.bar(places, rest, color=BLUE, width=0.6, label="what the model does not know")
    right.bar(places, miscalibrated, bottom=rest, color=RED, width=0.6, hatch="//", label="miscalibration")
    right.set_xticks(places, ["hard", "smoothed"])
    right.set(ylabel="Brier score", title=f"{len(labels):,} digits")
    right.set_ylim(0, 1.55 * max(one.score for one in found.values()))
    right.legend(frameon=False, loc="upper center", fontsize=9)


def selective_prediction(figure: Figure) -> None:
    """The error rate of the most confident predictions."""
    images, labels = held_out()
    scores = {name: made.logits(images) for name, made in both().items()}
    plotting.risk_coverage(scores, labels, ax=figure.subplots())


def template_plane(figure: Figure) -> None:
    """Learnt digits of three classes on the plane of their templates, on one scale."""
    images, labels = (part[:KNOWN] for part in digits())
    views = [
        plane_view(made.activations(images), labels, made.head.weight.detach(), (3, 8, 9), net=name)
        for name, made in both().items()
    ]
    draw_panels(figure, views)


def neural_collapse_(figure: Figure) -> None:
    """NC1 to NC4 of the learnt digits, over the epochs."""
    numbers: dict[str, Callable[[Any], float]] = {
        "NC1: spread within classes": lambda one: one.nc1,
        "NC2: means of unequal angles": lambda one: one.nc2_means.equal_angles,
        "NC3: templates off the means": lambda one: one.nc3,
        "NC4: nearest mean disagrees": lambda one: one.nc4,
    }
    panels = figure.subplots(2, 2, sharex=True).ravel()
    for ax, (title, number) in zip(panels, numbers.items(), strict=True):
        for name, made in both().items():
            style = "-o" if name == HARD else "--s"
            points = [number(one) for one in made.collapse.values()]
            ax.plot(list(made.collapse), points, style, color=COLOURS[name], label=name, markersize=4)
        ax.set_title(title, fontsize=10)
        ax.set_ylim(bottom=0)
    for ax in panels[2:]:
        ax.set_xlabel("epoch")
    panels[0].legend(frameon=False, fontsize=9)


def information(figure: Figure) -> None:
    """Logit differences of views of learnt threes and eights."""
    images, labels = (part[:KNOWN] for part in digits())
    some = torch.cat([(labels == digit).nonzero().squeeze(-1)[:20] for digit in (3, 8)])
    views = 0.9 * images[some].unsqueeze(1) + 0.1 * shifted(images[some])  # moved by a tenth of a pixel
    for ax, (name, made) in zip(figure.subplots(1, 2, sharey=True), both().items(), strict=True):
        logits = made.logits(views.flatten(0, 1)).unflatten(0, views.shape[:2])
        difference = (logits[..., 3] - logits[..., 8]).double()
        found = estimate_information(difference)
        order = difference.mean(1).argsort()
        for place, row in enumerate(difference[order].numpy()):
            colour = BLUE if labels[some[order[place]]] == 3 else RED
            ax.plot(row, [place] * len(row), ".", color=colour, markersize=3)
        ax.set(title=f"{name}: {found.value:.1f} nats", xlabel="logit of 3 − logit of 8")
        ax.set_yticks([])
    figure.axes[0].set_ylabel("eights below, threes above")


def shifted(images: Tensor) -> Tensor:
    """Views (N, 9, 64) of images (N, 64): each moved by at most a pixel in both directions."""
    square = nn.functional.pad(images.reshape(-1, 8, 8), (1, 1, 1, 1))
    views = [square[:, down : down + 8, along : along + 8] for down in range(3) for along in range(3)]
    return torch.stack([view.flatten(1) for view in views], 1)


def distillation_measures(figure: Figure) -> None:
    """What teachers say of one digit, and how soft they are at other temperatures."""
    images, labels = (part[:KNOWN] for part in digits())
    left, right = figure.subplots(1, 2)
    teacher = trained()
    softest = int(teacher.logits(images).softmax(-1).gather(-1, labels[:, None]).argmin())
    for shift, (t, colour) in enumerate({1: BLUE, 4: ORANGE}.items()):
        said = (teacher.logits(images[softest]) / t).softmax(-1).numpy()
        left.bar(np.arange(10) + 0.4 * (shift - 0.5), said, width=0.4, color=colour, label=f"T = {t}")
    left.set_xticks(range(10))
    left.set(title=f"one digit, a {int(labels[softest])}", xlabel="class", ylabel="teacher's probability")
    left.legend(frameon=False)
    temperatures = np.linspace(1, 8, 29)
    for name, made in both().items():
        logits = made.logits(images)
        soft = [smoothness_index((logits / t).softmax(-1), labels) for t in temperatures]
        style = "-" if name == HARD else "--"
        right.plot(temperatures, soft, style, color=COLOURS[name], label=f"learnt from {name}")
    right.set(title="smoothness of all targets", xlabel="temperature T", ylabel="γ", ylim=(0, 1.3))
    right.legend(frameon=False, fontsize=9, loc="upper left")


def mistakes(figure: Figure) -> None:
    """Which digits are taken for which, and which mistakes two networks share."""
    images, labels = held_out()
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    first, second = (trained(seed=seed).logits(images).argmax(-1) for seed in (0, 1))
    wrong = confusion_matrix(first, labels, 10)
    wrong.fill_diagonal_(0)
    left.imshow(wrong.numpy(), cmap="Blues", vmin=0)
    for row, column in wrong.nonzero().tolist():
        count = int(wrong[row, column])
        colour = "white" if count > 0.6 * int(wrong.max()) else "#333333"
        left.text(column, row, str(count), ha="center", va="center", fontsize=8, color=colour)
    left.set_xticks(range(10))
    left.set_yticks(range(10))
    left.set(xlabel="prediction", ylabel="label", title=f"{int(wrong.sum())} mistakes")
    shared = error_overlap(first, second, labels)
    parts = {
        "only first": shared.only_first_wrong,
        "both": shared.both_wrong,
        "only second": shared.only_second_wrong,
    }
    right.bar(list(parts), list(parts.values()), color=[BLUE, GREY, ORANGE], width=0.7)
    for place, count in enumerate(parts.values()):
        right.text(place, count, f" {count}", ha="center", va="bottom")
    right.tick_params(axis="x", labelsize=9)
    right.set(title="two seeds", ylabel="digits that are wrong")
    right.margins(y=0.15)


def label_noise(figure: Figure) -> None:
    """Probabilities of given labels, of which one in ten was made wrong, and the estimate of that share."""
    images, clean = (part.numpy() for part in digits())
    given = symmetric(clean, rate=0.1, classes=10, seed=0)
    wrong = given != clean
    model, folds = LogisticRegression(C=0.3, max_iter=1000), StratifiedKFold(5, shuffle=True, random_state=0)
    held = cross_val_predict(model, images, given, method="predict_proba", cv=folds)
    found = assess_noise(given, held)
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    own = held[np.arange(len(given)), given]
    bins = np.linspace(0, 1, 21)
    left.hist([own[~wrong], own[wrong]], bins=bins, stacked=True, color=[BLUE, RED], label=["right", "wrong"])
    left.set(xlabel="probability of the given label", ylabel="examples", title="given labels")
    left.legend(frameon=False)
    right.errorbar(
        [0],
        [100 * (found.low + found.high) / 2],
        yerr=50 * (found.high - found.low),
        color=BLUE,
        capsize=8,
        linewidth=2,
        label="95 % interval",
    )
    right.axhline(100 * wrong.mean(), color=RED, linestyle="--", label="made wrong")
    right.set_xticks([])
    right.set(ylabel="wrong labels, %", title="estimate", ylim=(0, 25))
    right.legend(frameon=False, loc="upper center")


def token_calibration(figure: Figure) -> None:
    """Next letters of real sentences, with and without the padding after them."""
    probabilities, labels, padding = letters()
    for ax, counted, title in zip(
        figure.subplots(1, 2, sharey=True),
        (~padding, np.ones_like(padding)),
        ("letters", "letters and padding"),
        strict=True,
    ):
        plotting.reliability_diagram(
            probabilities[counted], labels[counted], ax=ax, title=title, kind="probabilities"
        )
        _without_words(ax)


@cache
def letters() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probabilities of the next letter, the letters, and where they are padding, of lines of our licence.

    The model counts letters after pairs of letters in the first half of the text; it has never seen padding.
    """
    text = (ROOT / "LICENSE").read_text(encoding="utf-8").lower()
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    known, new = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    alphabet = ["\0", *sorted(set("".join(lines)))]
    place = {letter: at for at, letter in enumerate(alphabet)}
    after = {length: Counter[str]() for length in (0, 1, 2)}
    for line in known:
        for at, letter in enumerate(line):
            for length, counts in after.items():
                if at >= length:
                    counts[line[at - length : at] + letter] += 1
    table: dict[str, np.ndarray] = {}

    def next_letter(prefix: str) -> np.ndarray:
        if prefix not in table:
            made = np.full(len(alphabet), 1 / len(alphabet))
            for length in range(min(2, len(prefix)) + 1):
                end = prefix[len(prefix) - length :]
                counts = np.array([after[length][end + letter] for letter in alphabet], dtype=float)
                made = (counts + made) / (counts.sum() + 1)
            table[prefix] = made
        return table[prefix]

    longest = max(map(len, new))
    rows = [(line.ljust(longest, "\0"), at) for line in new for at in range(longest)]
    probabilities = np.stack([next_letter(line[max(0, at - 2) : at].replace("\0", " ")) for line, at in rows])
    labels = np.array([place[line[at]] for line, at in rows])
    return probabilities, labels, labels == 0


_DRAWN: dict[str, tuple[Callable[[Figure], None], tuple[float, float]]] = {
    "calibration-error": (calibration_error, (6.0, 3.6)),
    "temperature": (temperature, (6.0, 3.3)),
    "proper-scores": (proper_scores, (6.0, 3.0)),
    "selective-prediction": (selective_prediction, (6.0, 3.3)),
    "template-plane": (template_plane, (5.2, 3.4)),
    "neural-collapse": (neural_collapse_, (6.0, 4.0)),
    "information": (information, (6.0, 3.0)),
    "distillation-measures": (distillation_measures, (6.0, 3.0)),
    "mistakes": (mistakes, (6.2, 3.6)),
    "label-noise": (label_noise, (6.0, 3.0)),
    "token-calibration": (token_calibration, (6.0, 3.6)),
}
NAMES = tuple(_DRAWN)


def picture(name: str) -> bytes:
    """The picture of an instrument's card as SVG."""
    draw, size = _DRAWN[name]
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "path", "font.size": 11}):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        for ax in figure.axes:
            _plain(ax)
        stream = io.BytesIO()
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def _without_words(ax: Axes) -> None:
    """What a caption says, and the panel to the left, is left out of a panel."""
    legend = ax.get_legend()
    if legend is not None:
        legend.remove()
    if not ax.get_subplotspec().is_first_col():
        ax.set_ylabel("")


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
