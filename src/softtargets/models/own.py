"""A network of one's own, by the place of its class: ``module:Class``."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from softtargets.models.classifier import Classifier
from softtargets.models.dropout import Dropout

_PLACE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
# What the constructor of a network may call what we know: the shape of images, their channels, the number of classes.
_SHAPE = ("shape", "input_shape")
_CHANNELS = ("channels", "in_channels", "in_chans")
_CLASSES = ("classes", "num_classes", "n_classes")


class Own(Classifier):
    """An `nn.Module` of one's own in two halves, `features` and `head`, as everything here is.

    The class `net` is called with `options`, and with what its constructor asks for by name: ``shape`` (channels,
    height, width) or ``channels`` (also ``in_channels``, ``in_chans``), and ``classes`` (also ``num_classes``,
    ``n_classes``). What it makes must give logits (N, K) for images (N, C, H, W), by a linear layer that is computed
    last: that becomes `head`, and what goes into it are the penultimate activations. A net that has
    ``features(images)`` and a linear ``head`` is taken at its word. Its ``nn.Dropout`` draws by the recipe's seed, as
    all dropout here does; whatever else in it is random draws from torch's generator.

    `digest` are the sixteen digits that `source_digest` gives for the file that the class is defined in. Modules that
    this file imports are not part of it.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        net: str,
        options: Sequence[tuple[str, Any]] = (),
        digest: str = "",
    ) -> None:
        super().__init__()
        found = source_digest(net)
        if digest != found:
            said = (
                f"the recipe was made for another version, {digest}"
                if digest
                else "the recipe does not name a digest"
            )
            raise ValueError(
                f"the source of {net} has the digest {found}, and {said}; to use this version, set model.digest: "
                f"'{found}' in the recipe (softtargets recipe model prints the part)"
            )
        made = _made(net, shape, classes, dict(options))
        _draw_by_place(made)
        images = torch.linspace(-1, 1, 2 * shape[0] * shape[1] * shape[2]).reshape(2, *shape)
        if _is_in_two_halves(made, images, classes):
            head, self._halves = made.head, True
            made.head = nn.Identity()
        else:
            path, head = _last_linear(made, net, images, classes)
            parent, _, name = path.rpartition(".")
            setattr(made.get_submodule(parent), name, nn.Identity())
            self._halves = False
        self.net = made
        self.head = head
        self.number_dropouts()

    def features(self, images: Tensor) -> Tensor:
        """What goes into the last layer."""
        activations: Tensor = self.net.features(images) if self._halves else self.net(images)
        return activations


def source_digest(net: str) -> str:
    """Sixteen hexadecimal digits of the file that ``module:Class`` is defined in, whatever its line endings.

    >>> len(source_digest("softtargets.models.mlp:MLP"))
    16
    """
    module, _ = _place(net)
    spec = _found(module)
    if (
        spec is None
        or spec.origin is None
        or not os.path.isfile(spec.origin)
        or not spec.origin.endswith(".py")
    ):
        raise ValueError(
            f"there is no Python file for the module {module!r} of {net!r}; run the command where the module can be "
            "imported, or add its directory to PYTHONPATH"
        )
    source = Path(spec.origin).read_bytes().replace(b"\r\n", b"\n")
    return hashlib.sha256(source).hexdigest()[:16]


def own_class(net: str) -> Any:
    """The class that ``module:Class`` names."""
    module, name = _place(net)
    _found(module)
    try:
        inside: ModuleType = importlib.import_module(module)
    except Exception as error:  # their code may fail in any way
        raise ValueError(f"the module {module!r} of {net!r} cannot be imported: {error}") from error
    made = getattr(inside, name, None)
    if not callable(made):
        known = sorted(
            key
            for key, value in vars(inside).items()
            if isinstance(value, type) and issubclass(value, nn.Module)
        )
        listed = f"; it has {', '.join(known)}" if known else ""
        raise ValueError(f"the module {module!r} has no class {name!r}{listed}")
    return made


