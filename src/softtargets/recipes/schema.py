"""Validated, frozen descriptions: the small mechanism under every recipe.

A `Part` is a frozen dataclass whose fields are checked against their annotations the moment it is made,
whether from Python or from YAML. A field annotated with a part *slot* (a subclass of `Part` that has named
kinds, such as ``Model`` with ``MLP`` and ``CNN``) takes an instance, a bare name, or a mapping with a
``name``; a kind with a `shorthand` field also takes ``name:value``. We wrote these two hundred lines instead
of taking a validation library because the refusals are the feature: field, value, what is allowed, nearest match.
"""

from __future__ import annotations

import math
import reprlib
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, fields
from numbers import Real
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from softtargets.exceptions import RecipeError, nearest

__all__ = ["Part", "build", "describe", "field_types", "kinds"]

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        """For type checkers only; Python itself has it from 3.11 on."""
        return lambda part: part


P = TypeVar("P", bound="Part")

# Nothing a recipe counts comes near this; beyond it torch's integers overflow.
_LARGEST_COUNT = 2**63


@dataclass(frozen=True)
class Range:
    """The numbers a field accepts; an end marked open is itself refused."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below

    def __str__(self) -> str:
        low = "" if self.low == -math.inf else f"{'above' if self.open_low else 'at least'} {self.low:g}"
        high = "" if self.high == math.inf else f"{'below' if self.open_high else 'at most'} {self.high:g}"
        return " and ".join(part for part in (low, high) if part)


Probability = Annotated[float, Range(0, 1)]
ProperFraction = Annotated[float, Range(0, 1, open_high=True)]
Positive = Annotated[float, Range(0, open_low=True)]
NonNegative = Annotated[float, Range(0)]
Count = Annotated[int, Range(1)]
Index = Annotated[int, Range(0)]
Width = Annotated[
    int, Range(1, 10**12)
]  # of a layer: more overflows, before memory can be found to be too small


class Scalar:
    """The type of a field that takes any single value: a number, true or false, or text."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True)
class Part:
    """A frozen, validated piece of a recipe. Subclasses are dataclasses of themselves, and say how recipes name them.

    >>> class Bread(Part, name="bread"):
    ...     slices: Count = 2
    >>> Bread(slices=3), Bread.name
    (Bread(slices=3), 'bread')
    """

    name: ClassVar[str] = ""
    shorthand: ClassVar[str] = ""  # the field that `value` fills where a recipe says ``name:value``

    def __init_subclass__(cls, name: str = "", shorthand: str = "") -> None:
        cls.name, cls.shorthand = name or cls.name, shorthand or cls.shorthand
        dataclass(frozen=True, kw_only=True, repr=False)(cls)

    def __post_init__(self) -> None:
        for name, hint in field_types(type(self)).items():
            try:
                value = _coerce(getattr(self, name), hint)
            except RecipeError as error:
                raise error.inside(name) from None
            object.__setattr__(self, name, value)
        self.check()

    def __repr__(self) -> str:
        """As one would write it in Python: only what differs from the defaults."""
        given = ((one.name, getattr(self, one.name), _default(one)) for one in fields(self))
        return f"{type(self).__name__}({', '.join(f'{n}={v!r}' for n, v, usual in given if v != usual)})"

    def check(self) -> None:
        """Refuse combinations of fields that make no sense together. Overridden where there are any."""

    def to_dict(self) -> dict[str, Any]:
        """Every field, defaults included, as plain JSON values; the inverse of `build`."""
        return dict(_plain(self))

    def canonical(self) -> dict[str, Any]:
        """Only what differs from the defaults: the form that is hashed.

        Leaving defaults out means that a new option, added later with a default that keeps the old
        behaviour, does not change the identity of every run ever made.
        """
        return dict(_plain(self, canonical=True))


def kinds(slot: type[P]) -> dict[str, type[P]]:
    """The named parts that fit a slot, by name.

    >>> from softtargets.recipes import Schedule
    >>> sorted(kinds(Schedule))
    ['constant', 'cosine', 'inverse_sqrt', 'linear', 'step']
    """
    return {part.name: part for part in _below(slot) if part.name}


