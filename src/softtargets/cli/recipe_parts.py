"""What a recipe can say, in words that fit a terminal: an overview, and one part in detail."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Iterator
from dataclasses import MISSING, fields
from textwrap import fill
from typing import get_args

from softtargets.exceptions import RecipeError, nearest
from softtargets.recipes import Part, Recipe, describe, field_types, kinds, source_of

HEADINGS = ("field", "accepts", "default")
_WIDEST = 100
_COLUMN = 24
_YAML = {"": "null", "()": "none", "True": "true", "False": "false"}
_FIELDS = {
    "data": "what the model is trained and tested on",
    "model": "the network",
    "regulariser": "where the training target comes from",
    "optimiser": "how the weights are updated",
    "schedule": "how the learning rate changes",
    "epochs": "how often the whole training set is seen; or give steps",
    "steps": "how many batches are trained on; or give epochs",
    "batch": "examples in a batch; tokens, for translations",
    "augmentation": "a list of what is done to training images, in order",
    "noise": "label noise that is added to the training labels",
    "seed": "seed of everything that is random",
    "precision": "number format of matrix products and convolutions",
    "multiplier": "what the loss is multiplied by",
    "clip": "the largest norm of the gradient",
    "average": "decay of a moving average of the weights, which is then measured",
    "measure_every": "also measure every so many steps, not only after epochs",
    "probes": "a list of what else is measured during training",
    "average_last": "keep the average of the weights at the end of each of the last so many epochs",
    "best_by": "keep the weights with the best value of this metric, not the last weights",
    "measure_epochs": "measure after every so many epochs, and at the end",
}


def slots() -> dict[str, type[Part]]:
    """The fields of a recipe that parts fit, and the kind of part."""
    found = {}
    for name, hint in field_types(Recipe).items():
        slot = hint if isinstance(hint, type) else next(iter(get_args(hint)), None)
        if isinstance(slot, type) and issubclass(slot, Part):
            found[name] = slot
    return found


def rows(name: str | None = None) -> list[tuple[str, str, str]]:
    """Every field of a recipe and every option of its parts, or those of one part: what it accepts, its default."""
    places = slots()
    if name is not None:
        return [row for slot, part in _named(name) for row in _options(slot, part)]
    found = []
    for field, hint in field_types(Recipe).items():
        found.append((field, describe(hint), _default(Recipe, field)))
        if field in places:
            found += [row for part in kinds(places[field]).values() for row in _options(field, part)]
    return found


def overview() -> Iterator[str]:
    """The fields of a recipe, with the parts that fit them and the first sentence about each."""
    places = slots()
    yield "A recipe has these fields. More about any of them: softtargets recipe parts NAME"
    for field, hint in field_types(Recipe).items():
        yield ""
        yield _wrapped(field, f"{_FIELDS[field]} ({_default_in_words(Recipe, field)})", 0)
        if field not in places:
            yield _wrapped("", describe(hint), 0)
            continue
        for name, part in kinds(places[field]).items():
            yield _wrapped(name, first_sentence(part), 2)


def detail(name: str) -> Iterator[str]:
    """One part, or all parts of one field, with every option."""
    for position, (slot, part) in enumerate(_named(name)):
        if position:
            yield ""
        yield f"{slot}: {part.name}"
        for paragraph in _paragraphs(part):
            yield ""
            yield fill(paragraph, _width(), initial_indent="  ", subsequent_indent="  ")
        if (known := source_of(slot, part.name)) and any(known):
            yield ""
            if known.formula:
                yield _wrapped("formula", known.formula, 2)
            if known.paper:
                yield _wrapped("source", known.paper, 2)
        options = field_types(part)
        yield ""
        if not options:
            yield "  no options"
        for option, hint in options.items():
            yield _wrapped(option, f"{describe(hint)}; {_default_in_words(part, option)}", 2)


def _named(name: str) -> list[tuple[str, type[Part]]]:
    """The parts of this name, wherever they fit, or all that fit the field of this name."""
    places = slots()
    if name in places:
        return [(name, part) for part in kinds(places[name]).values()]
    found = [(field, part) for field, slot in places.items() for part in [kinds(slot).get(name)] if part]
    if not found:
        known = [*places, *(kind for slot in places.values() for kind in kinds(slot))]
        raise RecipeError(
            f"a recipe has no part or field '{name}'{nearest(name, known)}; "
            "softtargets recipe parts lists them all"
        )
    return found


def _options(slot: str, part: type[Part]) -> list[tuple[str, str, str]]:
    return [
        (f"{slot}.{option} ({part.name})", describe(accepted), _default(part, option))
        for option, accepted in field_types(part).items()
    ]


def _default(part: type, name: str) -> str:
    default = next(field.default for field in fields(part) if field.name == name)
    if default is MISSING:
        return "required"
    return str(getattr(default, "name", None) or ("" if default is None else default))


def _default_in_words(part: type, name: str) -> str:
    """As one would write it in YAML."""
    default = _default(part, name)
    if default == "required":
        return default
    return f"default: {_YAML.get(default, default)}"


def _paragraphs(part: type[Part]) -> list[str]:
    """What is written about a part and about what it is a kind of, without markup and examples."""
    texts = [inspect.cleandoc(part.__doc__ or "")]
    texts += [inspect.cleandoc(base.__doc__ or "") for base in part.__mro__[1:] if _says_more(base)]
    found = []
    for text in texts:
        for block in text.split("\n\n"):
            if ">>>" in block:
                continue
            # Lines that explain one field each stay lines of their own.
            for piece in re.split(r"\n(?=\w+: )", block):
                found.append(" ".join(piece.replace("`", "").split()))
    return found


def _says_more(base: type) -> bool:
    return issubclass(base, Part) and base is not Part and bool(fields(base)) and not base.name


def first_sentence(part: type[Part]) -> str:
    """What a part does, without its options."""
    text = _paragraphs(part)[0]
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


def _width() -> int:
    return max(40, min(_WIDEST, shutil.get_terminal_size().columns))


def _wrapped(name: str, text: str, indent: int) -> str:
    """A name and what it is, hanging beside it."""
    head = f"{' ' * indent}{name}"
    lead = f"{head.ljust(_COLUMN)} " if len(head) <= _COLUMN else f"{head}  "
    return fill(text, _width(), initial_indent=lead, subsequent_indent=" " * (_COLUMN + 1))
