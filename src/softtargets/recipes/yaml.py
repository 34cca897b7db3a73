"""YAML as people mean it: 1e-3 is a number, 010 is ten, `no` is a word, a key given twice is a mistake."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from softtargets.exceptions import RecipeError

__all__ = ["dump_yaml", "parse_yaml", "read_text"]

_FLOAT = re.compile(
    r"^[-+]?(\d[\d_]*(\.[\d_]*)?|\.\d[\d_]*)([eE][-+]?\d+)?$"
    r"|^[-+]?\.(inf|Inf|INF)$|^\.(nan|NaN|NAN)$"
)
_BOOL = re.compile(r"^(true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?\d[\d_]*$")
_MERGE = "tag:yaml.org,2002:merge"
MOST_FIELDS = 100_000  # of all mappings together, those that are merged counted every time
MOST_BYTES = 1 << 22
_REPLACED = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("bool", "int", "float", "timestamp"))


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with the surprises of YAML 1.1 taken out and repeated keys refused."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:  # `<<: *base` may be overridden; that is what it is for
                continue
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                line = key_node.start_mark.line + 1
                raise yaml.constructor.ConstructorError(None, None, f"'{key}' is given twice (line {line})")
            seen.add(key)
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """A mapping that merges another twice, which merges another twice, ... doubles with every line."""
        super().flatten_mapping(node)
        self._merged = getattr(self, "_merged", 0) + len(node.value)
        if self._merged > MOST_FIELDS:
            raise yaml.constructor.ConstructorError(None, None, f"it has more than {MOST_FIELDS} fields")

    def construct_decimal(self, node: yaml.ScalarNode) -> int:
        return int(str(self.construct_scalar(node)).replace("_", ""))


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("tTfF"))
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_decimal)
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


class _Dumper(yaml.SafeDumper):
    """Quotes every text that `_Loader` would read as something else."""

    def quoted(self, text: str) -> yaml.ScalarNode:
        tag = _Loader("").resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        return self.represent_scalar(
            "tag:yaml.org,2002:str", text, style=None if tag.endswith(":str") else "'"
        )


_Dumper.add_representer(str, _Dumper.quoted)


def dump_yaml(tree: Any, **options: Any) -> str:
    """Plain values as YAML that `parse_yaml` reads back as they were; options are PyYAML's.

    >>> dump_yaml({"lr": 0.001, "digest": "1e3"})
    "lr: 0.001\\ndigest: '1e3'\\n"
    """
    return str(yaml.dump(tree, Dumper=_Dumper, **{"sort_keys": False, "allow_unicode": True, **options}))


def parse_yaml(text: str, source: str = "YAML") -> Any:
    """Plain values from YAML text.

    >>> parse_yaml("{lr: 1e-3, milestones: [60, 120], name: no}")
    {'lr': 0.001, 'milestones': [60, 120], 'name': 'no'}
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader: plain values only
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        mark = getattr(error, "problem_mark", None)
        place = f" on line {mark.line + 1}" if mark else ""
        raise RecipeError(f"{source} is not readable YAML{place}: {reason}") from None


def read_text(path: str | Path) -> str:
    """The text of a file, which must be UTF-8."""
    try:
        with open(path, "rb") as file:  # maybe a pipe, but not more of it than a recipe can have
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise RecipeError(f"{path} has more than {MOST_BYTES >> 20} MiB, too much for a recipe")
        return content.decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        raise RecipeError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RecipeError(f"{path} is not a text file in UTF-8") from None
    except ValueError as error:
        raise RecipeError(f"{str(path)!r} is not a path: {error}") from None