def build(slot: type[P], value: object) -> P:
    """Make a part from plain values (what YAML or JSON gives), or refuse with the field and the reason."""
    if isinstance(value, slot):
        return value
    part, options = _chosen(slot, value)
    allowed = {field.name: field for field in fields(part)}
    for key in options:
        if key not in allowed:
            owner = f"'{part.name}'" if part.name else "a recipe"
            close = nearest(key, allowed)
            raise RecipeError(f"no such field of {owner}{close}; allowed: {_listed(allowed)}", key)
    for key, field in allowed.items():
        if key not in options and _default(field) is MISSING:
            raise RecipeError("is required", key)
    return part(**options)


def _chosen(slot: type[P], value: object) -> tuple[type[P], dict[str, Any]]:
    """The part of a slot that plain values are for, and its options."""
    choices = kinds(slot)
    options = _options(value, choices)
    if not choices:
        if slot.name and options.get("name") == slot.name:
            del options["name"]
        return slot, options
    if "name" not in options:
        raise RecipeError(f"has no 'name'; allowed: {_listed(choices)}")
    name = options.pop("name")
    short = _shorthand(name, choices)
    if short and short not in options:
        name, _, options[short] = name.partition(":")
    return choices[_one_of(name, list(choices))], options


_TYPES: dict[type[Part], dict[str, Any]] = {}


def field_types(part: type[Part]) -> dict[str, Any]:
    """The annotation of each field, ready for `describe`."""
    if part not in _TYPES:
        # Parts may refer to each other by class name across modules (a distillation names its teacher's
        # recipe), which annotations alone cannot resolve without a circular import.
        known = {each.__name__: each for each in _below(Part)}
        hints = get_type_hints(part, localns=known, include_extras=True)
        _TYPES[part] = {field.name: hints[field.name] for field in fields(part)}
    return _TYPES[part]


def describe(hint: object) -> str:
    """What a field accepts, in words; used by error messages and by ``softtargets recipe parts``."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = str(arguments[1])
        return f"{describe(arguments[0])} {'of ' if limits.startswith('at ') else ''}{limits}"
    if origin is Literal:
        return "one of " + _listed(arguments)
    if origin in (Union, types.UnionType):
        return " or ".join("null" if arm is type(None) else describe(arm) for arm in arguments)
    if origin is tuple:
        return _describe_list(hint, arguments)
    if isinstance(hint, type) and issubclass(hint, Part):
        return "one of " + _listed(kinds(hint)) if kinds(hint) else f"a {hint.__name__.lower()}"
    words = {float: "a number", int: "a whole number", bool: "true or false", str: "text"}
    return {**words, Scalar: "a number, true or false, or text"}[hint]  # type: ignore[index]


def _describe_list(hint: object, arguments: tuple[Any, ...]) -> str:
    if _are_pairs(hint):
        return f"a mapping from {' to '.join(map(describe, get_args(arguments[0])))}"
    if len(set(arguments)) > 1 and Ellipsis not in arguments:
        return f"a list of {' and '.join(map(describe, arguments))}"
    return f"a list, each item {describe(arguments[0])}"


def _below(slot: type[P]) -> Iterator[type[P]]:
    """All that is derived from a slot."""
    for part in slot.__subclasses__():
        yield part
        yield from _below(part)


def _options(value: object, choices: Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(value, str) and choices:
        return {"name": value}
    if isinstance(value, Mapping):
        return {str(key): option for key, option in value.items()}
    expected = f"one of {_listed(choices)}" if choices else "a mapping of fields"
    raise RecipeError(f"{_show(value)} is not {expected}")


def _default(field: Field[Any]) -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _shorthand(text: Any, choices: Mapping[str, type[Part]]) -> str:
    """The field that the part of a text after its first colon is meant for; empty if there is none."""
    name, colon, _ = text.partition(":") if isinstance(text, str) else ("", "", "")
    return choices[name].shorthand if colon and name in choices else ""


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names)


def _plain(value: Any, canonical: bool = False) -> Any:
    if isinstance(value, Part):
        named = {"name": value.name} if value.name else {}
        return named | {
            field.name: _plain(getattr(value, field.name), canonical)
            for field in fields(value)
            if not canonical or getattr(value, field.name) != _default(field)
        }
    if isinstance(value, tuple):
        return [_plain(item, canonical) for item in value]
    return value


def _coerce(value: Any, hint: Any) -> Any:
    """Return `value` as the annotated type, without ever guessing; raise `RecipeError` otherwise."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        number, allowed = _coerce(value, arguments[0]), arguments[1]
        if number not in allowed:
            raise RecipeError(f"{_show(number)} is out of range: must be {allowed}")
        return number
    if origin is Literal:
        return _one_of(value, arguments)
    if origin in (Union, types.UnionType):
        (arm,) = set(arguments) - {type(None)}
        return None if value is None else _coerce(value, arm)
    if origin is tuple:
        return _coerce_items(value, hint, arguments)
    if isinstance(hint, type) and issubclass(hint, Part):
        return build(hint, value)
    return _coerce_scalar(value, hint)


