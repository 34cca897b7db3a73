"""The parts of cards that are made from the code and the results: picture, cost, code, what studies found."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# The same line in the trainers that people have; EXPRESSION makes the loss, NAMES is what it is made of.
_LIBRARIES = {
    "PyTorch": """
from softtargets.losses import NAMES

loss = EXPRESSION
loss(logits, target).backward()
""",
    "Hugging Face": """
from softtargets.integrations.huggingface import loss_function
from softtargets.losses import NAMES

trainer = Trainer(model, args, train_dataset=data, compute_loss_func=loss_function(EXPRESSION))
""",
    "Lightning": """
from softtargets.losses import NAMES

class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.network, self.loss = make_network(), EXPRESSION

    def training_step(self, batch, place):
        images, labels = batch
        return self.loss(self.network(images), labels)
""",
    "timm": """
from softtargets.losses import NAMES

train_loss_fn = EXPRESSION  # in the place of SoftTargetCrossEntropy() in train.py
""",
}
# The same for losses that have to be told when an epoch is over (`told: epochs` on their cards).
_TOLD = {
    "PyTorch": """
from softtargets.losses import NAMES

loss = EXPRESSION
loss(logits, target).backward()
loss.end_epoch()  # after each epoch
""",
    "Hugging Face": """
from softtargets.integrations.huggingface import loss_function
from softtargets.losses import NAMES

function = loss_function(EXPRESSION)  # as a callback it hears of epochs
trainer = Trainer(model, args, train_dataset=data, compute_loss_func=function, callbacks=[function])
""",
    "Lightning": f"""
from softtargets.integrations.lightning import LossCallback
{_LIBRARIES["Lightning"].strip()}

trainer = Trainer(callbacks=[LossCallback()])  # tells the loss of epochs
""",
    "timm": """
from softtargets.losses import NAMES

train_loss_fn = EXPRESSION  # in the place of SoftTargetCrossEntropy() in train.py
train_loss_fn.end_epoch()  # after each epoch
""",
}
_SIZES = {
    "32 x 10": "a batch of 32, 10 classes",
    "128 x 1000": "128, 1,000 classes",
    "512 x 32000": "512, 32,000 classes",
}
_MOST = 8
_VERDICTS = ("reproduced", "contradicted", "no effect", "inconclusive")


def code(meta: Mapping[str, Any]) -> str:
    """Tabs with the same loss in four libraries and in a recipe; methods that need more than labels bring their own."""
    expression, names = meta["code"], meta["names"]
    made = {
        library: text.strip().replace("EXPRESSION", expression).replace("NAMES", names)
        for library, text in (_TOLD if meta.get("told") == "epochs" else _LIBRARIES).items()
    }
    made |= {library: str(text).strip() for library, text in (meta.get("libraries") or {}).items()}
    tabs = [_tab(library, "python", text) for library, text in made.items()]
    return "\n".join([*tabs, _tab("Recipe", "yaml", f"regulariser: {meta['recipe']}")])


def picture(name: str, meta: Mapping[str, Any]) -> str:
    """The picture of an instrument, with what to look for beneath it; `picture` of the page says both."""
    told = meta["picture"]
    alt = told.split(". ")[0].rstrip(".")
    return (
        f"<figure markdown>\n![{alt}]({name}-picture.svg){{ .target }}\n"
        f"<figcaption>{told}</figcaption>\n</figure>"
    )


def cost(meta: Mapping[str, Any]) -> str:
    """Loss and gradient in multiples of PyTorch's own label smoothing, as the committed benchmarks have them."""
    known = meta.get("timed")
    if not known:
        return meta.get("cost", "")
    rows = []
    for device, where in {
        "one core of a CPU, fp32": "cpu/plain",
        "H200, bf16": "nvidia-h200/plain-bfloat16",
    }.items():
        sizes = json.loads((ROOT / "benchmarks/losses" / f"{where}.json").read_text())["sizes"]
        found = {size: sizes[size][known]["ratio"] for size in _SIZES if known in sizes.get(size, {})}
        rows += [f"| {device} | {_SIZES[size]} | {ratio:.2f} |" for size, ratio in found.items()]
    said = [
        meta.get("cost", ""),
        "",
        "Loss and gradient, in multiples of `F.cross_entropy(label_smoothing=0.1)` in the same process:",
        "",
        "| device | size | multiple |",
        "|---|---|---|",
        *rows,
        "",
        "Measured by `python -m benchmarks.losses.plain`.",
    ]
    return "\n".join(said)


def findings(meta: Mapping[str, Any]) -> str:
    """What the studies that a card names have come to, claim by claim; those that did not run are counted."""
    wanted = re.compile(meta["found_by"]) if "found_by" in meta else None
    if wanted is None:
        return "No study asks about it yet."
    atlas = json.loads((ROOT / "results/atlas.json").read_text())
    small = {study["directory"] for study in atlas["studies"] if study["small"]}
    claims = [claim | {"small": claim["results"] in small} for claim in atlas["claims"]]
    about = [claim for claim in claims if wanted.search(f"{claim['study']}: {claim['statement']}")]
    about.sort(key=lambda claim: claim["small"])  # what says nothing of the papers' numbers comes last
    tested = {verdict: [claim for claim in about if claim["verdict"] == verdict] for verdict in _VERDICTS}
    count = sum(map(len, tested.values()))
    lines = [
        f"- **{claim['verdict']}**: {claim['statement']} ({_where(claim)}{_ours(claim)})"
        for claim in _in_turn(tested)
    ]
    if count > _MOST:
        told = [f"{len(some)} {verdict}" for verdict, some in tested.items() if some]
        lines = [f"{count} claims about it were tested: {', '.join(told)}. Some of each:", "", *lines]
        lines.append(f"- and {count - _MOST} more in [the atlas](../results/index.html).")
    waiting = len(about) - count
    if waiting:
        are = "claim about it is" if waiting == 1 else "claims about it are"
        lines.append(f"- {waiting} {are} not run yet; [the atlas](../results/index.html) lists them.")
    return "\n".join(lines) or "No study asks about it yet."


def _in_turn(tested: Mapping[str, list[Any]]) -> list[Any]:
    """The first few claims, as many of each verdict as there is room for: none hides behind those that went well."""
    rounds = itertools.zip_longest(*tested.values())
    chosen = [claim for each in rounds for claim in each if claim is not None][:_MOST]
    return sorted(chosen, key=lambda claim: _VERDICTS.index(claim["verdict"]))


def _ours(claim: Mapping[str, Any]) -> str:
    """What we found, where that is a number; a claim of a theory is proved or not."""
    return f"; ours {claim['in_words']}" if claim["in_words"] else ""


def _where(claim: Mapping[str, Any]) -> str:
    """The study, with a link to its page if it has one, and whether it is but a demonstration."""
    said = f"[{claim['study']}](../results/{claim['link']})" if claim["link"] else claim["study"]
    return f"{said}, a small demonstration" if claim["small"] else said


def _tab(title: str, language: str, text: str) -> str:
    inner = "\n".join(f"    {line}".rstrip() for line in [f"```{language}", *text.splitlines(), "```"])
    return f'=== "{title}"\n\n{inner}\n'
