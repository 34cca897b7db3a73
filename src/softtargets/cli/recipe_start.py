"""A recipe to start from: YAML with a comment on every line that people change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from softtargets.cli.recipe_parts import first_sentence
from softtargets.exceptions import RecipeError, nearest
from softtargets.recipes import (
    Dataset,
    Model,
    Part,
    Recipe,
    Regulariser,
    TranslationDataset,
    describe,
    dump_yaml,
    field_types,
    kinds,
    source_of,
)

# What suits each dataset, and trains in minutes on a CPU where the data allow it.
_MODELS = {"digits": "mlp", "mnist": "mlp", "fashion-mnist": "cnn", "emnist": "cnn", "arrays": "cnn"}
_EPOCHS = {"digits": 40, "mnist": 20, "fashion-mnist": 20}
_SMALL = ("mlp", "cnn")
_HIDDEN = {"digits": [64]}
_WIDTH = 44


def starting_recipe(data: str, model: str | None, regulariser: str, file: str = "recipe.yaml") -> str:
    """The text of a recipe, which is valid as it is but for what only its owner knows."""
    data, own_data = _split(Dataset, data)
    part = _chosen(Dataset, data, "--data")
    text = issubclass(part, TranslationDataset)
    model, own_net = _split(Model, model or ("transformer" if text else _MODELS.get(data, "resnet18")))
    net = _chosen(Model, model, "--model")
    if net.name == "own" and own_net:
        own_net |= _version(own_net["net"])
    if text != (net.name == "transformer"):
        wanted = "transformer" if text else "a network for images, such as resnet18"
        raise RecipeError(f"{net.name} cannot be trained on {data}; choose --model {wanted}")
    target = _chosen(Regulariser, regulariser, "--regulariser")
    small = net.name in _SMALL
    optimiser: dict[str, Any] = (
        {"name": "adam", "lr": 0.001} if text else {"name": "sgd", "lr": 0.1, "momentum": 0.9}
    )
    if not small and not text:
        optimiser["weight_decay"] = 0.0005
    lines = [
        f"# Train it:                               softtargets train {file}",
        f"# See it with every default filled in:    softtargets recipe check {file}",
        "# See what else can be written here:      softtargets recipe parts",
        "",
        *_part("data", part, {"validation": _validation(data, text), **own_data}),
        "",
        *_part("model", net, {"hidden": _HIDDEN.get(data)} if net.name == "mlp" else own_net),
        "",
        *_part(
            "regulariser",
            target,
            {"teacher": _teacher(data, net, text, own_data, own_net)}
            if target.name == "distillation"
            else {},
        ),
        "",
        *_mapping("optimiser", optimiser, "how the weights are updated: sgd, adam or adamw"),
        _line(
            "schedule: cosine" if not text else "schedule: {name: inverse_sqrt, warmup: 1000}",
            "how the learning rate changes",
        ),
        _line(
            f"epochs: {_EPOCHS.get(data, 10 if text else 30)}",
            "how often the whole training set is seen; or give steps",
        ),
        _line(f"batch: {4096 if text else 128}", "tokens in a batch" if text else "images in a batch"),
    ]
    if not text and not small:
        lines.append(_line("augmentation: [crop, flip]", "what is done to training images, in order"))
    if target.name == "forward_correction":
        lines.append(_line("noise: {name: symmetric, rate: 0.2}", "the label noise that is corrected"))
    lines.append(_line("seed: 0", "seed of everything that is random"))
    return "\n".join(lines) + "\n"


def _split(slot: type[Part], text: str) -> tuple[str, dict[str, str]]:
    """The name of a part, and the field that what follows a colon is short for: ``own:module:Class``."""
    name, colon, value = text.partition(":")
    field = kinds(slot)[name].shorthand if colon and name in kinds(slot) else ""
    return (name, {field: value}) if field else (text, {})


def _version(net: str) -> dict[str, str]:
    """The digest of the file that a network of one's own is in, if that is here already: training asks for it."""
    from softtargets.models import source_digest

    try:
        return {"digest": source_digest(net)}
    except ValueError:
        return {}