def _are_pairs(hint: Any) -> bool:
    """Whether a field is a list of pairs whose first is text: what people write as a mapping."""
    item = get_args(hint)[0]
    return get_origin(item) is tuple and len(get_args(item)) == 2 and get_args(item)[0] is str


def _coerce_items(value: Any, hint: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, Mapping) and _are_pairs(hint):
        return _coerce_mapping(value, *get_args(arguments[0]))
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise RecipeError(f"{_show(value)} is not {describe(hint)}")
    if arguments[-1] is not Ellipsis and len(value) != len(arguments):
        raise RecipeError(f"{_show(list(value))} has {len(value)} items, not {len(arguments)}")
    items = []
    for position, item in enumerate(value):
        try:
            items.append(_coerce(item, arguments[0 if arguments[-1] is Ellipsis else position]))
        except RecipeError as error:
            raise error.inside(str(position)) from None
    return tuple(items)


def _coerce_mapping(value: Mapping[Any, Any], key_hint: Any, hint: Any) -> tuple[tuple[str, Any], ...]:
    # Kept as pairs: a mapping loses its order where keys are sorted, as in the hash, and cannot be frozen.
    pairs = []
    for key, item in value.items():
        try:
            pairs.append((_coerce(key, key_hint), _coerce(item, hint)))
        except RecipeError as error:
            raise error.inside(_show(key).strip("'")) from None
    return tuple(pairs)


def _coerce_scalar(value: Any, hint: Any) -> Any:
    if hint is Scalar:
        if isinstance(value, (bool, str)):
            return value
        whole = _number(value, int)  # 2 and 2.0 are the same recipe
        return whole if whole is not None else _coerce_scalar(value, float)
    found = _number(value, hint) if hint in (int, float) else value if isinstance(value, hint) else None
    if found is None:
        raise RecipeError(f"{_show(value)} is not {describe(hint)}")
    return found


def _number(value: Any, hint: Any) -> float | int | None:
    # numpy's scalars are Real too; booleans, which Python counts among the integers, are not meant.
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    with suppress(OverflowError):  # an integer of hundreds of digits
        number = float(value) + 0.0  # minus zero and zero are the same recipe
        if hint is float:
            return number if math.isfinite(number) else None
        if abs(number) < _LARGEST_COUNT and number == int(number):
            return int(value)  # type: ignore[call-overload,no-any-return]
    return None


def _one_of(value: Any, allowed: Collection[Any]) -> Any:
    if value not in allowed:
        close = nearest(_show(value).strip("'"), map(str, allowed))
        raise RecipeError(f"{_show(value)} is not known{close}; allowed: {_listed(allowed)}")
    return value


def _show(value: Any) -> str:
    """A value as an error names it: never longer than a line, whatever somebody put there."""
    return reprlib.repr(value)