def _place(net: str) -> tuple[str, str]:
    if not _PLACE.fullmatch(net):
        raise ValueError(f"{net!r} does not name a class: write it as module:Class, such as mynets:SmallNet")
    module, _, name = net.partition(":")
    return module, name


def _found(module: str) -> Any:
    """Where a module is; the directory that the program was started in counts, as it does for python itself."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    here = os.getcwd()
    if spec is None and here not in sys.path:
        sys.path.append(here)
        importlib.invalidate_caches()
        try:
            spec = find_spec(module)
        except (ImportError, ValueError):
            spec = None
    return spec


def _made(net: str, shape: tuple[int, int, int], classes: int, options: dict[str, Any]) -> Any:
    kind = own_class(net)
    try:
        parameters = inspect.signature(kind).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    known: dict[str, Any] = {}
    for names, value in ((_SHAPE, shape), (_CHANNELS, shape[0]), (_CLASSES, classes)):
        known |= {name: value for name in names if name in parameters and name not in options}
    try:
        made = kind(**known, **options)
    except Exception as error:
        given = ", ".join(f"{name}={value!r}" for name, value in (known | options).items())
        raise ValueError(f"{net}({given}) cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(made, nn.Module):
        raise ValueError(f"{net} makes a {type(made).__name__}, not a torch.nn.Module")
    return made


def _is_in_two_halves(made: nn.Module, images: Tensor, classes: int) -> bool:
    """Whether it has features(images) and a linear head that make its logits."""
    head = getattr(made, "head", None)
    if (
        not isinstance(head, nn.Linear)
        or head.out_features != classes
        or not inspect.ismethod(getattr(made, "features", None))
    ):
        return False
    try:
        with _evaluated(made), torch.no_grad():
            features: Any = made.features
            logits, again = made(images), head(features(images))
    except Exception:  # its features are something else; who looks for the last layer says what is wrong
        return False
    if logits.shape != again.shape:
        return False
    return logits.device.type == "meta" or bool(torch.allclose(logits, again, atol=1e-5))


def _last_linear(made: nn.Module, net: str, images: Tensor, classes: int) -> tuple[str, nn.Linear]:
    """The linear layer whose output is that of the net, and its name."""
    said: dict[str, list[Any]] = {}
    candidates = {name: one for name, one in made.named_modules() if isinstance(one, nn.Linear) and name}
    handles = [
        one.register_forward_hook(lambda _, __, out, name=name: said.setdefault(name, []).append(out))
        for name, one in candidates.items()
    ]
    try:
        with _evaluated(made), torch.no_grad():
            logits = made(images)
    except Exception as error:
        raise ValueError(
            f"{net} fails on images of {' x '.join(map(str, images.shape[1:]))}: {error}"
        ) from error
    finally:
        for handle in handles:
            handle.remove()
    shown = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if shown != (len(images), classes):
        raise ValueError(
            f"{net} returns {shown} for {len(images)} images of {classes} classes, not ({len(images)}, {classes})"
        )
    last = [name for name, outputs in said.items() if len(outputs) == 1 and outputs[0] is logits]
    if not last:
        raise ValueError(
            f"{net} does not compute its logits in a last linear layer, so it has no penultimate activations; end "
            "forward with a linear layer, or give the class features(images) and a linear head"
        )
    return last[0], candidates[last[0]]


class _evaluated:
    """Evaluation mode for a while: a trial must leave no trace in batch norms."""

    def __init__(self, net: nn.Module) -> None:
        self._net, self._was = net, net.training

    def __enter__(self) -> None:
        self._net.eval()

    def __exit__(self, *_: object) -> None:
        self._net.train(self._was)


def _draw_by_place(made: nn.Module) -> None:
    """Put our dropout in the place of torch's."""
    for parent in made.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Dropout and child.p < 1:
                setattr(parent, name, Dropout(child.p))
