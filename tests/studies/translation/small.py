"""Translation studies on a language that is learnt in seconds, and results that were never measured."""

from __future__ import annotations

import torch

from softtargets.studies import Outcome, Results
from softtargets.studies.grids import smoothing
from tests.training.tasks.translation.counting import recipe

ALPHAS = (0.0, 0.1, 0.3)
BASE = recipe(epochs=4)
EXAMPLES = {"train": 3000, "validation": 40, "test": 40}


class Never:
    """In the place of a run that was never trained."""

    id = "never"
    provenance = {"examples": EXAMPLES, "parameters": 1}  # noqa: RUF012


def made_up(study, measures, size="full", seeds=3):
    """The whole grid of a study with these measures of each trial."""
    trials = study.trials(study.settings(seeds, {"size": size}))
    return Results(tuple(Outcome(trial, Never(), measures(trial)) for trial in trials))


def recipes():
    """Hard targets and two strengths of smoothing."""
    return [BASE.replace({"regulariser": smoothing(alpha)}) for alpha in ALPHAS]


def said_one_by_one(task, model, split, temperature=1.0):
    """Of each sentence, alone and without padding, the probabilities of its next tokens and the right ones."""
    sentences = task.splits[split]
    model = model.double().eval()
    found = []
    with torch.no_grad():
        for row in range(len(sentences)):
            source, labels = (torch.tensor(side[row]) for side in (sentences.sources, sentences.targets))
            prefix = torch.cat((torch.tensor([1]), labels[:-1]))
            logits = model(source[None], prefix[None])[0]
            found.append(((logits / temperature).softmax(-1), labels))
    model.float()
    return found


def ece(said):
    """With 15 bins, by loops."""
    bins = {}
    rows = [(p, int(y)) for probabilities, labels in said for p, y in zip(probabilities, labels, strict=True)]
    for p, y in rows:
        sure, guess = float(p.max()), int(p.argmax())
        bins.setdefault(min(int(sure * 15), 14), []).append(float(guess == y) - sure)
    return sum(abs(sum(gaps)) for gaps in bins.values()) / len(rows)


def nll(said):
    """In nats per token."""
    costs = [-float(p[int(y)].log()) for rows, labels in said for p, y in zip(rows, labels, strict=True)]
    return sum(costs) / len(costs)