def _chosen(slot: type[Part], name: str, option: str) -> type[Part]:
    known = kinds(slot)
    if name not in known:
        short = [kind for kind, one in known.items() if one.shorthand and kind in ("own", "arrays")]
        if short and (":" in name or Path(name).suffix in (".npz", ".npy")):
            own = f"for your own write {option} {short[0]}:{name}"
            raise RecipeError(f"{option} {name} is not known; {own}; allowed: {', '.join(known)}")
        raise RecipeError(f"{option} {name} is not known{nearest(name, known)}; allowed: {', '.join(known)}")
    return known[name]


def _validation(data: str, text: bool) -> int | None:
    if text:
        return None
    return {"digits": 200, "mnist": 5000, "fashion-mnist": 5000, "cifar10": 5000, "cifar100": 5000}.get(data)


def _teacher(
    data: str, net: type[Part], text: bool, own_data: Mapping[str, str], own_net: Mapping[str, str]
) -> dict[str, Any]:
    hidden = {"hidden": _HIDDEN[data]} if net.name == "mlp" and data in _HIDDEN else {}
    steady = {"name": "adam", "lr": 0.001} if text else {"name": "sgd", "lr": 0.1, "momentum": 0.9}
    return {
        "data": {"name": data, **_required(kinds(Dataset)[data]), **own_data},
        "model": {"name": net.name, **_required(net), **own_net, **hidden},
        "optimiser": steady,
        "epochs": _EPOCHS.get(data, 30),
    }


def _required(part: type[Part]) -> dict[str, str]:
    """What only its owner knows, in words that stand in its place."""
    from dataclasses import MISSING

    return {
        f.name: f"YOUR-{f.name.upper()}" for f in fields(part) if f.default is MISSING and f.type != "Recipe"
    }


def _part(slot: str, part: type[Part], chosen: Mapping[str, Any]) -> Iterator[str]:
    """A part with its options and what they accept, those that are at their defaults as comments."""
    yield f"# {first_sentence(part)}."
    for word, told in zip(("Formula", "Source"), source_of(slot, part.name) or (), strict=False):
        if told:
            yield f"# {word}: {told}"
    yield f"{slot}:"
    yield f"  name: {part.name}"
    required = _required(part)
    for field in fields(part):
        name = field.name
        accepted = describe(field_types(part)[name])
        value = chosen.get(name)
        if isinstance(value, Mapping):
            yield f"  {name}:"
            yield from _nested(value, 4)
        elif value is not None:
            yield _line(f"  {name}: {_yaml(value)}", accepted)
        elif name in required:
            yield _line(f"  {name}: {_yaml(required[name])}", f"{accepted}: yours")
        elif name not in ("matrix", "teacher"):
            yield _line(f"  # {name}: {_yaml(_plain(field.default))}", accepted)


def _nested(tree: Mapping[str, Any], indent: int) -> Iterator[str]:
    for name, value in tree.items():
        yield f"{' ' * indent}{name}: {_yaml(value)}"


def _mapping(name: str, tree: Mapping[str, Any], comment: str) -> Iterator[str]:
    yield _line(f"{name}: {_yaml(tree)}", comment)


def _line(text: str, comment: str) -> str:
    short = comment if len(comment) <= 70 else f"{comment[:67]}..."
    return f"{text.ljust(_WIDTH)}  # {short}"


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _yaml(value: Any) -> str:
    return dump_yaml(value, default_flow_style=True, width=1000).removesuffix("\n...\n").strip()


def check_start(text: str) -> Recipe | None:
    """The recipe, or None where something in it is still to be filled in."""
    return None if "YOUR-" in text else Recipe.from_yaml(text)
